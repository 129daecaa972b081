/** Workers over a store that fails: what passes is waited out, what does not ends one run's fiber (W6). */
import { afterEach, describe, expect, vi } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Cairn, StoreError, type AnyWorkflow } from "../../src/index.js"
import { adding, followClock, input, make, row, start, test } from "./support/adding.js"
import {
  intercepted,
  makeMortal,
  refuseUnhandled,
  startDoomed,
  startWorker,
  storeLayer,
  type Bench,
} from "./support/bench.js"
import { Charge, chargeAt, Provider } from "./support/operations.js"

refuseUnhandled()
afterEach(() => {
  vi.restoreAllMocks()
})

describe("a store that fails", () => {
  const failing = (bench: Bench, fails: (method: string) => StoreError["reason"] | null) =>
    intercepted(bench.store, (method) =>
      Effect.suspend(() => {
        const reason = fails(method)
        return reason === null
          ? Effect.void
          : Effect.fail(new StoreError({ reason, operation: method, problem: "test" }))
      }),
    )

  /** A run whose first step is committed, by a worker that is no more: only such a run is loaded. */
  const begun = (bench: Bench, workflow: AnyWorkflow, runId: string) =>
    Effect.gen(function* () {
      const mortal = makeMortal(bench.store, (point, { step }) =>
        Effect.sync(() => {
          if (point === "beforeCommit" && step === "b") mortal.kill()
        }),
      )
      yield* startDoomed(mortal, { workflows: [workflow] })
      const handle = yield* start(bench, workflow, runId)
      yield* Effect.repeat(Effect.sleep(100), {
        until: () => Effect.map(row(bench, runId), ({ seq }) => seq === 1),
      })
      return handle
    })

  const two = (): AnyWorkflow =>
    make("two", 1, "step")
      .step("a", { effects: [], output: Schema.Null }, () => null)
      .step("b", { effects: [], output: Schema.Int }, ({ input: { a, b } }: any) => a + b)
      .output(Schema.Int, ({ results }: any) => results.b)
      .compile()

  for (const reason of ["Busy", "Unavailable"] as const) {
    test(`${reason} at load for a while is waited out`, (bench) =>
      Effect.gen(function* () {
        let left = 4
        const store = failing(bench, (called) => (called === "load" && left-- > 0 ? reason : null))
        const handle = yield* begun(bench, two(), "r")
        yield* startWorker(store, { workflows: [two()] })
        expect(yield* handle.result).toBe(3)
        expect(left).toBeLessThan(0)
        expect((yield* row(bench, "r")).fence).toBe(2)
      }))
  }

  for (const reason of ["Full", "Corrupt", "Permission", "Unknown"] as const) {
    test(`${reason} at load ends the run's fiber alone, and the run goes on once the store is well`, (bench) =>
      Effect.gen(function* () {
        let broken = true
        const store = failing(bench, (called) => (called === "load" && broken ? reason : null))
        const handle = yield* begun(bench, two(), "sick")
        yield* startWorker(store, { workflows: [two(), adding()] })
        yield* Effect.sleep("60 seconds")
        expect((yield* bench.driver.load("default", "sick"))!.steps).toHaveLength(1)
        expect(yield* (yield* start(bench, adding(), "healthy")).result).toBe(3)
        broken = false
        expect(yield* handle.result).toBe(3)
      }))
  }

  for (const reason of ["Busy", "Unavailable"] as const) {
    for (const method of ["commit", "findRun", "claim", "beat"]) {
      test(`${reason} at ${method} for a while is waited out`, (bench) =>
        Effect.gen(function* () {
          let left = 0
          const store = failing(bench, (called) => (called === method && left-- > 0 ? reason : null))
          const workflow = make("three")
            .step("a", { effects: [], output: Schema.Null }, () => null)
            .step("b", { effects: [], output: Schema.Int }, ({ input: { a, b } }: any) => a + b)
            .output(Schema.Int, ({ results }: any) => results.b)
            .compile()
          yield* startWorker(store, { workflows: [workflow] })
          left = 4
          const handle = yield* Effect.provide(Cairn.start(workflow, input, { runId: "r" }), storeLayer(store))
          expect(yield* handle.result).toBe(3)
          // By the claim that began it: it was never given back.
          const { fence, recoveries } = yield* row(bench, "r")
          expect([fence, recoveries]).toEqual([1, 0])
        }))
    }
  }

  for (const reason of ["Corrupt", "Permission", "Unknown"] as const) {
    for (const method of ["commit"]) {
      test(`${reason} at ${method} ends the run's fiber alone, and the run goes on once the store is well`, (bench) =>
        Effect.gen(function* () {
          let broken: string | null = "sick"
          const store = failing(bench, (called) => (called === method && broken === "sick" ? reason : null))
          yield* startWorker(store, { workflows: [adding()] })
          const handle = yield* start(bench, adding(), "sick")
          yield* Effect.sleep("15 seconds")
          expect((yield* bench.driver.load("default", "sick"))!.steps).toEqual([])
          expect((yield* row(bench, "sick")).status).not.toBe("failed")
          broken = null
          const healthy = yield* start(bench, adding(), "healthy")
          expect(yield* healthy.result).toBe(3)
          expect(yield* handle.result).toBe(3)
        }))
    }
  }

  test("that never answers one heartbeat does not stop the heart: the next ones are answered", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      let beats = 0
      const store = intercepted(bench.store, (method) =>
        method === "beat" && ++beats === 2 ? Effect.never : Effect.void,
      )
      yield* startWorker(store, { workflows: [adding()] })
      yield* Effect.sleep("3 minutes")
      expect(yield* (yield* start(bench, adding(), "r")).result).toBe(3)
      expect(beats).toBeGreaterThan(5)
    }))

  test("away at the first heartbeat is a typed error of the layer", (bench) =>
    Effect.gen(function* () {
      const store = failing(bench, (method) => (method === "beat" ? "Permission" : null))
      expect(yield* Effect.flip(startWorker(store, { workflows: [adding()] }))).toMatchObject({
        _tag: "StoreError",
        reason: "Permission",
      })
    }))

  test("away for longer than the lease: nothing is sent meanwhile, and the run goes on afterwards", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      let away = false
      const provider = new Provider()
      let left = false
      const store = failing(bench, () => (away ? "Unavailable" : null))
      const workflow = make("paying")
        .step("wait", { effects: [], output: Schema.Null }, () => {
          // Once: after the outage this step may run again.
          if (!left) away = left = true
          return null
        })
        .perform("pay", Charge, { payload: () => ({ customer: "ada", cents: 1 }) })
        .compile()
      yield* startWorker(store, { workflows: [workflow] }, chargeAt(provider))
      const handle = yield* start(bench, workflow, "r")
      yield* Effect.sleep("5 minutes")
      expect(provider.calls).toHaveLength(0)
      away = false
      yield* handle.result
      expect(provider.keys()).toHaveLength(1)
    }))

  test("away from the answer of an operation until after the lease: the answer is kept, and nothing is sent again (X6)", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      const provider = new Provider()
      let isBack = false
      const store = failing(bench, () => (provider.calls.length > 0 && !isBack ? "Unavailable" : null))
      const workflow = make("paying")
        .perform("pay", Charge, { payload: () => ({ customer: "ada", cents: 1 }) })
        .compile()
      yield* startWorker(store, { workflows: [workflow] }, chargeAt(provider))
      const handle = yield* start(bench, workflow, "r")
      yield* Effect.sleep("2 minutes")
      expect(provider.calls).toHaveLength(1)
      isBack = true
      yield* handle.result
      expect(provider.calls).toHaveLength(1)
    }))

  test("full for a while is waited out: what is accepted is written once there is space (P059)", (bench) =>
    Effect.gen(function* () {
      let left = 6
      const store = failing(bench, (called) => (called === "commit" && left-- > 0 ? "Full" : null))
      yield* startWorker(store, { workflows: [adding()] })
      const handle = yield* start(bench, adding(), "r")
      expect(yield* handle.result).toBe(3)
      expect(left).toBeLessThan(0)
      const { fence, recoveries } = yield* row(bench, "r")
      expect([fence, recoveries]).toEqual([1, 0])
    }))

  test("a commit that it refuses for good is parked: its step is not paid for again and again", (bench) =>
    Effect.gen(function* () {
      let refused = 0
      let broken = true
      let asked = 0
      const store = intercepted(bench.store, (method, batch: any) =>
        Effect.suspend(() => {
          // A trigger, say: it takes what says nothing of steps.
          if (method !== "commit" || !broken || batch?.[0]?.steps.length === 0) return Effect.void
          refused += 1
          return Effect.fail(new StoreError({ reason: "Constraint", operation: "commit", problem: "as the test says" }))
        }),
      )
      const workflow = make("asking", 1, "step")
        .step("ask", { effects: [], output: Schema.Int }, () => ++asked)
        .output(Schema.Int, ({ results }: any) => results.ask)
        .compile()
      yield* startWorker(store, { workflows: [workflow] })
      const handle = yield* start(bench, workflow, "r")
      const parked = yield* Effect.flip(handle.result)
      expect(parked).toMatchObject({ _tag: "RunParked", reason: "CommitRefused" })
      expect((parked as Error).message).toContain("as the test says")
      yield* Effect.sleep("2 minutes")
      expect([asked, refused]).toEqual([1, 1])
      broken = false
      yield* Effect.provide(Cairn.resume({ runId: "r" }), storeLayer(bench.store))
      expect(
        yield* (yield* Effect.provide(Cairn.attach(workflow, { runId: "r" }), storeLayer(bench.store))).result,
      ).toBe(2)
    }))
})
