/**
 * A worker's lease: one row in the store, prolonged by heartbeats, and what this process may believe of it.
 *
 * - X8: the store's clock decides who owns what. This process only needs to know how long it may still believe that it
 *   owns anything, and measures that on its own monotonic clock, from before the request that prolonged the lease.
 * - X6: a heartbeat says which leases the store still grants; a run that is missing is stopped at once.
 */
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Schedule from "effect/Schedule"
import { StoreError } from "../../model/Errors.js"
import type { HeldLease } from "../../model/Records.js"
import type { CheckpointStoreService } from "../../store/CheckpointStore.js"
import type { FaultsService } from "../Faults.js"
import { WorkerMetrics } from "../WorkerMetrics.js"

export interface WorkerLease {
  readonly workerId: string
  /** Milliseconds left, by this process's monotonic clock; negative once it has ended. */
  readonly remainingMs: () => number
  /** The worker stops: from now on it believes in no lease. */
  readonly end: () => void
  /** One heartbeat: prolongs the lease, after `onGranted` was told what the store grants. */
  readonly beat: Effect.Effect<void, StoreError>
}

/** Process time that a stopped clock cannot fake: `performance.now` goes on while the process is stopped. */
const monotonicMs = (): number => performance.now()

/**
 * How long a write under the lease may go without an answer before it is sent again, in milliseconds: a connection that swallows
 * everything is noticed while there is time for another. Not so short that a slow answer is taken for none.
 */
export const answerWithinMs = (leaseMs: number): number => Math.min(leaseMs, Math.max(1_000, leaseMs / 3))

export const makeWorkerLease = (
  store: CheckpointStoreService,
  faults: FaultsService,
  workerId: string,
  leaseMs: number,
  /** Runs claimed after `askedAt` may be missing from `leases`. */
  onGranted: (leases: ReadonlyArray<HeldLease>, askedAt: number) => void,
): WorkerLease => {
  let endsAt = monotonicMs()
  let over = false
  return {
    workerId,
    remainingMs: () => (over ? -1 : endsAt - monotonicMs()),
    end: () => {
      over = true
    },
    beat: Effect.gen(function* () {
      yield* faults.reach("beforeBeat", { runId: "", step: "", attempt: 0 })
      const asked = monotonicMs()
      const { leases } = yield* Effect.timeoutFail(store.beat(workerId, leaseMs), {
        // A store that never answers must not stop the heart: there is time for another beat before the lease ends.
        duration: answerWithinMs(leaseMs),
        onTimeout: () => new StoreError({ reason: "Unavailable", operation: "beat", problem: "it did not answer" }),
      })
      // In one go, and in this order: a worker that wakes after its lease has ended must learn which runs it has lost
      // before it may believe in its lease again. Otherwise one of them could start an operation in between.
      onGranted(leases, asked)
      endsAt = asked + leaseMs
    }),
  }
}

/**
 * Beats three times a lease, so that two may fail before anything is lost; quicker while the store does not answer. Leaves
 * out those at which the worker rests. The first one was beaten by whoever started the worker.
 */
export const keepBeating = (
  lease: WorkerLease,
  leaseMs: number,
  stopLost: Effect.Effect<void>,
  rests: () => boolean,
): Effect.Effect<never> => {
  const beaten = Effect.retry(lease.beat, {
    schedule: Schedule.spaced(Math.max(10, leaseMs / 20)).pipe(Schedule.jittered),
    times: 6,
  }).pipe(
    Effect.zipRight(stopLost),
    // A heart that stops is no reason to stop the process: the lease ends by itself, and the next beat may succeed.
    Effect.catchAllCause((cause) =>
      Effect.zipRight(
        Metric.increment(WorkerMetrics.heartbeatsFailed),
        Effect.logWarning("the worker's heartbeat failed", cause),
      ),
    ),
    Effect.unlessEffect(Effect.sync(rests)),
  )
  return Effect.forever(Effect.zipRight(Effect.sleep(leaseMs / 3), beaten))
}
