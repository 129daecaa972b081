/**
 * A worker claims runs that are due and executes them, several at once, each under its lease and fence.
 *
 * - X12: only the takeover of an unreleased lease counts as a recovery (the store counts).
 * - W7: a worker that stops claims nothing, lets steps under way end for a while, and releases what it holds.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { randomUUID } from "node:crypto"
import type { AnyWorkflow, needsOfWorkflow } from "../builder/Workflow.js"
import { handlerTag } from "../dsl/Operation.js"
import { missingPart, needsTransactions, optionOutOfRange, type Diagnostic } from "../model/DiagnosticCode.js"
import { CompileError, InvalidId, type StoreError } from "../model/Errors.js"
import { checkId, defaultNamespace } from "../model/Ids.js"
import type { Plan } from "../model/Plan.js"
import type { Lease, RunRecord } from "../model/Records.js"
import { CheckpointStore, type CheckpointStoreService } from "../store/CheckpointStore.js"
import { ended, runnable, type Listener } from "../store/LocalSignals.js"
import { Faults } from "./Faults.js"
import { runLoop, type LoopEnd } from "./internal/loop.js"
import type { RunEnv } from "./internal/session.js"
import { keepBeating, makeWorkerLease, type WorkerLease } from "./internal/workerLease.js"

/**
 * Options of a worker.
 *
 * *Shape.* `concurrency`: runs at once (16). `lease`: how long a silent worker is waited for before another takes over
 * (30 seconds); heartbeats come three times as often. `pollInterval`: how often an idle worker looks for runs that
 * nobody told it of (1 second). `drain`: how long a stopping worker waits for steps under way (10 seconds).
 * `maxValueLength`: longest JSON text of a payload or output, in characters (64 Mi).
 *
 * @category options
 * @since 0.1.0
 */
export interface WorkerOptions<Ws extends ReadonlyArray<AnyWorkflow>> {
  readonly workflows: Ws
  readonly namespace?: string
  readonly concurrency?: number
  readonly lease?: Duration.DurationInput
  readonly pollInterval?: Duration.DurationInput
  readonly drain?: Duration.DurationInput
  readonly maxValueLength?: number
}

/**
 * A running worker.
 *
 * @category services
 * @since 0.1.0
 */
export class Worker extends Context.Tag("@cairn/core/Worker")<
  Worker,
  {
    readonly workerId: string
    /** Run ids that this worker executes now. */
    readonly running: Effect.Effect<ReadonlyArray<string>>
  }
>() {
  /**
   * Runs workflows in the background while the layer lives. It asks for what the workflows need: handlers of their
   * operations and services of their steps.
   *
   * *Errors.* `CompileError`: a workflow does not compile, or the store lacks what it needs. `InvalidId`: the namespace.
   * `StoreError`: the store is away.
   *
   * @example
   * ```ts
   * import { Cairn, MemoryStore, Worker, Workflow } from "@cairn/core"
   * import { Effect, Layer, Schema } from "effect"
   *
   * const greet = Workflow.make("greet", { version: 1, input: Schema.String })
   *   .step("text", { effects: [], output: Schema.String }, ({ input }) => `Hello, ${input}`)
   *   .output(Schema.String, ({ results }) => results.text)
   *   .compile()
   *
   * const program = Effect.gen(function* () {
   *   const handle = yield* Cairn.start(greet, "Ada", { runId: "greet-ada" })
   *   return yield* handle.result
   * })
   * const live = Worker.layer({ workflows: [greet] }).pipe(Layer.provideMerge(MemoryStore.layer))
   * await Effect.runPromise(Effect.provide(program, live))
   * // => "Hello, Ada"
   * ```
   */
  static layer<const Ws extends ReadonlyArray<AnyWorkflow>>(
    options: WorkerOptions<Ws>,
  ): Layer.Layer<Worker, CompileError | InvalidId | StoreError, CheckpointStore | needsOfWorkflow<Ws[number]>> {
    return Layer.scoped(Worker, start(options)) as never
  }
}

interface Settings {
  readonly namespace: string
  readonly concurrency: number
  readonly leaseMs: number
  readonly pollMs: number
  readonly drainMs: number
  readonly maxValueLength: number
}

const ranges = {
  concurrency: [1, 10_000],
  leaseMs: [50, 86_400_000],
  pollMs: [1, 3_600_000],
  drainMs: [0, 86_400_000],
  maxValueLength: [1, 512 * 1024 * 1024],
} as const

const settings = (options: WorkerOptions<any>): Effect.Effect<Settings, CompileError | InvalidId> =>
  Effect.gen(function* () {
    const ms = (input: Duration.DurationInput | undefined, fallback: number): number =>
      input === undefined ? fallback : Duration.toMillis(input)
    const made: Settings = {
      namespace: yield* checkId("namespace", options.namespace ?? defaultNamespace),
      concurrency: options.concurrency ?? 16,
      leaseMs: ms(options.lease, 30_000),
      pollMs: ms(options.pollInterval, 1_000),
      drainMs: ms(options.drain, 10_000),
      maxValueLength: options.maxValueLength ?? 64 * 1024 * 1024,
    }
    const diagnostics = Object.entries(ranges).flatMap(([name, [least, most]]): ReadonlyArray<Diagnostic> => {
      const value = made[name as keyof typeof ranges]
      return value >= least && value <= most
        ? []
        : [
            {
              code: "CRN110",
              step: null,
              message: optionOutOfRange("the worker", name, `from ${least} to ${most}`, String(value)),
            },
          ]
    })
    if (diagnostics.length > 0) return yield* new CompileError({ workflow: "(worker)", diagnostics })
    return made
  })

interface Runnable {
  readonly workflow: AnyWorkflow
  readonly plan: Plan
}

/** What a plan asks of its surroundings: checked when the worker starts, not when a run reaches the step. */
const unmet = (plan: Plan, store: CheckpointStoreService, context: Context.Context<any>): ReadonlyArray<Diagnostic> =>
  plan.nodes.flatMap((node): ReadonlyArray<Diagnostic> => [
    ...(node.effects.some((effect) => effect.kind === "transaction") && !store.capabilities.transactions
      ? [{ code: "CRN106" as const, step: node.name, message: needsTransactions(node.name, store.capabilities.name) }]
      : []),
    ...node.operations
      .filter((operation) => Context.getOption(context, handlerTag(operation.name))._tag === "None")
      .map((operation) => ({
        code: "CRN107" as const,
        step: node.name,
        message: missingPart(node.name, `handler for '${operation.name}'; provide its toLayer(..) to the worker`),
      })),
  ])

const compiled = (
  workflows: ReadonlyArray<AnyWorkflow>,
  store: CheckpointStoreService,
  context: Context.Context<any>,
): Effect.Effect<ReadonlyMap<string, Runnable>, CompileError> =>
  Effect.gen(function* () {
    const byName = new Map<string, Runnable>()
    for (const workflow of workflows) {
      const plan = yield* workflow.plan as Either.Either<Plan, CompileError>
      const diagnostics = unmet(plan, store, context)
      if (diagnostics.length > 0) return yield* new CompileError({ workflow: plan.workflow, diagnostics })
      byName.set(JSON.stringify([plan.workflow, plan.version]), { workflow, plan })
    }
    return byName
  })

interface Owned {
  readonly run: RunRecord
  readonly since: number
  /** Set when the store grants it to somebody else: nothing of it may start any more. */
  lost: boolean
  fiber: Fiber.RuntimeFiber<LoopEnd, unknown> | null
}

/** The moving parts of one worker. */
interface Core {
  readonly settings: Settings
  readonly store: CheckpointStoreService
  readonly lease: WorkerLease
  readonly runnables: ReadonlyMap<string, Runnable>
  readonly env: Omit<RunEnv, "definition" | "plan" | "leaseRemainingMs">
  readonly owned: Map<string, Owned>
  readonly scope: Scope.Scope
  draining: boolean
}

/** Timers beyond this are left to polling: a worker keeps no timer for a run that sleeps for days. */
const maxTimerMs = 60_000

const afterEnd = (core: Core, entry: Owned, exit: Exit.Exit<LoopEnd, unknown>): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { run } = entry
    // The same worker may have claimed the run anew after its lease had ended: that entry stays.
    if (core.owned.get(run.runId) === entry) core.owned.delete(run.runId)
    yield* core.store.signals.send(ended(run.namespace, run.runId))
    // A place is free.
    yield* core.store.signals.send(runnable)
    if (Exit.isSuccess(exit)) {
      const end = exit.value
      if (end._tag === "Sleeping" && end.wakeInMs <= maxTimerMs) {
        yield* Effect.forkIn(Effect.delay(core.store.signals.send(runnable), end.wakeInMs), core.scope)
      }
    } else if (!Cause.isInterruptedOnly(exit.cause)) {
      // LeaseLost, or a store that was away for too long: the run goes on wherever it is claimed next.
      yield* Effect.logWarning(`run '${run.runId}' left this worker`, exit.cause)
    }
  })

const execute = (core: Core, run: RunRecord): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { workflow, plan } = core.runnables.get(JSON.stringify([run.workflow, run.version]))!
    const entry: Owned = { run, since: performance.now(), lost: false, fiber: null }
    core.owned.set(run.runId, entry)
    const leaseRemainingMs = (): number => (entry.lost ? -1 : core.lease.remainingMs())
    const loop = runLoop({ ...core.env, leaseRemainingMs, definition: workflow.definition, plan }, run)
    const watched = Effect.onExit(loop, (exit) => afterEnd(core, entry, exit))
    // A daemon, not a child of the scope: a closing scope would interrupt it before it could drain.
    entry.fiber = yield* Effect.forkDaemon(Effect.interruptible(watched))
  }).pipe(Effect.uninterruptible)

/** X6: marks the runs that the store no longer grants. */
const markLost =
  (owned: ReadonlyMap<string, Owned>) =>
  (leases: ReadonlyArray<Lease>, askedAt: number): void => {
    const granted = new Map(leases.map((lease) => [lease.runId, lease]))
    for (const entry of owned.values()) {
      const lease = granted.get(entry.run.runId)
      const held = lease?.fence === entry.run.fence && lease.claimToken === entry.run.claimToken
      if (!held && entry.since < askedAt) entry.lost = true
    }
  }

/** X6: stops the fibers of lost runs; they record what they know and start nothing more. */
const stopLost = (owned: ReadonlyMap<string, Owned>): Effect.Effect<void> =>
  Effect.suspend(() =>
    Effect.forEach(
      [...owned.values()].filter(({ lost }) => lost),
      ({ run, fiber }) =>
        Effect.zipRight(
          Effect.logWarning(`run '${run.runId}' was taken over by another worker; it stops here`),
          fiber === null ? Effect.void : Fiber.interruptFork(fiber),
        ),
      { discard: true },
    ),
  )

const claimOnce = (core: Core): Effect.Effect<number, StoreError> =>
  Effect.gen(function* () {
    const limit = core.settings.concurrency - core.owned.size
    // A worker without a living lease would be refused anyway.
    if (core.draining || limit <= 0 || core.lease.remainingMs() <= 0) return 0
    const runs = yield* core.store.claim({
      namespace: core.settings.namespace,
      workerId: core.lease.workerId,
      claimToken: randomUUID(),
      workflows: [...core.runnables.values()].map(({ plan }) => ({ name: plan.workflow, version: plan.version })),
      runIds: null,
      limit,
    })
    for (const run of runs) yield* execute(core, run)
    return runs.length
  }).pipe(Effect.uninterruptible)

const keepClaiming = (core: Core, wake: Listener): Effect.Effect<never> =>
  Effect.gen(function* () {
    const claimed = yield* Effect.catchAllCause(claimOnce(core), (cause) =>
      Effect.as(Effect.logWarning("the worker could not claim runs", cause), 0),
    )
    if (claimed === 0) yield* wake.wait(core.settings.pollMs)
  }).pipe(Effect.forever)

const stop = (core: Core): Effect.Effect<void> =>
  Effect.gen(function* () {
    core.draining = true
    const fibers = [...core.owned.values()].flatMap(({ fiber }) => (fiber === null ? [] : [fiber]))
    yield* Fiber.awaitAll(fibers).pipe(Effect.interruptible, Effect.timeoutOption(core.settings.drainMs))
    // What is still at work is interrupted, and given a moment to record what it knows.
    yield* Effect.forEach(fibers, Fiber.interruptFork)
    yield* Fiber.awaitAll(fibers).pipe(Effect.interruptible, Effect.timeoutOption(1_000))
    yield* core.store.releaseWorker(core.lease.workerId).pipe(
      Effect.interruptible,
      Effect.timeoutFail({ duration: 1_000, onTimeout: () => "the store does not answer" as const }),
      // Nobody is left to tell but the log; the lease ends by itself.
      Effect.catchAllCause((cause) => Effect.logWarning("the worker could not release its runs", cause)),
    )
  })

const start = (options: WorkerOptions<ReadonlyArray<AnyWorkflow>>) =>
  Effect.gen(function* () {
    const store = yield* CheckpointStore
    const context: Context.Context<any> = (yield* Effect.context<never>()) as Context.Context<any>
    const faults = yield* Faults
    const made = yield* settings(options)
    const runnables = yield* compiled(options.workflows, store, context)
    const owned = new Map<string, Owned>()
    const lease = makeWorkerLease(store, faults, randomUUID(), made.leaseMs, markLost(owned))
    const scope = yield* Effect.scope
    const core: Core = {
      settings: made,
      store,
      lease,
      runnables,
      env: {
        store,
        context,
        faults,
        maxValueLength: made.maxValueLength,
        draining: () => core.draining,
      },
      owned,
      scope,
      draining: false,
    }
    const wake = yield* store.signals.listen(runnable)
    yield* lease.beat
    const beating = yield* Effect.forkDaemon(keepBeating(lease, made.leaseMs, stopLost(owned)))
    const claiming = yield* Effect.forkDaemon(keepClaiming(core, wake))
    yield* Effect.addFinalizer(() =>
      // Heartbeats go on while steps drain: what they do must stay ours until it is released.
      Effect.zipRight(Fiber.interrupt(claiming), Effect.ensuring(stop(core), Fiber.interruptFork(beating))),
    )
    return {
      workerId: lease.workerId,
      running: Effect.sync(() => [...core.owned.keys()]),
    }
  })
