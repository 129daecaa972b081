/** One claimed run in this process: its lease, its records, and the one serializer of its commits. */
import type * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import * as HashMap from "effect/HashMap"
import type * as Runtime from "effect/Runtime"
import * as Schedule from "effect/Schedule"
import type { Definition, WorkNode } from "../../dsl/Definition.js"
import type { Budget } from "../../dsl/Budget.js"
import { codecOf, type Codec } from "../../model/Codec.js"
import { LeaseLost, type StoreError } from "../../model/Errors.js"
import type { Plan } from "../../model/Plan.js"
import type { Prices } from "../../model/Usage.js"
import {
  committedStep,
  finalStatuses,
  type Lease,
  type RunCompletion,
  type RunRecord,
  type RunState,
  type SignalRecord,
  type StepRecord,
} from "../../model/Records.js"
import type { NewCallRow } from "../../store/CallRows.js"
import type { CheckpointStoreService, Commit } from "../../store/CheckpointStore.js"
import { noFaults, type FaultPoint, type FaultsService } from "../Faults.js"
import type { Durability } from "../../dsl/Definition.js"
import type { RunQueue } from "../RunQueue.js"
import type { WriteBehind } from "../WriteBehind.js"
import type { Arrivals } from "./arrivals.js"
import type { Attempt } from "./decide.js"
import { keepingRefs } from "./fiberRefs.js"
import type { LiveSource } from "./liveOutput.js"
import { prefixOf, scopeOf, templateOf } from "./paths.js"
import { Place } from "./places.js"
import { processMs } from "./processTime.js"
import { programOf, type Block, type ControlPair, type Program } from "./program.js"
import { RunRecords } from "./records.js"
import { asEffect, type Soon } from "./soon.js"
import { windowScope } from "./windowStates.js"

/** What a worker gives to each of its runs. */
export interface RunEnv {
  readonly store: CheckpointStoreService
  readonly definition: Definition
  readonly plan: Plan
  /** Handlers and services that the worker was given. */
  readonly context: Context.Context<any>
  readonly faults: FaultsService
  /** Milliseconds left of the worker's lease, by its own monotonic clock. */
  readonly leaseRemainingMs: () => number
  /** How long a beat prolongs the worker's lease. */
  readonly leaseMs: number
  readonly maxValueLength: number
  readonly maxRecoveries: number
  /** What models cost, and what may be spent in a namespace on one day, by a workflow on one day and by a run. */
  readonly prices: Prices
  readonly budgets: {
    readonly day: number | null
    readonly of: (run: Pick<RunRecord, "workflow" | "version">) => Budget | undefined
  }
  readonly buffer: WriteBehind<Commit>
  /** What of this run is accepted and not durable. */
  readonly queue: RunQueue<Commit>
  /** Whether every commit of a step is waited for, or only those that something outside follows from (W2). */
  readonly durability: Durability
  /** A step was committed, whose last attempt took so long. */
  readonly onProgress: (durationMs: number) => Soon<void>
  /** True once the worker stops: no further attempt begins. */
  readonly draining: () => boolean
  /** What has reached the run meanwhile. */
  readonly arrivals: Arrivals
}

const none: ReadonlyArray<never> = []

/** What is known of what has arrived for a run. */
export interface Mail {
  /** Signals that no step has taken, in order. */
  signals: Array<SignalRecord>
  /** It was looked at since something may have arrived. */
  isFresh: boolean
  /** What the run waits for was read, and nothing was looked at since. */
  waitsAreFresh: boolean
  /** Something may have arrived since children were looked at. */
  hasNews: boolean
}

/** Store trouble that may pass is waited out this often at first, up to the limit, while the lease holds. */
export const patience = Schedule.exponential("50 millis").pipe(
  Schedule.jittered,
  Schedule.union(Schedule.spaced("1 second")),
)

/** Store calls of one run: what may pass is retried while the lease holds, and no longer (W6). */
export const persisting = <A, E>(
  env: Pick<RunEnv, "leaseRemainingMs">,
  call: Effect.Effect<A, E | StoreError>,
): Effect.Effect<A, E | StoreError> =>
  Effect.retry(call, {
    schedule: patience,
    while: (error) =>
      (error as Partial<StoreError>)._tag === "StoreError" &&
      (error as StoreError).isRetryable &&
      env.leaseRemainingMs() > 0,
  })

/** What one commit holds. The session adds what only it knows: the scope of a step, and up to where the inbox was looked at. */
export type Parts = {
  readonly run: RunChange
  readonly steps?: ReadonlyArray<Omit<StepRecord, "committedAt" | "scope" | "seq"> & { readonly scope?: string }>
} & Partial<Pick<Commit, "effects" | "attempts" | "consumes" | "waits" | "closes">>

/** What a commit makes of the run. */
export type RunChange = Omit<Commit["run"], "seenInbox">

const stepAt = (step: NonNullable<Parts["steps"]>[number], seq: number): Commit["steps"][number] => ({
  path: step.path,
  scope: step.scope ?? scopeOf(prefixOf(step.path)),
  seq,
  result: step.result,
  effect: step.effect,
  idempotencyKey: step.idempotencyKey,
  attempts: step.attempts,
  durationMs: step.durationMs,
})

export class RunSession extends RunRecords {
  readonly lease: Lease
  seq: number
  cancelReason: string | null
  pausedAt: number | null
  /** Up to where it was looked at what has arrived. */
  inbox: number
  /** The run's input, to be decoded when somebody looks at it. */
  readonly input: { readonly text: string | null; readonly codec: Codec<unknown> }
  /** Nothing else of the run is under way, waits or is held back: whoever comes to an end may let the run leave. */
  isAlone = true
  /** When this session has begun, by this process's clock. */
  readonly startedAt: number
  /** Where the run stands, for people. */
  cursor: string
  /** What has arrived, as far as somebody has looked. */
  readonly mail: Mail = { signals: [], isFresh: false, waitsAreFresh: false, hasNews: true }
  /** Something of it waits for what others send: its inbox is looked at by who waits. */
  listens = false
  /** What its steps emit; null until one does. */
  live: LiveSource | null = null
  /** What its paid calls are counted in; null until one is made. */
  counters: NewCallRow["counters"] | null = null
  callCount = 0
  /** Set once the store has it. */
  completion: RunCompletion | null = null
  /** How often steps have found that calls under way leave no room for theirs. */
  readonly outOfRoom = new Map<string, number>()
  /** When short sleeps end, and what is tried again soon, by this process's clock. */
  readonly timers = new Map<string, number>()
  private readonly program: Program
  private readonly places = new Map<string, Place>()
  private annotations: HashMap.HashMap<string, unknown> = HashMap.empty()
  /** Held by a transaction: nothing of the run may be accepted beside it. */
  private readonly writing = Effect.unsafeMakeSemaphore(1)

  constructor(
    readonly env: RunEnv,
    readonly run: RunRecord,
    state: RunState,
    isNew: boolean,
    readonly clock: Clock.Clock,
    /** For what a step's function reads by promises: with the clock and the logger of its worker. */
    readonly runtime: Runtime.Runtime<never>,
  ) {
    super(env.plan, state, isNew)
    this.startedAt = this.nowMs
    this.cursor = run.cursor ?? ""
    this.lease = {
      namespace: run.namespace,
      runId: run.runId,
      fence: run.fence,
      claimToken: run.claimToken ?? "",
    }
    this.input = { text: run.input, codec: codecOf(env.definition.input) }
    this.seq = state.run.seq
    this.cancelReason = state.run.cancelReason
    this.pausedAt = state.run.pausedAt
    this.inbox = state.run.inbox
    this.program = programOf(env.definition, env.plan)
  }

  /** By this process's clock. */
  get nowMs(): number {
    return processMs(this.clock)
  }

  protected onDropped(scope: string): void {
    for (const prefix of [...this.places.keys()]) if (prefix.startsWith(`${scope}/`)) this.places.delete(prefix)
  }

  place(prefix: string): Place {
    const known = this.places.get(prefix)
    if (known !== undefined) return known
    const place = new Place(this, this.block(templateOf(prefix)), prefix, this.frame(scopeOf(prefix)))
    this.places.set(prefix, place)
    return place
  }

  block(prefix: string): Block {
    return this.program.blocks.get(prefix)!
  }

  placeOf({ path, takesBack }: Attempt): Place {
    return this.place(prefixOf(takesBack?.path ?? path))
  }

  node(path: string): WorkNode {
    return this.program.pairs.get(templateOf(path))!.node as WorkNode
  }

  control(path: string): ControlPair["node"] {
    return this.program.pairs.get(templateOf(path))!.node as ControlPair["node"]
  }

  /** Whether anybody listens at the fault points. */
  get isWatched(): boolean {
    return this.env.faults !== noFaults
  }

  reach(point: FaultPoint, step: string, attempt: number): Effect.Effect<void> {
    return this.env.faults.reach(point, { runId: this.run.runId, step, attempt })
  }

  persist<A, E>(call: Effect.Effect<A, E | StoreError>): Effect.Effect<A, E | StoreError> {
    return persisting(this.env, call)
  }

  /** The commit that comes next. */
  next(parts: Parts): Commit {
    const seq = this.seq + 1
    const { run } = parts
    const isFinal = finalStatuses.has(run.status)
    // Written out, here and below: one shape for all commits, and nothing is copied that is written once a step.
    return {
      lease: this.lease,
      base: this.seq,
      seq,
      run: {
        status: run.status,
        cursor: run.cursor,
        wakeInMs: run.wakeInMs,
        output: run.output,
        // Once a run fails it fails: what comes after takes back, and says why to whoever looks.
        failure: run.failure ?? this.failure,
        parked: run.parked,
        release: run.release,
        seenInbox: this.inbox,
      },
      steps: parts.steps === undefined ? none : parts.steps.map((step) => stepAt(step, seq)),
      effects: parts.effects ?? none,
      attempts: parts.attempts ?? none,
      consumes: parts.consumes ?? none,
      waits: parts.waits ?? none,
      closes: isFinal ? [...(this.waits?.keys() ?? none)] : (parts.closes ?? none),
      wakesParent: isFinal ? this.run.parentRunId : null,
    }
  }

  /** It will be written: what comes after it builds on it. */
  private admit(commit: Commit): void {
    this.seq = commit.seq
    this.status = commit.run.status
    this.failure = commit.run.failure
    if (commit.run.cursor !== null) this.cursor = commit.run.cursor
    // What comes next changes the window as it is then, whether or not it is durable by then.
    if (this.env.plan.window === undefined) return
    for (const step of commit.steps) if (step.scope === windowScope) this.note({ ...step, committedAt: 0 })
  }

  /** Looks at what has arrived meanwhile (X13). Says whether the run is to be canceled. */
  heed(): boolean {
    const { row } = this.env.arrivals
    if (row !== null && row.inbox >= this.inbox) {
      // X13: who waits looks at what has arrived together with the inbox.
      if (!this.listens) this.inbox = row.inbox
      this.cancelAt = row.cancelAt
      this.cancelReason = row.cancelReason
      this.pausedAt = row.pausedAt
    }
    return this.cancelAt !== null
  }

  /** The store has it: this process's picture of the run follows. */
  applied(commit: Commit, at: number): void {
    for (const { retryInMs, seq: _, ...attempt } of commit.attempts) {
      this.noteAttempt({ ...attempt, endedAt: at, retryAt: retryInMs === null ? null : at + retryInMs })
    }
    for (const effect of commit.effects) this.noteEffect(effect, at)
    for (const step of commit.steps) this.note(committedStep(step, at))
    const { output, status } = commit.run
    if (status === "completed") this.completion = { status, output }
    for (const path of commit.closes) this.waits?.delete(path)
    for (const { wake, seq: _, ...wait } of commit.waits) {
      const wakeAt = wake === null ? null : "at" in wake ? wake.at : at + wake.inMs
      this.waits?.set(wait.path, { ...wait, wakeAt, openedAt: at, state: "open", decision: null, decidedAt: null })
    }
  }

  /** X2: what writes this run, transactions of its steps aside. It ends when this commit and all before are durable (W2). */
  commit(parts: Parts, how: "usual" | "inTransaction" = "usual"): Effect.Effect<number, LeaseLost | StoreError> {
    return Effect.suspend(() => {
      let commit: Commit
      const accepted = Effect.suspend(() => {
        commit = this.next(parts)
        this.admit(commit)
        return this.env.buffer.accept(this.env.queue, commit, "plain")
      })
      return (how === "usual" ? this.inTurn(accepted) : accepted).pipe(
        Effect.zipRight(Effect.suspend(() => this.env.buffer.durable(this.env.queue, commit.seq))),
        Effect.tap((at) => this.applied(commit, at)),
      )
      // A step's timeout must not fall between the store's commit and this process's picture of it.
    }).pipe(Effect.uninterruptible)
  }

  /** Commits without waiting: the run goes on from what only this process knows as yet. Never what others may observe. */
  accept(parts: Parts): Soon<void, LeaseLost | StoreError> {
    return this.isAlone
      ? this.acceptNow(parts)
      : this.writing.withPermits(1)(Effect.suspend(() => asEffect(this.acceptNow(parts))))
  }

  private acceptNow(parts: Parts): Soon<void, LeaseLost | StoreError> {
    const { buffer, queue } = this.env
    const commit = this.next(parts)
    this.admit(commit)
    if (buffer.takes(queue, commit)) return this.applied(commit, queue.durableAt)
    return Effect.uninterruptible(Effect.map(buffer.accept(queue, commit), () => this.applied(commit, queue.durableAt)))
  }

  /**
   * Commits what follows from the records as they stand once nothing else of the run is being written. Where it `mayRunAhead`, it is
   * not waited for.
   */
  commitComputed<E>(
    computed: Effect.Effect<Parts, E>,
    mayRunAhead: (parts: Parts) => boolean,
  ): Effect.Effect<Parts, E | LeaseLost | StoreError> {
    const { buffer, queue } = this.env
    const accepted = Effect.flatMap(computed, (parts) => {
      const commit = this.next(parts)
      this.admit(commit)
      const runsAhead = mayRunAhead(parts)
      const written = buffer.accept(queue, commit, runsAhead ? "logged" : "plain")
      return Effect.map(written, () => {
        if (runsAhead) this.applied(commit, queue.durableAt)
        return { commit, parts, runsAhead }
      })
    })
    return Effect.flatMap(this.inTurn(accepted), ({ commit, parts, runsAhead }) =>
      runsAhead
        ? Effect.succeed(parts)
        : Effect.map(buffer.durable(queue, commit.seq), (at) => {
            this.applied(commit, at)
            return parts
          }),
    ).pipe(Effect.uninterruptible)
  }

  /** A transaction writes its commit itself: beside it nothing is accepted. */
  inTurn<A, E>(write: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return this.isAlone ? write : this.writing.withPermits(1)(write)
  }

  /** W2: all that was accepted is durable. */
  barrier(): Effect.Effect<void, LeaseLost | StoreError> {
    return Effect.asVoid(this.env.buffer.durable(this.env.queue, this.seq))
  }

  /** A transaction has written a commit itself. */
  transacted(commit: Commit, at: number): void {
    this.env.queue.acceptedSeq = this.env.queue.durableSeq = commit.seq
    this.env.queue.durableAt = at
    this.admit(commit)
    this.applied(commit, at)
  }

  /** The run stays where it is and goes on. */
  running(cursor: string): RunChange {
    return { status: "running", cursor, wakeInMs: null, output: null, failure: null, parked: null, release: false }
  }

  leaseLost(): LeaseLost {
    return new LeaseLost(this.lease)
  }

  logged<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    const { fence, runId, workflow } = this.run
    return Effect.logAnnotations.pipe(
      Effect.tap((annotations) => Effect.sync(() => (this.annotations = annotations))),
      Effect.zipRight(effect),
      Effect.annotateLogs({ workflow, runId, fence }),
    )
  }

  /** What is logged from now on is logged of this attempt: the fiber is the run's own, and the next one says so anew. */
  annotated({ attempt, path }: Attempt): Effect.Effect<void> {
    return FiberRef.set(
      FiberRef.currentLogAnnotations,
      HashMap.set(HashMap.set(this.annotations, "step", path), "attempt", attempt),
    )
  }

  /** What an attempt runs in the fiber of the run. */
  attempted<A, E>(attempt: Attempt, ...given: Parameters<typeof keepingRefs<A, E, never>>): Effect.Effect<A, E> {
    return Effect.zipRight(this.annotated(attempt), keepingRefs(...given))
  }
}

/** A delay that a person can read. */
export const shownMs = (ms: number): string => Duration.format(Duration.millis(ms))
