/**
 * Clients that wait for runs, many at once, over one store: they stand in one line, so that asking how a run is never
 * takes more than one connection from those that work, nor more than a share of the store's time.
 */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { RunNotFound, StoreError } from "../../model/Errors.js"
import type { RunRecord } from "../../model/Records.js"
import type { CheckpointStoreService } from "../../store/CheckpointStore.js"

/** How often one waiting client asks a store that cannot call back, in milliseconds: quick at first, then once a second. */
export const firstPollMs = 20
const lastPollMs = 1_000

/** With many waiting, each asks less often: all together at most 200 times a second. */
const spacingMs = 5

interface Line {
  readonly turn: Effect.Semaphore
  waiting: number
}

const lines = new WeakMap<CheckpointStoreService, Line>()

const lineOf = (store: CheckpointStoreService): Line => {
  const line = lines.get(store) ?? { turn: Effect.unsafeMakeSemaphore(1), waiting: 0 }
  lines.set(store, line)
  return line
}

/** The pause before a client asks again, given its last one. */
export const nextPollMs = (store: CheckpointStoreService, pollMs: number): number =>
  Math.max(Math.min(lastPollMs, pollMs * 2), lineOf(store).waiting * spacingMs)

/** Counts a client as waiting for as long as `wait` takes. */
export const inLine = <A, E, R>(store: CheckpointStoreService, wait: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const line = lineOf(store)
      line.waiting++
      return line
    }),
    () => wait,
    (line) => Effect.sync(() => line.waiting--),
  )

/** How a run is now. What may pass is waited out for a while. */
export const ask = (
  store: CheckpointStoreService,
  namespace: string,
  runId: string,
): Effect.Effect<RunRecord, RunNotFound | StoreError> =>
  Effect.retry(lineOf(store).turn.withPermits(1)(store.findRun(namespace, runId)), {
    while: (error) => error._tag === "StoreError" && error.isRetryable,
    times: 20,
    schedule: Schedule.spaced("250 millis"),
  })
