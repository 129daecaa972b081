/** One claimed run in this process: its lease, its records, and the one serializer of its commits. */
import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { Definition, Node } from "../../dsl/Definition.js"
import { compensationNode, isCompensationPath } from "../../dsl/internal/compensation.js"
import { outputCodec } from "../../dsl/internal/outputCodec.js"
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
import type { FaultPoint, FaultsService } from "../Faults.js"
import type { Available } from "./context.js"
import type { Records } from "./decide.js"

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
  /** A step was committed, whose last attempt took so long. */
  readonly onProgress: (durationMs: number) => Effect.Effect<void>
  /** True once the worker stops: no further attempt begins. */
  readonly draining: () => boolean
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

type Parts = Pick<Commit, "run"> & Partial<Pick<Commit, "steps" | "effects" | "attempts">>

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

export class RunSession implements Records {
  readonly lease: Lease
  seq: number
  status: RunRecord["status"]
  failure: FailureRecord | null
  readonly samePlan: boolean
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
    this.seq = run.seq
    this.status = run.status
    this.failure = state.run.failure
    this.samePlan = run.planHash === env.plan.hash
    this.nodes = new Map(env.plan.nodes.flatMap((node, index) => nodesAt(node, env.definition.nodes[index]!)))
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
      run: { ...parts.run, failure: parts.run.failure ?? this.failure },
      steps: (parts.steps ?? []).map((step) => ({ ...step, seq })),
      effects: parts.effects ?? [],
      attempts: parts.attempts ?? [],
    }
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

  /** X2: what writes this run, transactions of its steps aside. `seq` moves when the store has it, never before. */
  commit(parts: Parts): Effect.Effect<number, LeaseLost | StoreError> {
    return Effect.suspend(() => {
      const commit = this.next(parts)
      return Effect.tap(this.persist(this.env.store.commit(commit)), (at) => this.applied(commit, at))
      // A step's timeout must not fall between the store's commit and this process's picture of it.
    }).pipe(Effect.uninterruptible)
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
  running(cursor: string): Parts["run"] {
    return { status: "running", cursor, wakeInMs: null, output: null, failure: null, parked: null, release: false }
  }

  leaseLost(): LeaseLost {
    return new LeaseLost(this.lease)
  }

  logged<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.annotateLogs(effect, {
      workflow: this.run.workflow,
      runId: this.run.runId,
      fence: this.run.fence,
    })
  }
}

/** A delay that a person can read. */
export const shownMs = (ms: number): string => Duration.format(Duration.millis(ms))
