/** Thousands of clients that wait take one connection at a time from those that work, and less of it the more they are. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Schema } from "effect"
import { Cairn, CheckpointStore, Workflow, type CheckpointStoreService } from "../../src/index.js"
import { makeBench, startWorker } from "./support/bench.js"

const idle = Workflow.make("idle", { version: 1, input: Schema.Int })
  .output(Schema.Int, ({ input }) => input)
  .compile()

/** A store whose look-ups take a while, and that notes how many are under way at once. */
const slow = (store: CheckpointStoreService) => {
  const seen = { now: 0, most: 0, all: 0 }
  const findRun: CheckpointStoreService["findRun"] = (namespace, runId) =>
    Effect.acquireUseRelease(
      Effect.sync(() => {
        seen.all++
        seen.most = Math.max(seen.most, ++seen.now)
      }),
      () => Effect.delay(store.findRun(namespace, runId), "1 millis"),
      () => Effect.sync(() => seen.now--),
    )
  return { seen, store: { ...store, findRun } }
}

const waiters = 500

describe("clients that wait", () => {
  it.live("ask one after the other, and all together not more often than the store can bear", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const { seen, store } = slow(bench.store)
      const waiting = yield* Effect.forEach(
        Array.from({ length: waiters }, (_, n) => n),
        (n) => Effect.flatMap(Cairn.start(idle, n, { runId: `r${n}` }), (handle) => Effect.fork(handle.result)),
      ).pipe(Effect.provide(Layer.succeed(CheckpointStore, store)))
      yield* Effect.repeat(Effect.sleep(10), { until: () => seen.all >= waiters })
      const before = seen.all
      yield* Effect.sleep("1 second")
      // No more than 200 a second, whatever their number, and a few that were in line.
      expect(seen.all - before).toBeLessThan(400)
      expect(seen.most).toBe(1)
      // They are told at once all the same when the runs end in their own process.
      yield* startWorker(store, { workflows: [idle] })
      expect(yield* Fiber.join(Fiber.all(waiting))).toEqual(Array.from({ length: waiters }, (_, n) => n))
      expect(seen.most).toBe(1)
    }).pipe(Effect.scoped),
  )
})
