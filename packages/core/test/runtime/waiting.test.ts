/** Thousands of clients that wait take one connection at a time from those that work: one look-up asks for all of them. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Schema } from "effect"
import {
  Cairn,
  CheckpointStore,
  fromDriver,
  StoreError,
  Workflow,
  type CheckpointStoreService,
} from "../../src/index.js"
import { makeBench, startWorker } from "./support/bench.js"

const idle = Workflow.make("idle", { version: 1, input: Schema.Int })
  .output(Schema.Int, ({ input }) => input)
  .compile()

/** A store whose look-ups take a while, and that notes how many are under way at once. */
const slow = (store: CheckpointStoreService) => {
  const seen = { now: 0, most: 0, looks: 0, runs: new Set<string>() }
  const findRuns: CheckpointStoreService["findRuns"] = (keys) =>
    Effect.acquireUseRelease(
      Effect.sync(() => {
        seen.looks++
        for (const { runId } of keys) seen.runs.add(runId)
        seen.most = Math.max(seen.most, ++seen.now)
      }),
      () => Effect.delay(store.findRuns(keys), "1 millis"),
      () => Effect.sync(() => seen.now--),
    )
  return { seen, store: { ...store, findRuns } }
}

const waiters = 2_000

const waitingAt = (store: CheckpointStoreService) =>
  Effect.forEach(
    Array.from({ length: waiters }, (_, n) => n),
    (n) => Effect.flatMap(Cairn.start(idle, n, { runId: `r${n}` }), (handle) => Effect.fork(handle.result)),
    { concurrency: "unbounded" },
  ).pipe(Effect.provide(Layer.succeed(CheckpointStore, store)))

describe("clients that wait", () => {
  it.live("are asked for together, one look-up at a time, and are told at once when their runs end here (P071)", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const { seen, store } = slow(bench.store)
      const waiting = yield* waitingAt(store)
      yield* Effect.repeat(Effect.sleep(10), { until: () => seen.runs.size === waiters })
      const before = seen.looks
      yield* Effect.sleep("1 second")
      // Each is asked for a few times a second at first: 2,000 waiters of one store are some dozens of look-ups.
      expect(seen.looks - before).toBeLessThan(60)
      yield* startWorker(store, { workflows: [idle] })
      expect(yield* Fiber.join(Fiber.all(waiting))).toEqual(Array.from({ length: waiters }, (_, n) => n))
      expect(seen.most).toBe(1)
    }).pipe(Effect.scoped),
  )

  it.live("learn of what ends elsewhere, and who stops waiting is not asked for any more", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const { seen, store } = slow(bench.store)
      const waiting = yield* waitingAt(store)
      yield* Fiber.interruptAll(waiting.slice(1))
      yield* Effect.sleep(100)
      seen.runs.clear()
      // Another store object over the same driver: its signals are not heard here.
      yield* startWorker(fromDriver(bench.driver), { workflows: [idle] })
      expect(yield* Fiber.join(waiting[0]!)).toBe(0)
      expect([...seen.runs]).toEqual(["r0"])
      const ended = seen.looks
      yield* Effect.sleep("1500 millis")
      expect(seen.looks).toBe(ended)
    }).pipe(Effect.scoped),
  )

  for (const [what, broken] of [
    ["an exception", Effect.die(new Error("a bug in a driver"))],
    [
      "an error that does not pass",
      Effect.fail(new StoreError({ reason: "Corrupt", operation: "read", problem: "test" })),
    ],
  ] as const) {
    it.live(`are all told of ${what} of the store`, () =>
      Effect.gen(function* () {
        const bench = yield* makeBench
        const store = { ...bench.store, findRuns: () => broken }
        const waiting = yield* Effect.forEach([1, 2, 3], (n) =>
          Effect.flatMap(Cairn.start(idle, n, { runId: `r${n}` }), (handle) => Effect.fork(handle.result)),
        ).pipe(Effect.provide(Layer.succeed(CheckpointStore, store)))
        for (const fiber of waiting) {
          expect(yield* Effect.flip(Fiber.join(fiber))).toMatchObject({ _tag: "StoreError" })
        }
      }),
    )
  }
})
