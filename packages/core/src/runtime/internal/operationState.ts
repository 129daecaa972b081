/**
 * What an attempt knows of its operation, the ways in which that ends the attempt, and the row that is kept of it.
 *
 * - X6: an outcome that is known is not thrown away with the lease: it is recorded without the fence.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type { AnyOperation, MemberOperation } from "../../dsl/Operation.js"
import type { WindowChange } from "../../dsl/Window.js"
import type { InvalidValue, LeaseLost, StepMisuse, StoreError } from "../../model/Errors.js"
import type { EffectState, ParkRecord } from "../../model/Records.js"
import type { EffectWrite, OutcomeRow } from "../../store/CheckpointDriver.js"
import type { DataRead } from "./dataNotes.js"
import type { Attempt } from "./decide.js"
import { patience, type RunSession } from "./session.js"

/** What a schema refused, and the raw value as JSON where it has one that may be stored. */
export interface Rejected {
  readonly error: InvalidValue
  readonly raw: string | null
}

/** Why an attempt ends whatever its function makes of it. */
export type Stop =
  | { readonly _tag: "Misuse"; readonly error: StepMisuse }
  /**
   * `rejected`: an answer that did not fit its schema, kept for the person who looks at it. `wakeInMs`: when the run goes on, should
   * nobody look.
   */
  | { readonly _tag: "Park"; readonly park: ParkRecord; readonly rejected?: Rejected; readonly wakeInMs?: number }
  /** It could not begin by now, and did nothing. */
  | { readonly _tag: "Later"; readonly delayMs: number }
  | { readonly _tag: "Unknown"; readonly problem: string; readonly sends: number }
  | { readonly _tag: "Refused"; readonly error: InvalidValue }
  | { readonly _tag: "Lost"; readonly error: LeaseLost | StoreError }

export interface Outcome {
  readonly state: Exclude<EffectState, "intended">
  readonly text: string | null
  /** What the step's function is given: the decoded result, or the failure. */
  readonly value: unknown
}

/** What an attempt knows of its operation, and of the data that it has read. */
export interface OperationState {
  performed: string | null
  intent: EffectWrite | null
  outcome: Outcome | null
  stop: Stop | null
  /** Until when an operation that was cut off may still be under way at its provider, in nanoseconds of this process. */
  mayEndAt: bigint | null
  /** The perform that has begun and not ended, in whatever fiber its step has put it. */
  underWay: { readonly fiber: Fiber.RuntimeFiber<any, any>; readonly ended: Effect.Latch } | null
  /** What was read of data that has versions. */
  readonly reads: Array<DataRead>
  /** What is to change the window when the step is committed; null for nothing. */
  changes: ReadonlyArray<WindowChange> | null
  /** The step has ended or is being interrupted: nothing more may be performed in its name. */
  closed: boolean
}

export const noOperation = (): OperationState => ({
  performed: null,
  intent: null,
  outcome: null,
  stop: null,
  mayEndAt: null,
  underWay: null,
  reads: [],
  changes: null,
  closed: false,
})

/** How long to wait before anybody is asked about it: a check that comes too early finds nothing, and it happens then. */
export const mayTakeMs = (state: OperationState): Effect.Effect<number> =>
  Effect.map(Clock.currentTimeNanos, (now) =>
    state.mayEndAt === null ? 0 : Math.max(0, Math.ceil(Number(state.mayEndAt - now) / 1e6)),
  )

/** Waits for a perform that its step did not wait for, so that no outcome is lost. */
export const performEnded = (state: OperationState): Effect.Effect<void> =>
  Effect.suspend(() => (state.underWay === null ? Effect.void : state.underWay.ended.await))

/** Ends the step's function. The loop looks at `stop`, not at what the function makes of this defect. */
class StepStopped {
  readonly _tag = "StepStopped"
}

export const stopWith = (state: OperationState, stop: Stop): Effect.Effect<never> =>
  Effect.suspend(() => {
    state.stop ??= stop
    return Effect.die(new StepStopped())
  })

export const lost = (state: OperationState) => (error: LeaseLost | StoreError) =>
  stopWith(state, { _tag: "Lost", error })

/** One operation of one attempt, with all that its sending needs. */
export interface Send {
  readonly session: RunSession
  readonly attempt: Attempt
  readonly state: OperationState
  readonly operation: AnyOperation
  readonly member: MemberOperation
}

export const parkAt = (
  send: Send,
  reason: ParkRecord["reason"],
  problem: string,
  rejected?: Rejected,
): Effect.Effect<never> =>
  stopWith(send.state, {
    _tag: "Park",
    park: { reason, step: send.attempt.path, problem },
    ...(rejected === undefined ? {} : { rejected }),
  })

/** The row of a settled operation, to be committed with whatever the attempt came to. */
export const settledEffect = (state: OperationState): ReadonlyArray<EffectWrite> =>
  state.intent === null || state.outcome === null
    ? []
    : [{ ...state.intent, state: state.outcome.state, outcome: state.outcome.text }]

const outcomeRow = ({ lease }: RunSession, intent: EffectWrite, outcome: Outcome): OutcomeRow => ({
  namespace: lease.namespace,
  runId: lease.runId,
  path: intent.path,
  generation: intent.generation,
  idempotencyKey: intent.idempotencyKey,
  payloadHash: intent.payloadHash,
  claimToken: intent.claimToken,
  state: outcome.state,
  outcome: outcome.text,
})

/** `recordFirst`: the outcome alone is durable before anything else is made of it. */
export const recordOutcome = (send: Send, intent: EffectWrite, outcome: Outcome): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { session, attempt, state } = send
    // Refused only where the run belongs to another worker by now: then so is every commit that would follow.
    yield* Effect.catchAll(
      session.persist(session.env.store.recordOutcome(outcomeRow(session, intent, outcome))),
      lost(state),
    )
    yield* session.reach("afterRecord", attempt.path, attempt.attempt)
  })

/** A worker that stops tries so often, and lets it be. */
const lastTries = 3

/** X6: what this worker knows is not thrown away when it may no longer write the run: it waits for a store that is away. */
export const recordKnown = (session: RunSession, state: OperationState): Effect.Effect<void> => {
  const { intent, outcome } = state
  if (intent === null || outcome === null) return Effect.void
  let tries = 0
  return session.env.store.recordOutcome(outcomeRow(session, intent, outcome)).pipe(
    Effect.retry({
      schedule: patience,
      while: (error) =>
        (error.isRetryable || error.reason === "Full") && (++tries <= lastTries || !session.env.draining()),
    }),
    // The store is away as well: the intent stays unknown, and the policy of the operation resolves it.
    Effect.catchAll((error) => Effect.logWarning("a known outcome could not be recorded", error)),
    Effect.asVoid,
  )
}
