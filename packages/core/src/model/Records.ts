/** What a store keeps of a run, as the runtime sees it: typed, with decoded failures; payloads stay encoded text. */
import type { ErrorDetails, ParkReason } from "./Errors.js"

/**
 * Where a run stands.
 *
 * *Shape.* `pending`: ready to be claimed. `running`: a worker owns it. `sleeping`: due at `wakeAt`. `waiting`: for a
 * signal, a child or a timer. `review`: parked for a person. The others are final.
 *
 * @category models
 * @since 0.1.0
 */
export type RunStatus = "pending" | "running" | "sleeping" | "waiting" | "review" | "completed" | "failed" | "canceled"

export const finalStatuses: ReadonlySet<RunStatus> = new Set(["completed", "failed", "canceled"])

/**
 * Why a run failed, as it is stored.
 *
 * *Shape.* `declared`: a failure that has a schema; `value` is its encoded text, `operation` the operation that declares
 * it or null for the workflow itself. `undeclared`: anything else, reduced to what people read. `canceled`: somebody asked
 * for it; `step` is where the run stood.
 *
 * @category models
 * @since 0.1.0
 */
export type FailureRecord =
  | {
      readonly kind: "declared"
      readonly step: string
      readonly operation: string | null
      readonly value: string | null
      readonly problem: string
    }
  | { readonly kind: "undeclared"; readonly step: string; readonly problem: string; readonly details: ErrorDetails }
  | { readonly kind: "canceled"; readonly step: string; readonly problem: string }
  | {
      readonly kind: "child"
      readonly step: string
      readonly problem: string
      readonly runId: string
      readonly workflow: string
      readonly version: number
      readonly cause: FailureRecord | null
    }

/**
 * Why a run waits for a person.
 *
 * @category models
 * @since 0.1.0
 */
export interface ParkRecord {
  readonly reason: ParkReason
  readonly step: string
  readonly problem: string
}

/**
 * One run.
 *
 * *Shape.* Times are milliseconds since 1970 by the store's clock. `input` and `output` are JSON text, null for
 * `undefined`. `seq` counts commits, `fence` owners. `previousUntil`: until when an earlier owner, which did not leave at
 * a commit, may have held it, or when a cancel cut its rest short; 0 if there was neither. `recoveries`: takeovers of
 * unreleased leases since the last progress; `interruptions`: all of them, and releases while it was running. `inbox` counts what has reached the run from outside: signals, a cancel,
 * decisions, ends of children. `cancelAt`: when somebody asked to cancel it, null if nobody has. `pausedAt`: since when it is
 * not to be claimed, null if it is not paused. `parentRunId`, `parentPath`: the run of the same namespace, and the path in it,
 * that this one is a child of. `forkedFrom`: the run of the same namespace that it began as a copy of.
 * `flowKey`: what it shares its limits with (concurrency, rate); `priority`: higher ones are
 * claimed first, 0 unless given.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunRecord {
  readonly namespace: string
  readonly runId: string
  readonly workflow: string
  readonly version: number
  readonly planHash: string
  readonly status: RunStatus
  readonly seq: number
  readonly input: string | null
  readonly inputHash: string
  readonly output: string | null
  readonly failure: FailureRecord | null
  readonly parked: ParkRecord | null
  readonly cursor: string | null
  readonly leaseOwner: string | null
  readonly fence: number
  readonly claimToken: string | null
  readonly previousUntil: number
  readonly wakeAt: number | null
  readonly inbox: number
  readonly recoveries: number
  readonly interruptions: number
  readonly cancelAt: number | null
  readonly cancelReason: string | null
  readonly pausedAt: number | null
  readonly parentRunId: string | null
  readonly parentPath: string | null
  readonly flowKey: string | null
  readonly forkedFrom: string | null
  readonly priority: number
  readonly createdAt: number
  readonly updatedAt: number
}

/**
 * How a run stands, without what it was given.
 *
 * @category models
 * @since 0.1.0
 */
export type RunOutcome = Omit<RunRecord, "input">

/**
 * How a run has ended well: what its worker tells those of its process who wait for it.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunCompletion {
  readonly status: "completed"
  readonly output: string | null
}

/**
 * One committed step.
 *
 * *Shape.* `result` is the encoded output; `effect` is `none`, `transaction`, `external:<operation>`, or the kind of the node
 * that steers (`branch`, `loop`, `turn`, `item`, ..), or of what is kept beside steps, at paths that begin with a colon
 * (`window:<step>`, ..); `attempts` counts from 1; `durationMs` is the successful attempt's.
 * `scope` is the instance it stands in, which a resume reads as a whole or not at all (X7): the empty text for the workflow
 * itself, `agent[3]` for a turn, `each[key]` for an item; `agent[` and `each[` for the turns and items themselves.
 *
 * @category models
 * @since 0.1.0
 */
export interface StepRecord {
  readonly path: string
  readonly scope: string
  readonly seq: number
  readonly result: string | null
  readonly effect: string
  readonly idempotencyKey: string | null
  readonly attempts: number
  readonly durationMs: number
  readonly committedAt: number
}

/** A step as it stands once its commit is made. Written out: V8 spreads an object into another one slowly. */
export const committedStep = (step: Omit<StepRecord, "committedAt">, committedAt: number): StepRecord => ({
  path: step.path,
  scope: step.scope,
  seq: step.seq,
  result: step.result,
  effect: step.effect,
  idempotencyKey: step.idempotencyKey,
  attempts: step.attempts,
  durationMs: step.durationMs,
  committedAt,
})

/**
 * How an operation stands.
 *
 * *Shape.* `intended`: about to be sent, or sent and unanswered: unknown. `succeeded`: with its result. `failed`: with a
 * declared failure. `notPerformed`: known not to have happened.
 *
 * @category models
 * @since 0.1.0
 */
export type EffectState = "intended" | "succeeded" | "failed" | "notPerformed"

/**
 * One operation of one step: the intent, and what became of it.
 *
 * *Shape.* `operation` is the member that is sent, `payload` the recorded text of what is sent, `payloadHash` of its
 * canonical form. `outcome` is the encoded result or failure. `claimToken` is that of the owner who sends. `sends` counts
 * how often it was handed to the handler or, by `checkFirst`, asked about; `intentAt` is the first time.
 *
 * @category models
 * @since 0.1.0
 */
export interface EffectRecord {
  readonly path: string
  readonly generation: number
  readonly operation: string
  readonly idempotencyKey: string
  readonly payload: string | null
  readonly payloadHash: string
  readonly state: EffectState
  readonly outcome: string | null
  readonly claimToken: string
  readonly sends: number
  readonly intentAt: number
  readonly settledAt: number | null
}

/**
 * One attempt that did not commit.
 *
 * *Shape.* `kind`: `failed` (the step failed), `refused` (its operation is known not to have happened: this attempt
 * accounts for one generation), `rejected` (its output failed the gate, or its operation's answer did not fit; `output`
 * is what was refused, as JSON where it has one), `retried` (none at all: a person has had the failed run tried again, and
 * retries are counted from here). `retryAt`: when the next attempt is due; null if this was the last.
 *
 * @category models
 * @since 0.1.0
 */
export interface AttemptRecord {
  readonly path: string
  readonly attempt: number
  readonly kind: "failed" | "refused" | "rejected" | "retried"
  readonly error: ErrorDetails
  readonly output: string | null
  readonly retryAt: number | null
  readonly endedAt: number
}

/**
 * Something that was sent to a run and that no step has taken yet.
 *
 * *Shape.* `signalId` is the sender's, once a run. `payload` is JSON text, `payloadHash` of its canonical form. `position`
 * grows with each signal of a run.
 *
 * @category models
 * @since 0.1.0
 */
export interface SignalRecord {
  readonly signalId: string
  readonly name: string
  readonly payload: string | null
  readonly payloadHash: string
  readonly position: number
  readonly sentAt: number
}

/**
 * Something that a run waits for.
 *
 * *Shape.* `name`: of a signal its name, of a child its run id, of a review the id that a decision names; null for a sleep.
 * `wakeAt`: when it is over by itself, null for never. `state`: `decided` once a person has said something, `expired` once the
 * run's owner has closed it unanswered. `data` is JSON: what was shown to the reviewer. `decision` is JSON.
 *
 * @category models
 * @since 0.1.0
 */
export interface WaitRecord {
  readonly path: string
  readonly kind: "sleep" | "signal" | "review" | "child"
  readonly name: string | null
  readonly wakeAt: number | null
  readonly openedAt: number
  readonly state: "open" | "decided" | "expired"
  readonly data: string | null
  readonly decision: string | null
  readonly decidedAt: number | null
}

/**
 * A run with the committed steps of its own scope, in commit order.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunState {
  readonly run: RunRecord
  readonly steps: ReadonlyArray<StepRecord>
}

/**
 * What is known of paths that are not committed: intents and attempts.
 *
 * @category models
 * @since 0.1.0
 */
export interface OpenState {
  readonly effects: ReadonlyArray<EffectRecord>
  readonly attempts: ReadonlyArray<AttemptRecord>
}

/**
 * Proof of ownership: every write of a run shows it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Lease {
  readonly namespace: string
  readonly runId: string
  readonly fence: number
  readonly claimToken: string
}

/**
 * A lease as a heartbeat finds it, with the run's `inbox`: its owner learns of what has arrived.
 *
 * @category models
 * @since 0.1.0
 */
export interface HeldLease extends Lease {
  readonly inbox: number
}
