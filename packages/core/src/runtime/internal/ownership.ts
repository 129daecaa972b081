/**
 * The runs that a worker executes: started, stopped when they are lost, and let go when they have left.
 *
 * - X6: a run that the store grants to somebody else starts nothing more here.
 * - X12: a run that was recovered more than once is on probation: it is tried beside no run that has not proven itself
 *   here, and nothing is claimed until it has made progress.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Runtime from "effect/Runtime"
import { StoreError } from "../../model/Errors.js"
import type { Lease, RunRecord } from "../../model/Records.js"
import type { CheckpointStoreService } from "../../store/CheckpointStore.js"
import { ended, runnable } from "../../store/LocalSignals.js"
import { handBack, hopeless, parkHopeless } from "./givingBack.js"
import { listenFor, noArrivals, type Arrivals } from "./arrivals.js"
import { limitsOf } from "./flowOf.js"
import type { LoopEnd } from "./leave.js"
import { runLoop } from "./loop.js"
import type { DueTimes } from "./pace.js"
import { countActive, countClaimed, countEnded, countStep } from "../WorkerMetrics.js"
import type { RunEnv } from "./session.js"
import type { Runnable, Settings } from "./settings.js"
import type { WorkerLease } from "./workerLease.js"

export interface Owned {
  readonly run: RunRecord
  readonly since: number
  /** Set when the store grants it to somebody else: nothing of it may start any more. */
  lost: boolean
  /** Set once its fiber has been told. */
  stopping: boolean
  /** X12 */
  readonly onProbation: boolean
  /** It has committed a step here: whatever kills this worker next is hardly this run. */
  proven: boolean
  readonly arrivals: Arrivals
  inbox: number
  fiber: Fiber.RuntimeFiber<LoopEnd, unknown> | null
}

/** The moving parts of one worker. */
export interface Core {
  readonly settings: Settings
  readonly store: CheckpointStoreService
  readonly lease: WorkerLease
  readonly runnables: ReadonlyMap<string, Runnable>
  readonly runtime: Runtime.Runtime<never>
  readonly env: Pick<RunEnv, "buffer" | "context" | "faults" | "draining">
  readonly budgets: RunEnv["budgets"]
  readonly owned: Map<string, Owned>
  /** Claimed, and waiting until they can be tried alone. */
  readonly probation: Array<RunRecord>
  /** The last claim brought runs that have to be tried alone: the next one takes one run only. */
  careful: boolean
  /** When the last claim ended, by this process's monotonic clock; null while one is under way. */
  claimedAt: number | null
  /** Tokens of claims whose answers have not been taken in yet. */
  readonly claiming: Set<string>
  /** By the store's account this worker may hold runs, here or not: its lease is prolonged. */
  mayHold: boolean
  /** A heartbeat was left out because it holds nothing: it beats before it claims. */
  rested: boolean
  /** When runs that went to sleep here are due. */
  readonly dueTimes: DueTimes
  /** The last claim filled all places: more runs may be due. */
  backlog: boolean
  /** Whose turn it is to be claimed first. */
  turn: number
  draining: boolean
}

const afterEnd = (core: Core, entry: Owned, exit: Exit.Exit<LoopEnd, unknown>): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { run } = entry
    // The same worker may have claimed the run anew after its lease had ended: that entry stays.
    if (core.owned.get(run.runId) === entry) core.owned.delete(run.runId)
    countEnded(run, exit, entry.lost)
    countActive(core.owned.size)
    const { signals } = core.store
    const isOver = Exit.isSuccess(exit) && exit.value._tag === "Final"
    // A place is free where there was none; or whatever left is to be claimed again, or something waited for it.
    const isLimited = limitsOf(core.runnables.get(JSON.stringify([run.workflow, run.version]))!.workflow.definition)
    const isAwaited =
      core.owned.size + 1 >= core.settings.concurrency ||
      entry.onProbation ||
      core.probation.length > 0 ||
      // D35: others of its workflow or key may go on.
      isLimited !== undefined
    const completion = Exit.isSuccess(exit) && exit.value._tag === "Final" ? exit.value.completion : null
    const over = signals.send(ended(run.namespace, run.runId), completion)
    const told = isOver && !isAwaited ? over : Effect.zipRight(over, signals.send(runnable))
    // Before the signal that a place is free: who hears it looks at the times anew.
    if (Exit.isSuccess(exit)) {
      return exit.value._tag === "Sleeping" ? Effect.zipRight(core.dueTimes.add(exit.value.wakeInMs), told) : told
    }
    // LeaseLost, or a store that was away for too long: the run goes on wherever it is claimed next.
    return Cause.isInterruptedOnly(exit.cause)
      ? told
      : Effect.zipRight(told, Effect.logWarning(`run '${run.runId}' left this worker`, exit.cause))
  })

/** X12 */
const suspect = (run: RunRecord): boolean => run.recoveries > 1

/**
 * X12: whether what a run gets through is kept at once, so that it is known where it stood when it brings its worker down again:
 * on probation, and the last time that it is tried. Most workers are killed by something else, and their runs are made up for
 * as fast as they went.
 */
const isTraced = ({ settings }: Core, run: RunRecord): boolean =>
  suspect(run) || (run.recoveries > 0 && run.recoveries >= settings.maxRecoveries)

/**
 * Starts what was claimed. Of what has brought workers down before, one waits until it can be tried alone; the others are
 * given back: one that is merely held while another kills this worker would count as recovered, and be parked for it.
 */
export const take = (core: Core, runs: ReadonlyArray<RunRecord>): Effect.Effect<void, StoreError> =>
  Effect.gen(function* () {
    const suspects = runs.filter(suspect)
    yield* Effect.forEach(
      runs.filter((run) => !suspect(run)),
      (run) => execute(core, run),
      { discard: true },
    )
    core.probation.push(...suspects.slice(0, 1))
    core.careful = suspects.length > 0
    yield* Effect.forEach(suspects.slice(1), (run) => handBack(core, run, "pending", null), { discard: true })
  })

/** Whether a run beside it could be brought down before it has got anywhere. After a lease's time it is not waited for. */
const endangered = (core: Core, now: number): boolean =>
  [...core.owned.values()].some(({ proven, since }) => !proven && now - since < core.settings.leaseMs)

/** Whether runs on probation leave no room for others now; starts the next of them if nobody is in its way. */
export const minding = (core: Core): Effect.Effect<boolean> =>
  Effect.suspend(() => {
    if ([...core.owned.values()].some(({ onProbation, proven }) => onProbation && !proven)) return Effect.succeed(true)
    if (core.probation.length === 0) return Effect.succeed(false)
    return endangered(core, performance.now())
      ? Effect.succeed(true)
      : Effect.as(execute(core, core.probation.shift()!), true)
  })

/** X5: a cancel has interrupted the run's step, and nobody else its fiber: the run goes on here, from its records. */
const isCutOff = (core: Core, { arrivals, lost }: Owned, exit: Exit.Exit<LoopEnd, unknown>): boolean =>
  arrivals.cutOff && !lost && !core.draining && Exit.isFailure(exit) && Cause.isInterruptedOnly(exit.cause)

const execute = (core: Core, run: RunRecord): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { workflow, plan } = core.runnables.get(JSON.stringify([run.workflow, run.version]))!
    const entry: Owned = {
      run,
      since: performance.now(),
      lost: false,
      stopping: false,
      onProbation: suspect(run),
      proven: false,
      arrivals: noArrivals(),
      inbox: run.inbox,
      fiber: null,
    }
    core.owned.set(run.runId, entry)
    countClaimed(run)
    countActive(core.owned.size)
    const { leaseMs, maxValueLength, maxRecoveries } = core.settings
    const { buffer, context, draining, faults } = core.env
    // Written out: an object that is spread into another one of so many members is a dictionary to V8, and slow.
    const env: RunEnv = {
      store: core.store,
      definition: workflow.definition,
      plan,
      context,
      faults,
      leaseRemainingMs: () => (entry.lost ? -1 : core.lease.remainingMs()),
      leaseMs,
      maxValueLength,
      maxRecoveries,
      prices: core.settings.prices,
      budgets: core.budgets,
      buffer,
      queue: buffer.open(
        { namespace: run.namespace, runId: run.runId, fence: run.fence, claimToken: run.claimToken ?? "" },
        run.seq,
      ),
      durability: isTraced(core, run) ? "step" : (workflow.definition.durability ?? core.settings.durability),
      onProgress: (durationMs) => {
        countStep(run.workflow, durationMs)
        if (entry.proven) return
        entry.proven = true
        if (entry.onProbation || core.probation.length > 0) return core.store.signals.send(runnable)
      },
      draining,
      arrivals: entry.arrivals,
    }
    const topic = ended(run.namespace, run.runId)
    core.store.signals.underWay.set(topic, env.queue)
    const deaf = listenFor(core.store, entry, core.runtime)
    const begin = (cutOff: boolean): Effect.Effect<void> =>
      Effect.suspend(() => {
        Object.assign(entry.arrivals, noArrivals())
        const watched = Effect.onExit(runLoop(env, run, cutOff), (exit) => {
          if (isCutOff(core, entry, exit)) return begin(true)
          deaf()
          if (core.store.signals.underWay.get(topic) === env.queue) core.store.signals.underWay.delete(topic)
          const error = hopeless(exit)
          const left = Effect.suspend(() => afterEnd(core, entry, exit))
          return error === null ? left : Effect.zipRight(parkHopeless(core, env.queue, error), left)
        })
        // A daemon, not a child of the scope: a closing scope would interrupt it before it could drain.
        return Effect.map(Effect.forkDaemon(Effect.interruptible(watched)), (fiber) => {
          entry.fiber = fiber
        })
      })
    return begin(false)
  }).pipe(Effect.uninterruptible)

/** X6: marks the runs that the store no longer grants. */
export const markLost = (owned: ReadonlyMap<string, Owned>, leases: ReadonlyArray<Lease>, askedAt: number): void => {
  const granted = new Map(leases.map((lease) => [lease.runId, lease]))
  for (const entry of owned.values()) {
    const lease = granted.get(entry.run.runId)
    const held = lease?.fence === entry.run.fence && lease.claimToken === entry.run.claimToken
    if (!held && entry.since < askedAt) entry.lost = true
  }
}

/** X6: stops the fibers of lost runs; they record what they know and start nothing more. */
export const stopLost = (owned: ReadonlyMap<string, Owned>): Effect.Effect<void> =>
  Effect.suspend(() =>
    Effect.forEach(
      [...owned.values()].filter(({ lost, stopping }) => lost && !stopping),
      (entry) => {
        entry.stopping = true
        return Effect.zipRight(
          Effect.logWarning(`run '${entry.run.runId}' was taken over by another worker; it stops here`),
          entry.fiber === null ? Effect.void : Fiber.interruptFork(entry.fiber),
        )
      },
      { discard: true },
    ),
  )

/** Whether this worker holds anything, as a heartbeat found it. What a claim does at the same time is not known yet. */
export const noteHeld = (core: Core, leases: ReadonlyArray<Lease>, askedAt: number): void => {
  core.rested = false
  if (leases.length > 0) core.mayHold = true
  else if (
    core.owned.size === 0 &&
    core.probation.length === 0 &&
    core.claimedAt !== null &&
    core.claimedAt < askedAt
  ) {
    core.mayHold = false
  }
}

/** A lease of which no more has passed than this share was prolonged just now. */
const justNow = 1 / 30

/** Whether the next heartbeat may be left out, and notes that it is. */
export const restHeart = (core: Core): boolean => {
  // A claim that is under way has beaten itself.
  const isFresh = core.lease.remainingMs() > core.settings.leaseMs * (1 - justNow)
  if (!core.mayHold && core.claimedAt === null && isFresh) return true
  core.rested = !core.mayHold && core.claimedAt !== null
  return core.rested
}
