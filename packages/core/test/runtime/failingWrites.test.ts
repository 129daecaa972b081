/** Writes that fail in the background: the run says so, and nothing else does (field case P048). */
import { afterEach, describe, expect, vi } from "@effect/vitest"
import { Duration, Effect, Exit, Fiber, Schema, Scope } from "effect"
import { Cairn, StoreError, type AnyWorkflow, type CheckpointStoreService } from "../../src/index.js"
import { followClock, make, row, start, test } from "./support/adding.js"
import { refuseUnhandled, startWorker, storeLayer } from "./support/bench.js"

refuseUnhandled()
afterEach(() => {
  vi.restoreAllMocks()
})

const workflow: AnyWorkflow = make("local")
  .step("a", { effects: [], output: Schema.Null }, () => null)
  .step("b", { effects: [], output: Schema.Null }, () => Effect.as(Effect.sleep("1 second"), null))
  .step("c", { effects: [], output: Schema.Null }, () => null)
  .compile()

const rejecting = (store: CheckpointStoreService, afterMs: number, broken: () => boolean): CheckpointStoreService => ({
  ...store,
  commit: (batch) =>
    Effect.suspend(() =>
      broken()
        ? Effect.zipRight(
            Effect.sleep(afterMs),
            Effect.fail(new StoreError({ reason: "Corrupt", operation: "commit", problem: "as the test says" })),
          )
        : store.commit(batch),
    ),
})

describe.each([0, 50])("a store that rejects every write after %d ms", (afterMs) => {
  test("ends the run here, awaited or not; it goes on once the store takes writes again", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      let broken = true
      const store = rejecting(bench.store, afterMs, () => broken)
      const worker = yield* startWorker(store, { workflows: [workflow] })
      const awaited = yield* Effect.fork((yield* start(bench, workflow, "awaited")).result)
      const aborted = yield* Effect.fork((yield* start(bench, workflow, "aborted")).result)
      yield* start(bench, workflow, "abandoned")
      yield* Effect.sleep("500 millis")
      yield* Fiber.interrupt(aborted)
      yield* Effect.sleep("4 seconds")
      // Nothing was kept, nobody is told of an end, and the worker executes none of them.
      expect(yield* Fiber.poll(awaited)).toMatchObject({ _tag: "None" })
      for (const runId of ["awaited", "aborted", "abandoned"]) expect((yield* row(bench, runId)).seq).toBe(0)
      expect(yield* worker.running).toEqual([])
      broken = false
      yield* Fiber.join(awaited)
      for (const runId of ["aborted", "abandoned"]) {
        yield* Effect.provide(
          Effect.flatMap(Cairn.attach(workflow, { runId }), ({ result }) => result),
          storeLayer(bench.store),
        )
        expect((yield* row(bench, runId)).status).toBe("completed")
      }
    }))

  test("does not keep a worker from stopping", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      const store = rejecting(bench.store, afterMs, () => true)
      const scope = yield* Scope.make()
      yield* Scope.extend(startWorker(store, { workflows: [workflow], drain: "2 seconds" }), scope)
      yield* start(bench, workflow, "r")
      yield* Effect.sleep(100)
      const [took] = yield* Effect.timed(Scope.close(scope, Exit.void))
      expect(Duration.toMillis(took)).toBeLessThanOrEqual(3_000)
      expect((yield* row(bench, "r")).seq).toBe(0)
    }))
})
