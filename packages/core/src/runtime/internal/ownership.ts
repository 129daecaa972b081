/**
 * The runs that a worker executes: started, stopped when they are lost, and given back when nobody here runs them.
 *
 * - X6: a run that the store grants to somebody else starts nothing more here.
 * - X12: a run that was recovered more than once is on probation: it is tried beside no run that has not proven itself
 *   here, and nothing is claimed until it has made progress.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Metric from "effect/Metric"
import type * as Scope from "effect/Scope"
import type { StoreError } from "../../model/Errors.js"
import type { Lease, RunRecord } from "../../model/Records.js"
import type { CheckpointStoreService } from "../../store/CheckpointStore.js"
import { ended, runnable } from "../../store/LocalSignals.js"
import type { LoopEnd } from "./leave.js"
import { runLoop } from "./loop.js"
import { countClaimed, countEnded, stepCounters, WorkerMetrics } from "../WorkerMetrics.js"
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
  fiber: Fiber.RuntimeFiber<LoopEnd, unknown> | null
}

/** The moving parts of one worker. */
export interface Core {
  readonly settings: Settings
  readonly store: CheckpointStoreService
  readonly lease: WorkerLease
  readonly runnables: ReadonlyMap<string, Runnable>
  readonly env: Pick<RunEnv, "context" | "faults" | "draining">
  readonly owned: Map<string, Owned>
  /** Claimed, and waiting until they can be tried alone. */
  readonly probation: Array<RunRecord>
  /** The last claim brought runs that have to be tried alone: the next one takes one run only. */
  careful: boolean
  /** When the last claim ended, by this process's monotonic clock; null while one is under way. */
  claimedAt: number | null
  /** The last claim filled all places: more runs may be due. */
  backlog: boolean
  /** Whose turn it is to be claimed first. */
  turn: number
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
    yield* countEnded(run, exit, entry.lost)
    yield* Metric.set(WorkerMetrics.active, core.owned.size)
    yield* core.store.signals.send(ended(run.namespace, run.runId))
    // A place is free.
    yield* core.store.signals.send(runnable)
    if (Exit.isSuccess(exit)) {
      const end = exit.value
      if (end._tag === "Sleeping" && end.wakeInMs <= maxTimerMs) {
        const wakeUp = Effect.delay(core.store.signals.send(runnable), end.wakeInMs)
        // Interruptible, although the end of a fiber is not: otherwise a stopping worker would wait for the timer.
        yield* Effect.forkIn(Effect.interruptible(wakeUp), core.scope)
      }
    } else if (!Cause.isInterruptedOnly(exit.cause)) {
      // LeaseLost, or a store that was away for too long: the run goes on wherever it is claimed next.
      yield* Effect.logWarning(`run '${run.runId}' left this worker`, exit.cause)
    }
  })

/** X12 */
const suspect = (run: RunRecord): boolean => run.recoveries > 1

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
    yield* Effect.forEach(suspects.slice(1), (run) => handBack(core, run, "pending", null), { discard: true })
    core.probation.push(...suspects.slice(0, 1))
    core.careful = suspects.length > 0
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

const execute = (core: Core, run: RunRecord): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { workflow, plan } = core.runnables.get(JSON.stringify([run.workflow, run.version]))!
    const entry: Owned = {
      run,
      since: performance.now(),
      lost: false,
      stopping: false,
      onProbation: suspect(run),
      proven: false,
      fiber: null,
    }
    core.owned.set(run.runId, entry)
    yield* countClaimed(run)
    yield* Metric.set(WorkerMetrics.active, core.owned.size)
    const countStep = stepCounters(run.workflow)
    const { leaseMs, maxValueLength, maxRecoveries } = core.settings
    const env: RunEnv = {
      ...core.env,
      store: core.store,
      definition: workflow.definition,
      plan,
      leaseMs,
      maxValueLength,
      maxRecoveries,
      leaseRemainingMs: () => (entry.lost ? -1 : core.lease.remainingMs()),
      onProgress: (durationMs) => {
        const counted = countStep(durationMs)
        if (entry.proven) return counted
        entry.proven = true
        return entry.onProbation || core.probation.length > 0
          ? Effect.zipRight(counted, core.store.signals.send(runnable))
          : counted
      },
    }
    const loop = runLoop(env, run)
    const watched = Effect.onExit(loop, (exit) => afterEnd(core, entry, exit))
    // A daemon, not a child of the scope: a closing scope would interrupt it before it could drain.
    entry.fiber = yield* Effect.forkDaemon(Effect.interruptible(watched))
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

/** Releases a run as it stands: what it has recorded, the reason for which it fails included, stays. */
const handBack = (
  core: Core,
  run: RunRecord,
  status: "pending" | "sleeping",
  wakeInMs: number | null,
): Effect.Effect<void, StoreError> =>
  core.store
    .commit({
      lease: { namespace: run.namespace, runId: run.runId, fence: run.fence, claimToken: run.claimToken ?? "" },
      base: run.seq,
      seq: run.seq + 1,
      run: { status, cursor: run.cursor, wakeInMs, output: null, failure: run.failure, parked: null, release: true },
      steps: [],
      effects: [],
      attempts: [],
    })
    .pipe(
      Effect.asVoid,
      Effect.catchTag("LeaseLost", () => Effect.void),
    )

/** Long enough that a run which the store cannot take in is not tried in a loop, in milliseconds. */
const giveBackMs = 5_000

/**
 * Gives back a run that this worker holds by the store's account and that nobody here runs: its fiber ended because the
 * store failed it, or the answer to the claim was lost. While the worker lives, no other could claim it.
 */
const giveBack = (core: Core, lease: Lease): Effect.Effect<void, StoreError> =>
  Effect.gen(function* () {
    const run = yield* core.store.findRun(lease.namespace, lease.runId)
    if (run.fence !== lease.fence || run.claimToken !== lease.claimToken) return
    yield* handBack(core, run, "sleeping", giveBackMs)
    yield* Effect.logWarning(`run '${lease.runId}' was given back: nothing here runs it`)
    // Gone, or somebody else's by now: then there is nothing to give back.
  }).pipe(Effect.catchTag("RunNotFound", () => Effect.void))

/** Leases that the last heartbeat found and that belong to nothing here. */
export const giveBackOrphans = (core: Core, leases: ReadonlyArray<Lease>, askedAt: number): Effect.Effect<void> =>
  Effect.suspend(() => {
    // What a claim that was under way has brought is not known here yet.
    if (core.draining || core.claimedAt === null || core.claimedAt >= askedAt) return Effect.void
    const waiting = new Set(core.probation.map(({ runId }) => runId))
    return Effect.forEach(
      leases.filter(({ runId }) => !core.owned.has(runId) && !waiting.has(runId)),
      (lease) =>
        Effect.catchAllCause(giveBack(core, lease), (cause) =>
          Effect.logWarning(`run '${lease.runId}' could not be given back; the next heartbeat tries again`, cause),
        ),
      { discard: true },
    )
  })
