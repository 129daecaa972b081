/** One claimed run in this process: its lease, its records, and the one serializer of its commits. */
import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import * as HashMap from "effect/HashMap"
import * as Schedule from "effect/Schedule"
import type { Definition, Node } from "../../dsl/Definition.js"
import { compensationNode, isCompensationPath } from "../../dsl/internal/compensation.js"
import { outputCodec } from "../../dsl/internal/outputCodec.js"
import { codecOf, type Codec } from "../../model/Codec.js"
import { LeaseLost, type StoreError } from "../../model/Errors.js"
import type { Plan, PlanNode } from "../../model/Plan.js"
import type {
  AttemptRecord,
  EffectRecord,
  FailureRecord,
  Lease,
  OpenState,
  RunRecord,
  RunState,
  StepRecord,
} from "../../model/Records.js"
import type { CheckpointStoreService, Commit } from "../../store/CheckpointStore.js"
import { noFaults, type FaultPoint, type FaultsService } from "../Faults.js"
import type { Durability } from "../../dsl/Definition.js"
import type { RunQueue, WriteBehind } from "../WriteBehind.js"
import type { Arrivals } from "./arrivals.js"
import type { Available } from "./context.js"
import type { Attempt, Records } from "./decide.js"

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
  readonly buffer: WriteBehind<Commit>
  /** What of this run is accepted and not durable. */
  readonly queue: RunQueue<Commit>
  /** Whether every commit of a step is waited for, or only those that something outside follows from (W2). */
  readonly durability: Durability
  /** A step was committed, whose last attempt took so long. */
  readonly onProgress: (durationMs: number) => Effect.Effect<void>
  /** True once the worker stops: no further attempt begins. */
  readonly draining: () => boolean
  /** What has reached the run meanwhile. */
  readonly arrivals: Arrivals
}

/** Store trouble that may pass is waited out this often at first, up to the limit, while the lease holds. */
const patience = Schedule.exponential("50 millis").pipe(Schedule.jittered, Schedule.union(Schedule.spaced("1 second")))

const append = <V>(map: Map<string, Array<V>>, key: string, value: V): void => {
  const list = map.get(key)
  if (list === undefined) map.set(key, [value])
  else list.push(value)
}

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

type Parts = { readonly run: RunChange } & Partial<Pick<Commit, "steps" | "effects" | "attempts" | "consumes">>

/** What a commit makes of the run; up to where its inbox was looked at, the session knows. */
export type RunChange = Omit<Commit["run"], "seenInbox">

/** A step's node, and that of its compensation, under their paths. */
const nodesAt = (plan: PlanNode, node: Node): ReadonlyArray<readonly [string, Node]> => {
  const compensation = node.kind === "perform" ? compensationNode(node) : null
  return plan.compensate === null || compensation === null
    ? [[plan.path, node]]
    : [
        [plan.path, node],
        [plan.compensate.path, compensation],
      ]
}

const nodesByPlan = new WeakMap<Plan, ReadonlyMap<string, Node>>()

/** The nodes of a plan by their paths: made once for all of its runs. */
const nodesOf = ({ definition, plan }: Pick<RunEnv, "definition" | "plan">): ReadonlyMap<string, Node> => {
  const known = nodesByPlan.get(plan)
  if (known !== undefined) return known
  const made = new Map(plan.nodes.flatMap((node, index) => nodesAt(node, definition.nodes[index]!)))
  nodesByPlan.set(plan, made)
  return made
}

export class RunSession implements Records {
  readonly lease: Lease
  seq: number
  status: RunRecord["status"]
  failure: FailureRecord | null
  cancelAt: number | null
  cancelReason: string | null
  /** Up to where it was looked at what has arrived. */
  inbox: number
  readonly samePlan: boolean
  /** The run's input, to be decoded when somebody looks at it. */
  readonly input: { readonly text: string | null; readonly codec: Codec<unknown> }
  /** Steps before this place of the plan are committed: nobody looks at them again. */
  from = 0
  private annotations: HashMap.HashMap<string, unknown> = HashMap.empty()
  readonly steps = new Map<string, StepRecord>()
  readonly effects = new Map<string, Array<EffectRecord>>()
  readonly attempts = new Map<string, Array<AttemptRecord>>()
  /** Committed results by step name, as functions see them. */
  readonly available = new Map<string, Available>()
  private readonly nodes: ReadonlyMap<string, Node>

  constructor(
    readonly env: RunEnv,
    readonly run: RunRecord,
    state: RunState,
  ) {
    this.lease = {
      namespace: run.namespace,
      runId: run.runId,
      fence: run.fence,
      claimToken: run.claimToken ?? "",
    }
    this.input = { text: run.input, codec: codecOf(env.definition.input) }
    this.seq = state.run.seq
    this.status = state.run.status
    this.failure = state.run.failure
    this.cancelAt = state.run.cancelAt
    this.cancelReason = state.run.cancelReason
    this.inbox = state.run.inbox
    this.samePlan = run.planHash === env.plan.hash
    this.nodes = nodesOf(env)
    for (const step of state.steps) this.addStep(step)
  }

  /** Adds what earlier owners left of paths that are not committed. */
  addOpen(open: OpenState): void {
    for (const effect of open.effects) append(this.effects, effect.path, effect)
    for (const attempt of open.attempts) append(this.attempts, attempt.path, attempt)
  }

  node(path: string): Node {
    return this.nodes.get(path)!
  }

  addStep(record: StepRecord): void {
    this.steps.set(record.path, record)
    const node = this.nodes.get(record.path)
    // What takes a step back has no name that a later step could ask for.
    if (node !== undefined && !isCompensationPath(record.path))
      this.available.set(node.name, { record, codec: outputCodec(node) })
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
    return {
      lease: this.lease,
      base: this.seq,
      seq,
      // Once a run fails it fails: what comes after takes back, and says why to whoever looks.
      run: { ...parts.run, failure: parts.run.failure ?? this.failure, seenInbox: this.inbox },
      steps: (parts.steps ?? []).map((step) => ({ ...step, seq })),
      effects: parts.effects ?? [],
      attempts: parts.attempts ?? [],
      consumes: parts.consumes ?? [],
    }
  }

  /** Looks at what has arrived meanwhile (X13). Says whether the run is to be canceled. */
  heed(): boolean {
    const { row } = this.env.arrivals
    if (row !== null && row.inbox >= this.inbox) {
      this.inbox = row.inbox
      this.cancelAt = row.cancelAt
      this.cancelReason = row.cancelReason
    }
    return this.cancelAt !== null
  }

  /** The store has it: this process's picture of the run follows. */
  applied(commit: Commit, at: number): void {
    this.seq = commit.seq
    this.status = commit.run.status
    this.failure = commit.run.failure
    for (const step of commit.steps) this.addStep({ ...step, committedAt: at })
    for (const { retryInMs, ...attempt } of commit.attempts) {
      append(this.attempts, attempt.path, {
        ...attempt,
        endedAt: at,
        retryAt: retryInMs === null ? null : at + retryInMs,
      })
    }
    for (const effect of commit.effects) this.setEffect(effect, at)
  }

  /** X2: what writes this run, transactions of its steps aside. It ends when this commit and all before are durable (W2). */
  commit(parts: Parts): Effect.Effect<number, LeaseLost | StoreError> {
    return Effect.suspend(() => {
      const commit = this.next(parts)
      return this.env.buffer.accept(this.env.queue, commit, "plain").pipe(
        Effect.zipRight(this.env.buffer.durable(this.env.queue, commit.seq)),
        Effect.tap((at) => this.applied(commit, at)),
      )
      // A step's timeout must not fall between the store's commit and this process's picture of it.
    }).pipe(Effect.uninterruptible)
  }

  /** Commits without waiting: the run goes on from what only this process knows as yet. Never what others may observe. */
  accept(parts: Parts): Effect.Effect<void, LeaseLost | StoreError> {
    return Effect.suspend(() => {
      const { buffer, queue } = this.env
      const commit = this.next(parts)
      if (buffer.takes(queue, commit)) {
        this.applied(commit, queue.durableAt)
        return Effect.void
      }
      return Effect.uninterruptible(
        Effect.map(buffer.accept(queue, commit), () => this.applied(commit, queue.durableAt)),
      )
    })
  }

  /** W2: all that was accepted is durable. */
  barrier(): Effect.Effect<void, LeaseLost | StoreError> {
    return Effect.asVoid(this.env.buffer.durable(this.env.queue, this.seq))
  }

  /** A transaction has written a commit itself. */
  transacted(commit: Commit, at: number): void {
    this.env.queue.acceptedSeq = this.env.queue.durableSeq = commit.seq
    this.env.queue.durableAt = at
    this.applied(commit, at)
  }

  private setEffect(write: Commit["effects"][number], at: number): void {
    const list = this.effects.get(write.path) ?? []
    const known = list.find((effect) => effect.generation === write.generation)
    // D17: what is settled stays as it is.
    if (known !== undefined && known.state !== "intended") return
    const record: EffectRecord = {
      ...write,
      intentAt: known?.intentAt ?? at,
      settledAt: write.state === "intended" ? null : at,
    }
    this.effects.set(write.path, [...list.filter((effect) => effect !== known), record])
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
  annotated({ attempt, node }: Attempt): Effect.Effect<void> {
    return FiberRef.set(
      FiberRef.currentLogAnnotations,
      HashMap.set(HashMap.set(this.annotations, "step", node.name), "attempt", attempt),
    )
  }
}

/** A delay that a person can read. */
export const shownMs = (ms: number): string => Duration.format(Duration.millis(ms))
