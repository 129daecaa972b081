/** Workers that die or stall around a paid call: what it has cost is counted once, or reported as unknown. */
import { afterEach, describe, expect, it, vi } from "@effect/vitest"
import { Effect, Exit, Layer, Schema } from "effect"
import {
  Cairn,
  Effects,
  Faults,
  StoreError,
  Usage,
  Workflow,
  type AnyWorkflow,
  type FaultPoint,
} from "../../src/index.js"
import {
  intercepted,
  makeBench,
  makeMortal,
  quiet,
  refuseUnhandled,
  startDoomed,
  startWorker,
  storeLayer,
  type Bench,
} from "./support/bench.js"
import { followClock } from "./support/adding.js"
import { makeVirtualClock } from "./support/virtualClock.js"

refuseUnhandled()
afterEach(() => {
  vi.restoreAllMocks()
})

const test = (title: string, body: (bench: Bench) => Effect.Effect<void, any, any>) =>
  it.live(
    title,
    () =>
      Effect.flatMap(makeBench, body).pipe(
        Effect.scoped,
        Effect.provide(quiet),
        Effect.withClock(makeVirtualClock()),
      ) as Effect.Effect<void, any>,
  )

const paying = () => {
  const bills: Array<number> = []
  const ask = (cost: number) =>
    Usage.call(
      { model: "m", atMost: { microDollars: 500 }, usage: () => ({ microDollars: cost }) },
      Effect.sync(() => bills.push(cost)),
    )
  const workflow: AnyWorkflow = (Workflow.make("paying", { version: 1, input: Schema.Null }) as any)
    .step("before", { effects: [Effects.read("m")], output: Schema.Int }, () => ask(100))
    .step("paid", { effects: [Effects.read("m")], output: Schema.Int }, () => ask(10))
    .step("after", { effects: [Effects.read("m")], output: Schema.Int }, () => ask(1))
    .compile()
  return { bills, workflow }
}

const start = (bench: Bench, workflow: AnyWorkflow) =>
  Effect.provide(Cairn.start(workflow, null, { runId: "r" }), storeLayer(bench.store))

const ledger = (bench: Bench) =>
  Effect.all({
    calls: Effect.map(Cairn.calls({ runId: "r" }), ({ calls }) =>
      calls.map(({ cost, microDollars, outcome, step }) => [step, cost, microDollars, outcome].join(" ")),
    ),
    spend: Cairn.spend({ runId: "r" }),
    outcomes: Effect.map(Cairn.cost({ by: "outcome" }), (sums) => new Map(sums.map((sum) => [sum.key, sum] as const))),
  }).pipe(Effect.provide(storeLayer(bench.store)))

describe("a worker that dies around a paid call", () => {
  const cases: ReadonlyArray<readonly [FaultPoint, string | null]> = [
    ["beforeCall", "paid unknown  lost"],
    ["afterCall", "paid unknown  lost"],
    ["afterUsage", "paid known 10 lost"],
    ["afterGate", "paid known 10 lost"],
    ["beforeCommit", "paid known 10 lost"],
    ["afterCommit", null],
  ]
  for (const [point, lost] of cases) {
    test(`at ${point} leaves ${lost ?? "nothing to be paid again"}`, (bench) =>
      Effect.gen(function* () {
        yield* followClock
        const { bills, workflow } = paying()
        const mortal = makeMortal(bench.store, (at, { step }) =>
          at === point && step === "paid" ? Effect.sync(() => mortal.kill()) : Effect.void,
        )
        yield* startDoomed(mortal, { workflows: [workflow], durability: "step" })
        const handle = yield* start(bench, workflow)
        yield* Effect.sleep("5 minutes")
        yield* startWorker(bench.store, { workflows: [workflow] })
        expect(Exit.isSuccess(yield* Effect.exit(handle.result))).toBe(true)
        const { calls, outcomes, spend } = yield* ledger(bench)
        expect(calls).toEqual([
          "before known 100 kept",
          ...(lost === null ? [] : [lost]),
          "paid known 10 kept",
          "after known 1 kept",
        ])
        const total = bills.reduce((sum, cost) => sum + cost, 0)
        const isUnknown = lost?.includes("unknown") === true
        // What is known, and what is reserved for what is not, covers what was billed.
        expect(total).toBeLessThanOrEqual(spend.spent + spend.reserved)
        expect(spend.reserved).toBe(isUnknown ? 500 : 0)
        expect(spend.spent).toBe(point === "afterCall" ? total - 10 : total)
        // What was committed before the crash was not paid again.
        expect(outcomes.get("kept")!.saved).toBe(point === "afterCommit" ? 110 : 100)
      }))
  }
})

describe("a worker that stalls in a paid call", () => {
  test("until the run is somebody else's still tells what it has cost, and commits nothing", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      const { bills, workflow } = paying()
      let stalls = 0
      const mortal = makeMortal(bench.store, (at, { step }) =>
        at === "afterCall" && step === "paid" && stalls++ === 0 ? Effect.sync(() => mortal.kill()) : Effect.void,
      )
      yield* startDoomed(mortal, { workflows: [workflow] })
      const handle = yield* start(bench, workflow)
      yield* Effect.sleep("5 minutes")
      yield* startWorker(bench.store, { workflows: [workflow] })
      expect(Exit.isSuccess(yield* Effect.exit(handle.result))).toBe(true)
      expect((yield* ledger(bench)).calls).toContain("paid unknown  lost")
      mortal.wake()
      yield* Effect.sleep("1 minute")
      const { calls, spend } = yield* ledger(bench)
      expect(calls.filter((call) => call.startsWith("paid"))).toEqual(["paid known 10 lost", "paid known 10 kept"])
      expect(spend).toEqual({
        spent: bills.reduce((sum, cost) => sum + cost, 0),
        reserved: 0,
        calls: calls.length,
        unknown: 0,
      })
    }))

  test("before it is made does not make it once its lease has ended, and it costs nothing", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      const { bills, workflow } = paying()
      let begun = 0
      // The call is written; the process stalls before it hears of it.
      const stalled = makeMortal(bench.store)
      const store = {
        ...stalled.store,
        beginCall: (call: Parameters<typeof bench.store.beginCall>[0]) =>
          Effect.tap(bench.store.beginCall(call), () =>
            call.path === "paid" && begun++ === 0
              ? Effect.zipRight(Effect.sync(stalled.kill), Effect.sleep("5 minutes"))
              : Effect.void,
          ),
      }
      yield* startDoomed({ ...stalled, store }, { workflows: [workflow], durability: "step" })
      const handle = yield* start(bench, workflow)
      yield* Effect.sleep("4 minutes")
      yield* startWorker(bench.store, { workflows: [workflow] })
      expect(Exit.isSuccess(yield* Effect.exit(handle.result))).toBe(true)
      yield* Effect.sleep("2 minutes")
      stalled.wake()
      yield* Effect.sleep("1 minute")
      expect(bills).toEqual([100, 10, 1])
      const { calls, spend } = yield* ledger(bench)
      expect(calls).toEqual(["before known 100 kept", "paid known 0 lost", "paid known 10 kept", "after known 1 kept"])
      expect(spend.spent).toBe(111)
    }))
})

describe("a step that is interrupted", () => {
  test("between the beginning of a call and the call does not make it, and it costs nothing", (bench) =>
    Effect.gen(function* () {
      const { bills, workflow } = paying()
      const faults = Layer.succeed(Faults, {
        reach: (point, { step }) => (point === "beforeCall" && step === "paid" ? Effect.never : Effect.void),
      })
      yield* startWorker(bench.store, { workflows: [workflow] }, undefined, faults)
      const handle = yield* start(bench, workflow)
      yield* Effect.sleep("1 second")
      yield* Effect.provide(Cairn.cancel({ runId: "r" }), storeLayer(bench.store))
      yield* Effect.exit(handle.result)
      expect(bills).toEqual([100])
      const { calls, spend } = yield* ledger(bench)
      expect(calls).toEqual(["before known 100 kept", "paid known 0 lost"])
      expect(spend).toEqual({ spent: 100, reserved: 0, calls: 2, unknown: 0 })
    }))
})

describe("a store that is away", () => {
  test("when a call begins keeps it from being made", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      const { bills, workflow } = paying()
      let away = true
      const store = intercepted(bench.store, (method) => (away && method === "beginCall" ? Effect.never : Effect.void))
      yield* startWorker(store, { workflows: [workflow] })
      const handle = yield* start(bench, workflow)
      yield* Effect.sleep("20 seconds")
      expect(bills).toEqual([])
      away = false
      yield* startWorker(bench.store, { workflows: [workflow] })
      yield* Effect.provide(Cairn.cancel({ runId: "r" }), storeLayer(bench.store))
      yield* Effect.exit(handle.result)
      expect(bills).toEqual([])
    }))

  test("when it ends does not cost the answer: the call stays one of unknown cost", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      const { workflow } = paying()
      const refused = new StoreError({ reason: "Full", operation: "end a call", problem: "no space" })
      const store = intercepted(bench.store, (method) => (method === "endCall" ? Effect.fail(refused) : Effect.void))
      yield* startWorker(store, { workflows: [workflow] })
      const handle = yield* start(bench, workflow)
      expect(Exit.isSuccess(yield* Effect.exit(handle.result))).toBe(true)
      expect((yield* ledger(bench)).calls).toEqual([
        "before unknown  kept",
        "paid unknown  kept",
        "after unknown  kept",
      ])
    }))
})
