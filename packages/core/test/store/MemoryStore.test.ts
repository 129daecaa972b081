import { storeConformance } from "@cairn/conformance"
import { CheckpointStore, MemoryDriver, MemoryStore } from "@cairn/core"
import { describe, expect, it } from "@effect/vitest"
import { Effect, TestClock, TestContext } from "effect"
import { newRun } from "./runs.js"

storeConformance("MemoryDriver", {
  open: Effect.map(MemoryDriver.make(), (driver) => ({ driver })),
  features: [],
  elapse: (ms) => TestClock.adjust(ms),
  environment: TestContext.TestContext,
})

describe("MemoryStore.layer", () => {
  it.effect("is an empty store each time that it is built", () => {
    const started = Effect.flatMap(CheckpointStore, (store) => store.createRun(newRun))
    return Effect.gen(function* () {
      for (let turn = 0; turn < 2; turn++) {
        const { created, run } = yield* Effect.provide(started, MemoryStore.layer)
        expect([created, run.seq, run.failure, run.parked]).toEqual([true, 0, null, null])
      }
    })
  })

  it.effect("is one store for everything that is provided with it together", () =>
    Effect.gen(function* () {
      const store = yield* CheckpointStore
      yield* store.createRun(newRun)
      const found = yield* Effect.flatMap(CheckpointStore, (same) => same.findRun(newRun.namespace, newRun.runId))
      expect(found.runId).toBe(newRun.runId)
      expect(store.capabilities).toEqual({
        name: "memory",
        transactions: false,
        notify: false,
        multiProcess: false,
        rowSecurity: false,
      })
    }).pipe(Effect.provide(MemoryStore.layer)),
  )
})
