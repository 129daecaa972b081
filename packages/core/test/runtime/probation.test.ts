/** Runs that bring their workers down again and again: tried alone, then parked for a person (X12). */
import { afterEach, describe, expect, vi } from "@effect/vitest"
import { Effect, Exit, Schema, Scope } from "effect"
import { Cairn, Effects, type AnyEffect, type AnyWorkflow } from "../../src/index.js"
import { adding, followClock, make, row, start, test } from "./support/adding.js"
import {
  makeMortal,
  refuseUnhandled,
  startDoomed,
  startWorker,
  storeLayer,
  type Bench,
  type Mortal,
} from "./support/bench.js"

refuseUnhandled()
afterEach(() => {
  vi.restoreAllMocks()
})

/** Two steps that wait at a gate each, told apart by the run's input. */
const makeGated = (runs: number) => {
  const log: Array<string> = []
  const gates = Array.from({ length: runs }, () => ({
    first: Effect.unsafeMakeLatch(false),
    second: Effect.unsafeMakeLatch(false),
  }))
  const passing = (step: "first" | "second") =>
    [
      step,
      { effects: [], output: Schema.Null },
      ({ input: { a } }: any) =>
        Effect.suspend(() => {
          log.push(`${step} of ${a}`)
          return Effect.as(gates[a]![step].await, null)
        }),
    ] as const
  const workflow: AnyWorkflow = make("gated")
    .step(...passing("first"))
    .step(...passing("second"))
    .compile()
  return { log, gates, workflow }
}

/** Starts a run and lets as many workers in turn claim it and never be heard of again. */
const broughtDown = (bench: Bench, workflow: AnyWorkflow, runId: string, times: number, a = 0) =>
  Effect.gen(function* () {
    yield* start(bench, workflow, runId, { a, b: 0 })
    for (let n = 0; n < times; n++) {
      const workerId = `dead-${runId}-${n}`
      yield* bench.driver.beat(workerId, 1_000)
      const claimed = yield* bench.driver.claim({
        namespace: "default",
        workerId,
        claimToken: workerId,
        workflows: [{ name: workflow.name, version: 1 }],
        runIds: [runId],
        limit: 1,
      })
      expect(claimed).toHaveLength(1)
      yield* Effect.sleep(1_001)
    }
  })

describe("a run that was recovered", () => {
  test("once is started at once, beside runs that have got nowhere yet", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      const { log, workflow } = makeGated(2)
      yield* broughtDown(bench, workflow, "once", 1, 1)
      yield* start(bench, workflow, "neighbour", { a: 0, b: 0 })
      yield* startWorker(bench.store, { workflows: [workflow] })
      yield* Effect.sleep("2 seconds")
      expect((yield* row(bench, "once")).recoveries).toBe(1)
      expect(log.toSorted()).toEqual(["first of 0", "first of 1"])
    }))

  test("more than once waits for its neighbours to commit, and nothing is claimed until it has committed, too", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      const { log, gates, workflow } = makeGated(3)
      yield* broughtDown(bench, workflow, "suspect", 2, 1)
      yield* start(bench, workflow, "neighbour", { a: 0, b: 0 })
      const worker = yield* startWorker(bench.store, { workflows: [workflow] })
      yield* Effect.sleep("10 seconds")
      // It was claimed, and is not begun.
      const { leaseOwner, recoveries } = yield* row(bench, "suspect")
      expect([leaseOwner, recoveries]).toEqual([worker.workerId, 2])
      yield* start(bench, workflow, "later", { a: 2, b: 0 })
      yield* Effect.sleep("10 seconds")
      expect(log).toEqual(["first of 0"])
      expect((yield* row(bench, "later")).fence).toBe(0)

      yield* gates[0]!.first.open
      yield* Effect.sleep("5 minutes")
      expect(log.toSorted()).toEqual(["first of 0", "first of 1", "second of 0"])
      expect((yield* row(bench, "later")).fence).toBe(0)

      yield* gates[1]!.first.open
      yield* Effect.sleep("100 millis")
      expect(log.slice(3).toSorted()).toEqual(["first of 2", "second of 1"])
      expect((yield* row(bench, "suspect")).recoveries).toBe(0)
    }))

  test("more than once is not held up by a neighbour that commits nothing for longer than a lease", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      const { log, workflow } = makeGated(2)
      yield* broughtDown(bench, workflow, "suspect", 2, 1)
      yield* start(bench, workflow, "neighbour", { a: 0, b: 0 })
      yield* startWorker(bench.store, { workflows: [workflow], lease: "30 seconds" })
      yield* Effect.sleep("29 seconds")
      expect(log).toEqual(["first of 0"])
      yield* Effect.sleep("3 seconds")
      expect(log).toEqual(["first of 0", "first of 1"])
    }))

  test("more than once follows others of its kind, one after the other, also past one that fails", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      const log: Array<string> = []
      const workflow: AnyWorkflow = make("suspects")
        .step("first", { effects: [], output: Schema.Null }, ({ input: { a } }: any) =>
          Effect.sync(() => log.push(`${a} begins`)).pipe(
            Effect.zipRight(Effect.sleep("5 seconds")),
            Effect.zipRight(Effect.sync(() => log.push(`${a} ends`))),
            Effect.zipRight(a === 1 ? Effect.fail("no") : Effect.succeed(null)),
          ),
        )
        .step("second", { effects: [], output: Schema.Null }, () => Effect.as(Effect.sleep("1 hour"), null))
        .compile()
      for (const a of [0, 1, 2]) yield* broughtDown(bench, workflow, `r${a}`, 2, a)
      const worker = yield* startWorker(bench.store, { workflows: [workflow] })
      yield* Effect.sleep("1 second")
      const owners = yield* Effect.forEach(["r0", "r1", "r2"], (id) => row(bench, id))
      // Only the one that is tried is held: a run that merely waited here would be recovered when that one kills us.
      expect(owners.map(({ leaseOwner }) => leaseOwner)).toEqual([worker.workerId, null, null])
      expect(owners.map(({ status }) => status)).toEqual(["running", "pending", "pending"])
      expect(log).toEqual(["0 begins"])
      yield* Effect.sleep("20 seconds")
      expect(log).toEqual(["0 begins", "0 ends", "1 begins", "1 ends", "2 begins", "2 ends"])
      // Those that have proven themselves go on side by side.
      expect(yield* worker.running).toEqual(["r0", "r2"])
      expect((yield* row(bench, "r1")).status).toBe("failed")
    }))

  test("more than once, and still waiting when its worker stops, is given back without another recovery", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      const { log, workflow } = makeGated(2)
      yield* broughtDown(bench, workflow, "suspect", 2, 1)
      yield* start(bench, workflow, "neighbour", { a: 0, b: 0 })
      const scope = yield* Scope.make()
      yield* Scope.extend(startWorker(bench.store, { workflows: [workflow], drain: 0 }), scope)
      yield* Effect.sleep("5 seconds")
      yield* Scope.close(scope, Exit.void)
      const { status, leaseOwner, recoveries } = yield* row(bench, "suspect")
      expect([status, leaseOwner, recoveries]).toEqual(["pending", null, 2])
      expect(log).toEqual(["first of 0"])
    }))
})

describe("what a recovered run has got through", () => {
  /** What the store has of it as each step begins. */
  const makeWatched = (bench: Bench) => {
    const seen: Array<readonly [step: string, stored: string]> = []
    const step = (flow: any, name: string, effects: ReadonlyArray<AnyEffect> = []): any =>
      flow.step(name, { effects, output: Schema.Null }, () => {
        seen.push([name, bench.commits.flatMap(({ steps }) => steps.map(({ path }) => path)).join(" ")])
        return null
      })
    const workflow: AnyWorkflow = ["b", "c"]
      .reduce((flow, name) => step(flow, name), step(step(make("gated"), "a"), "read", [Effects.read("model")]))
      .compile()
    return { seen, workflow }
  }

  for (const [title, times, maxRecoveries, stored] of [
    ["never before may be ahead of the store", 0, 3, ["", "", "", ""]],
    ["once may be ahead, but for what may have been paid for", 1, 3, ["", "", "a read", "a read"]],
    ["more than once is stored step by step", 2, 3, ["", "a", "a read", "a read b"]],
    ["as often as it may be is stored step by step", 1, 1, ["", "a", "a read", "a read b"]],
  ] as const) {
    test(`${title} (X12)`, (bench) =>
      Effect.gen(function* () {
        yield* followClock
        const { seen, workflow } = makeWatched(bench)
        yield* broughtDown(bench, workflow, "r", times)
        yield* startWorker(bench.store, { workflows: [workflow], maxRecoveries })
        yield* (yield* start(bench, workflow, "r", { a: 0, b: 0 })).result
        expect(seen).toEqual(["a", "read", "b", "c"].map((step, index) => [step, stored[index]]))
      }))
  }
})

describe("a step that kills its worker each time", () => {
  /** Commits one step, then kills whoever runs it, for as long as it is sick. */
  const makePoison = () => {
    const state = { begun: 0, sick: true, victim: null as Mortal | null }
    const workflow: AnyWorkflow = make("poison")
      .step("well", { effects: [], output: Schema.Null }, () => null)
      .step("deadly", { effects: [], output: Schema.Int }, () =>
        Effect.suspend(() => {
          state.begun++
          if (!state.sick) return Effect.succeed(7)
          state.victim?.kill()
          return Effect.never
        }),
      )
      .output(Schema.Int, ({ results }: any) => results.deadly)
      .compile()
    return { state, workflow }
  }

  test("is parked past maxRecoveries, and Cairn.resume lets it try again", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      const { state, workflow } = makePoison()
      const options = { workflows: [workflow, adding()], maxRecoveries: 2 }
      const handle = yield* start(bench, workflow, "poison")
      // On probation what goes well is kept at once: that is progress. From there on nothing but its death counts.
      for (const [death, recoveries] of [
        [1, 0],
        [2, 1],
        [3, 0],
        [4, 1],
        [5, 2],
      ] as const) {
        state.victim = makeMortal(bench.store)
        yield* startDoomed(state.victim, options)
        yield* Effect.repeat(Effect.sleep(100), { until: () => state.begun === death })
        expect((yield* row(bench, "poison")).recoveries).toBe(recoveries)
      }
      yield* startWorker(bench.store, options)
      const parked = yield* Effect.flip(handle.result)
      expect(parked).toMatchObject({ _tag: "RunParked", reason: "TooManyRecoveries", step: "deadly" })
      expect(parked).toMatchObject({ problem: expect.stringContaining("3 times") })
      expect(state.begun).toBe(5)
      const parkedRow = yield* row(bench, "poison")
      expect([parkedRow.status, parkedRow.leaseOwner, parkedRow.cursor]).toEqual(["review", null, "deadly"])
      // It no longer stands in anybody's way.
      expect(yield* (yield* start(bench, adding(), "other")).result).toBe(3)

      state.sick = false
      const resumed = yield* Effect.provide(Cairn.resume({ runId: "poison" }), storeLayer(bench.store))
      expect([resumed, (yield* row(bench, "poison")).recoveries]).toEqual([true, 0])
      expect(yield* handle.result).toBe(7)
      expect(state.begun).toBe(6)
    }))

  test("kills no neighbour that came after its second recovery", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      const { state, workflow } = makePoison()
      const slow: AnyWorkflow = make("slow")
        .step("s", { effects: [], output: Schema.Null }, () => Effect.as(Effect.sleep("10 seconds"), null))
        .compile()
      yield* start(bench, workflow, "poison")
      for (const death of [1, 2]) {
        state.victim = makeMortal(bench.store)
        yield* startDoomed(state.victim, { workflows: [workflow] })
        yield* Effect.repeat(Effect.sleep(100), { until: () => state.begun === death })
      }
      const neighbours = yield* Effect.forEach(["a", "b"], (id) => start(bench, slow, id))
      state.victim = makeMortal(bench.store)
      yield* startDoomed(state.victim, { workflows: [workflow, slow] })
      yield* Effect.repeat(Effect.sleep(100), { until: () => state.begun === 3 })
      // All that were beside it when it killed had committed.
      for (const { runId } of neighbours) {
        expect((yield* bench.driver.load("default", runId))!.steps.map(({ path }) => path)).toEqual(["s"])
      }
    }))
})
