/**
 * A worker claims runs that are due and executes them, several at once, each under its lease and fence.
 *
 * - X12: only the takeover of an unreleased lease counts as a recovery (the store counts).
 * - W7: a worker that stops claims nothing, lets steps under way end for a while, and releases what it holds.
 */
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { randomUUID } from "node:crypto"
import type { AnyWorkflow, needsOfWorkflow } from "../builder/Workflow.js"
import type { CompileError, InvalidId, StoreError } from "../model/Errors.js"
import type { Durability } from "../dsl/Definition.js"
import type { Prices } from "../model/Usage.js"
import { CheckpointStore, type CheckpointStoreService, type Commit } from "../store/CheckpointStore.js"
import { reachedOf, runnable, scheduled, type Listener } from "../store/LocalSignals.js"
import { Faults, type FaultsService } from "./Faults.js"
import { heed, keepHeeding } from "./internal/arrivals.js"
import { inContextOfBuilder } from "./internal/asyncContext.js"
import { claimOnce } from "./internal/claiming.js"
import { bytesOf, joined } from "./internal/joining.js"
import { giveBackOrphans } from "./internal/givingBack.js"
import { openLocal, type Local } from "./internal/local.js"
import { markLost, noteHeld, restHeart, stopLost, type Core, type Owned } from "./internal/ownership.js"
import { makeDueTimes, makePace } from "./internal/pace.js"
import { keepScheduling } from "./internal/scheduling.js"
import { keepSweeping } from "./internal/sweeping.js"
import { compiled, settings, type Settings } from "./internal/settings.js"
import { answerWithinMs, keepBeating, makeWorkerLease, type WorkerLease } from "./internal/workerLease.js"
import { WriteBehind } from "./WriteBehind.js"

/**
 * Options of a worker.
 *
 * *Shape.* `concurrency`: runs at once (16). `lease`: how long a silent worker is waited for before another takes over
 * (30 seconds); heartbeats come three times as often, as long as it holds anything. `pollInterval`: how often it looks
 * for runs that nobody told it of, and for what has reached those that it executes, where the store does not tell it (1 second). `maxPollInterval`: how long the pauses of an idle worker grow: one that has
 * had nothing to do for a lease's time doubles them until they are so long (80 times `pollInterval` with a store that wakes
 * it, as Postgres does; twice without). Wake-ups, and runs that went to sleep here and are due, are not waited for. It is
 * how late an idle worker may find a run that no wake-up tells of: started by another process where the store has none, put
 * to sleep by another process, or left by a worker that died, whose lease has to end first. `drain`: how long a stopping worker waits for steps under way (10 seconds);
 * it is done within a second of that, whatever its store does.
 * `maxRecoveries`: how often a run may bring its worker down, without progress between, before it is parked for a person
 * (3). `maxValueLength`: longest JSON text of a payload or output, in characters (64 Mi; what clients
 * hand to runs may always have 64 Mi). `durability`: which commits are
 * waited for, unless the workflow says so itself (`barrier`). `maxPendingCommits` (10,000) and `maxPendingBytes` (64 Mi):
 * what may be accepted and not yet durable; past either, steps wait for the store. While anything waits, steps that only compute
 * leave the event loop a turn every 50 ms, in which a flush begins: so much of them is repeated after a kill.
 * `local`: a directory on a disk of this host, for all workers of it: with it, whoever is started after a killed worker takes its runs over at once, and `log`
 * keeps what was accepted until the store has it: `synced` to the disk (the default), `written` to the system's memory
 * (it survives the process, not the host), or `off`. `keepRejected`: for how long the raw outputs that schemas have refused are kept (30 days;
 * `Duration.infinity` for ever), those of runs in review aside; a worker looks once a day. `prices`: what models cost, for the usage that steps report; a model that
 * is not there has no price, and what it costs is unknown. `budget.day`: what all runs of the namespace may spend on one day (UTC),
 * in micro-dollars (`Usage.dollars(50)`), in the eyes of this worker (see `Budget`).
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
  readonly maxPollInterval?: Duration.DurationInput
  readonly drain?: Duration.DurationInput
  readonly maxRecoveries?: number
  readonly maxValueLength?: number
  readonly durability?: Durability
  readonly local?: { readonly directory: string; readonly log?: "synced" | "written" | "off" }
  readonly maxPendingCommits?: number
  readonly maxPendingBytes?: number
  readonly keepRejected?: Duration.DurationInput
  readonly prices?: Prices
  readonly budget?: { readonly day: number }
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
   * *Errors.* `CompileError`: a workflow does not compile, two share a name and version, or something that one needs is
   * missing. `InvalidId`: the namespace. `StoreError`: the store is away.
   *
   * It logs what people should know. Effect's default logger writes to standard output; where that is a protocol (MCP,
   * LSP), provide `Logger.replace(Logger.defaultLogger, Logger.withConsoleError(Logger.stringLogger))`.
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
    return inContextOfBuilder(Layer.scoped(Worker, start(options))) as never
  }
}

/** `looked`: told once it has looked for the first time. */
const keepClaiming = (core: Core, wake: Listener, looked: Deferred.Deferred<void>): Effect.Effect<never> =>
  Effect.gen(function* () {
    const pace = yield* makePace(core.settings, core.dueTimes)
    for (;;) {
      const claimed = yield* Effect.catchAllCause(claimOnce(core), (cause) =>
        Effect.as(Effect.logWarning("the worker could not claim runs", cause), null),
      )
      Deferred.unsafeDone(looked, Effect.void)
      if (claimed !== 0) pace.quicken()
      // Fewer than there was room for: nothing more is due.
      if (claimed !== null && claimed > 0 && core.backlog) continue
      if (yield* wake.wait(yield* pace.nextMs(core.owned.size === 0))) pace.quicken()
    }
  })

/**
 * How long a worker that stops waits for an answer, and for all that it waits for together beyond its drain; where that is used
 * up, for each; in milliseconds. It is done within a second of its drain, its store's goodbye included, whatever its store does.
 */
const answerMs = 600
const leastMs = 100
const leastReleaseMs = 150

/** A call that cannot be interrupted is left behind. */
const leftBehind = <A, E>(call: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.interruptible(Effect.disconnect(Effect.interruptible(call)))

/** Waits for fibers, for so many milliseconds. */
const awaited = (
  fibers: ReadonlyArray<Fiber.RuntimeFiber<unknown, unknown>>,
  ms: number,
): Effect.Effect<Option.Option<unknown>> => Effect.timeoutOption(Effect.interruptible(Fiber.awaitAll(fibers)), ms)

/** `claiming`: what may bring runs still, and has been told to end. */
const stop = (core: Core, claiming: ReadonlyArray<Fiber.RuntimeFiber<unknown, unknown>>): Effect.Effect<void> =>
  Effect.gen(function* () {
    const began = performance.now()
    const atWork = () => [...core.owned.values()].flatMap(({ fiber }) => (fiber === null ? [] : [fiber]))
    const drainedAt = began + core.settings.drainMs
    const drained = Effect.suspend(() => awaited(atWork(), drainedAt - performance.now()))
    // A claim, or a firing, that is under way is waited for beside the steps, unless the store has stopped answering.
    const [answered] = yield* Effect.all([awaited(claiming, answerMs), drained], { concurrency: 2 })
    yield* drained
    const left = (least: number) => Math.max(least, drainedAt + answerMs - performance.now())
    const fibers = atWork()
    // What is still at work is interrupted, and given a moment to record what it knows.
    yield* Effect.forEach(fibers, Fiber.interruptFork)
    yield* awaited(fibers, left(leastMs))
    // W7: what they have accepted is written.
    yield* core.env.buffer.drained.pipe(Effect.interruptible, Effect.timeoutOption(left(leastMs)))
    // Whatever is still left behind starts no operation any more, and waits for no store.
    core.lease.end()
    core.env.buffer.close()
    yield* leftBehind(core.store.releaseWorker(core.lease.workerId)).pipe(
      Effect.timeoutFail({
        duration: Option.isNone(answered) ? leastReleaseMs : Math.min(answerMs, left(leastReleaseMs)),
        onTimeout: () => "the store does not answer" as const,
      }),
      // Nobody is left to tell but the log; the lease ends by itself.
      Effect.catchAllCause((cause) => Effect.logWarning("the worker could not release its runs", cause)),
    )
  })

/** The write-behind buffer of this worker, for all of its runs. */
const bufferOf = (
  store: CheckpointStoreService,
  faults: FaultsService,
  settings: Settings,
  lease: WorkerLease,
  owned: ReadonlyMap<string, Owned>,
  local: Local | null,
): Effect.Effect<WriteBehind<Commit>> =>
  WriteBehind.make({
    ...(local === null || local.log === null ? {} : { log: local.log }),
    write: store.commit,
    join: joined,
    sizeOf: bytesOf,
    mayRetry: () => lease.remainingMs() > 0,
    onRefused: ({ runId, fence }) => {
      const entry = owned.get(runId)
      if (entry?.run.fence === fence) entry.lost = true
    },
    reach: (point, { runId }) => faults.reach(point, { runId, step: "", attempt: 0 }),
    maxCommits: settings.maxPendingCommits,
    maxBytes: settings.maxPendingBytes,
    timeoutMs: answerWithinMs(settings.leaseMs),
  })

const start = (options: WorkerOptions<ReadonlyArray<AnyWorkflow>>) =>
  Effect.gen(function* () {
    const store = yield* CheckpointStore
    const context: Context.Context<any> = (yield* Effect.context<never>()) as Context.Context<any>
    const faults = yield* Faults
    const made = yield* settings(options, store.capabilities)
    const runnables = yield* compiled(options.workflows, store, context, made.leaseMs)
    const owned = new Map<string, Owned>()
    let orphans: Effect.Effect<void> = Effect.void
    const lease = makeWorkerLease(store, faults, randomUUID(), made.leaseMs, (leases, askedAt) => {
      markLost(owned, leases, askedAt)
      noteHeld(core, leases, askedAt)
      orphans = Effect.zipRight(heed(store, owned, leases), giveBackOrphans(core, leases))
    })
    const log = made.local === null ? null : yield* openLocal(store, made, made.local, lease.workerId)
    const buffer = yield* bufferOf(store, faults, made, lease, owned, log)
    if (log !== null) log.isSettled = () => buffer.isEmpty
    const core: Core = {
      settings: made,
      store,
      lease,
      runtime: yield* Effect.runtime<never>(),
      runnables,
      budgets: {
        day: made.budget?.day ?? null,
        of: ({ version, workflow }) => runnables.get(JSON.stringify([workflow, version]))?.workflow.definition.budget,
      },
      env: {
        buffer,
        context,
        faults,
        draining: () => core.draining,
      },
      owned,
      probation: [],
      careful: false,
      claimedAt: performance.now(),
      claiming: new Set(),
      mayHold: false,
      rested: false,
      dueTimes: makeDueTimes(),
      backlog: false,
      turn: 0,
      draining: false,
    }
    const wake = yield* store.signals.listen(runnable)
    yield* lease.beat
    const beating = yield* Effect.forkDaemon(
      keepBeating(
        lease,
        made.leaseMs,
        Effect.zipRight(
          stopLost(owned),
          Effect.suspend(() => orphans),
        ),
        () => restHeart(core),
      ),
    )
    const ear = yield* store.signals.listen(reachedOf(lease.workerId))
    const heeding = yield* Effect.forkDaemon(
      keepHeeding(store, owned, lease.workerId, made, ear, () => core.claimedAt === null),
    )
    const looked = yield* Deferred.make<void>()
    const claiming = yield* Effect.forkDaemon(keepClaiming(core, wake, looked))
    const put = yield* store.signals.listen(scheduled)
    // Runs first: what is started right away does not wait behind a look for schedules.
    const scheduling = yield* Effect.forkDaemon(Effect.zipRight(Deferred.await(looked), keepScheduling(core, put)))
    const sweeping = yield* Effect.forkDaemon(keepSweeping(core))
    yield* Effect.addFinalizer(() =>
      // Heartbeats go on while steps drain: what they do must stay ours until it is released.
      Effect.suspend(() => {
        core.draining = true
        return Effect.forEach([claiming, scheduling, sweeping], Fiber.interruptFork, { discard: true }).pipe(
          Effect.zipRight(stop(core, [claiming, scheduling])),
          Effect.ensuring(Effect.forEach([beating, heeding], Fiber.interruptFork, { discard: true })),
        )
      }),
    )
    return {
      workerId: lease.workerId,
      running: Effect.sync(() => [...core.owned.keys()]),
    }
  })
