/**
 * Workers that die in the midst of arms, turns, items and waits: the next one goes on from what is committed, with the same
 * identities (field cases P023, P025, P027, P088, P090, P100, P103).
 */
import { describe, expect, it, vi } from "@effect/vitest"
import { Effect, Exit, Layer, Schema } from "effect"
import { Cairn, MemoryStore, Workflow, type AnyWorkflow } from "../../src/index.js"
import { makeMortal, quiet, startDoomed, startWorker, storeLayer, type Bench } from "./support/bench.js"
import { errorOf, test } from "./support/paying.js"

const flow = (): any => (Workflow.make as any)("w", { version: 1, input: Schema.Null })
const number = { effects: [], output: Schema.Number } as const
const done = (built: any, output: any, select: (context: any) => unknown): AnyWorkflow => {
  const workflow = built.output(output, select).compile()
  expect(workflow.diagnostics).toEqual([])
  return workflow
}
const start = (bench: Bench, workflow: AnyWorkflow, runId = "r") =>
  Effect.provide(Cairn.start(workflow, null, { runId }), storeLayer(bench.store))
const provided = <A, E>(bench: Bench, effect: Effect.Effect<A, E, any>) =>
  Effect.provide(effect, storeLayer(bench.store)) as Effect.Effect<A, E>
const row = (bench: Bench, runId = "r") => Effect.map(bench.driver.findRun("default", runId), (found) => found!)
const until = (bench: Bench, status: string) =>
  Effect.repeat(Effect.zipRight(Effect.sleep(10), row(bench)), { until: (found) => found.status === status })

/** A source of numbers that a seed makes. */
const seeded = (seed: number) => () => {
  seed = (seed * 1_664_525 + 1_013_904_223) % 4_294_967_296
  return seed / 4_294_967_296
}

/** Runs on workers that die when the run has passed so many points, and then on one that lives. */
const throughDeaths = (bench: Bench, workflow: AnyWorkflow, deaths: ReadonlyArray<number>, runId = "r") =>
  Effect.gen(function* () {
    const handle = yield* start(bench, workflow, runId)
    for (const after of deaths) {
      let left = after
      const over = Effect.unsafeMakeLatch(false)
      const mortal = makeMortal(bench.store, (_, site) =>
        Effect.suspend(() => {
          if (site.runId !== runId || left-- > 0) return Effect.void
          mortal.kill()
          return over.open
        }),
      )
      yield* startDoomed(mortal, { workflows: [workflow], lease: "1 second" })
      yield* Effect.raceFirst(over.await, Effect.either(handle.result))
    }
    yield* startWorker(bench.store, { workflows: [workflow], lease: "1 second", maxRecoveries: 100 })
    return yield* Effect.exit(handle.result)
  }).pipe(Effect.scoped)

describe("arms that go on side by side", () => {
  const armsAndTimes = (random: () => number) => {
    const runs = new Map<string, number>()
    const step = (arm: number, n: number) => (flow: any) =>
      flow.step(`s${n}`, number, ({ results }: any) =>
        Effect.suspend(() => {
          const key = `${arm}/${n}`
          runs.set(key, (runs.get(key) ?? 0) + 1)
          const value = n === 0 ? arm : results[`s${n - 1}`] * 10 + n
          return Effect.delay(Effect.succeed(value), Math.floor(random() * 40))
        }),
      )
    const arms = Object.fromEntries(
      Array.from({ length: 6 }, (_, arm) => [
        `arm${arm}`,
        (flow: any) => step(arm, 2)(step(arm, 1)(step(arm, 0)(flow))),
      ]),
    )
    const workflow = done(flow().parallel("p", arms), Schema.Array(Schema.Number), ({ results }) =>
      Object.values(results.p).map((of: any) => of.s2),
    )
    return { workflow, runs }
  }

  for (let block = 0; block < 30; block++) {
    test(`give the same, whatever the timing and whenever their worker dies (seeds ${block * 10} to ${block * 10 + 9})`, (bench) =>
      Effect.gen(function* () {
        for (let seed = block * 10; seed < block * 10 + 10; seed++) {
          const random = seeded(seed + 1)
          const { runs, workflow } = armsAndTimes(random)
          const deaths = [Math.floor(random() * 40), Math.floor(random() * 40)]
          const runId = `seed-${seed}`
          expect(yield* throughDeaths(bench, workflow, deaths, runId)).toEqual(
            Exit.succeed([0, 1, 2, 3, 4, 5].map((arm) => (arm * 10 + 1) * 10 + 2)),
          )
          const { steps } = (yield* bench.driver.load("default", runId))!
          expect(new Set(steps.map(({ path }) => path)).size).toBe(18)
          expect(steps).toHaveLength(18)
          // Nothing runs more often than it can have been cut off.
          for (const times of runs.values()) expect(times).toBeLessThanOrEqual(deaths.length + 1)
        }
      }).pipe(Effect.provide(quiet)))
  }

  test("keep what they have: only the one that failed is run again", (bench) =>
    Effect.gen(function* () {
      const calls: Array<string> = []
      const arm = (name: string, fails: boolean) => (flow: any) =>
        flow.step("s", { ...number, retry: { times: 1, delay: "1 hour" } }, () =>
          Effect.suspend(() => {
            calls.push(name)
            const first = calls.filter((called) => called === name).length === 1
            return fails && first ? Effect.fail(new Error("once")) : Effect.succeed(1)
          }),
        )
      const arms = { a: arm("a", false), b: arm("b", false), c: arm("c", true) }
      const workflow = done(flow().parallel("p", arms), Schema.Number, () => 1)
      const first = yield* startDoomed(makeMortal(bench.store), { workflows: [workflow] })
      const handle = yield* start(bench, workflow)
      yield* until(bench, "sleeping")
      yield* first.close
      yield* startWorker(bench.store, { workflows: [workflow], pollInterval: "10 minutes" })
      expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed(1))
      expect(calls.toSorted()).toEqual(["a", "b", "c", "c"])
    }).pipe(Effect.scoped, Effect.provide(quiet)))
})

describe("one step in a loop, and beside itself", () => {
  test("has an identity for each time that it runs, also when its worker dies in between", (bench) =>
    Effect.gen(function* () {
      const calls: Array<string> = []
      const body = (flow: any) =>
        flow.step("s", number, ({ state, turn }: any) =>
          Effect.sync(() => {
            calls.push(`turn ${turn}`)
            return state + turn + 1
          }),
        )
      const looping = (name: string) => (flow: any) =>
        flow.loop(
          name,
          { state: Schema.Number, initial: () => 0, maxIterations: 5 },
          body,
          ({ results, turn }: any) => ({ done: turn === 2, state: results.s }),
        )
      const workflow = done(looping("second")(looping("first")(flow())), Schema.Array(Schema.Number), ({ results }) => [
        results.first,
        results.second,
      ])
      expect(yield* throughDeaths(bench, workflow, [3, 6, 4])).toEqual(Exit.succeed([6, 6]))
      expect(new Set(calls).size).toBe(3)
      expect(calls.length).toBeLessThanOrEqual(6 + 3 * 3)
    }).pipe(Effect.scoped, Effect.provide(quiet)))
})

describe("reviews in arms", () => {
  const orders = [
    ["a", "b", "c"],
    ["a", "c", "b"],
    ["b", "a", "c"],
    ["b", "c", "a"],
    ["c", "a", "b"],
    ["c", "b", "a"],
  ]
  const reviewing = (name: string) => (flow: any) =>
    flow.review("ok", {
      decision: Schema.Number,
      show: () => name,
      deadline: "1 day",
      onReject: "fail",
      onTimeout: "fail",
    })
  const workflow = done(
    flow().parallel("p", { a: reviewing("a"), b: reviewing("b"), c: reviewing("c") }),
    Schema.Array(Schema.Number),
    ({ results }) => [results.p.a.ok.decision, results.p.b.ok.decision, results.p.c.ok.decision],
  )
  for (const order of orders) {
    test(`may be decided in any order, with a restart between any two (${order.join(", ")})`, (bench) =>
      Effect.gen(function* () {
        const handle = yield* start(bench, workflow)
        for (const [n, arm] of order.entries()) {
          yield* Effect.gen(function* () {
            yield* startWorker(bench.store, { workflows: [workflow] })
            yield* until(bench, "review")
            yield* provided(
              bench,
              Cairn.review(workflow, { runId: "r", step: `p:${arm}/ok` }, { by: "ann", approve: n }),
            )
            if (n < 2)
              yield* Effect.repeat(Effect.zipRight(Effect.sleep(10), bench.driver.load("default", "r")), {
                until: (found) => found!.steps.length === n + 1,
              })
            else yield* Effect.exit(handle.result)
          }).pipe(Effect.scoped)
        }
        const expected = ["a", "b", "c"].map((arm) => order.indexOf(arm))
        expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed(expected))
      }).pipe(Effect.provide(quiet)))
  }
})

describe("an approval", () => {
  const approving = (rest: object, shown: () => unknown = () => "the same") =>
    done(
      flow().review("ok", {
        ...{ decision: Schema.Number, show: shown, deadline: "10 days", onReject: "fail", onTimeout: "fail" },
        ...rest,
      }),
      Schema.Number,
      ({ results }) => results.ok.decision,
    )
  const approve = (bench: Bench, workflow: AnyWorkflow, n: number) =>
    provided(bench, Cairn.review(workflow, { runId: "r" }, { by: "ann", approve: n }))
  const rarely = { pollInterval: "10 minutes", maxPollInterval: "10 minutes" } as const

  test("that has grown too old while nobody was there to act on it is asked for anew", (bench) =>
    Effect.gen(function* () {
      const workflow = approving({ validFor: "1 hour" })
      const first = yield* startDoomed(makeMortal(bench.store), { workflows: [workflow] })
      const handle = yield* start(bench, workflow)
      yield* until(bench, "review")
      yield* first.close
      yield* approve(bench, workflow, 1)
      yield* Effect.sleep("2 hours")
      yield* startWorker(bench.store, { workflows: [workflow], ...rarely })
      yield* until(bench, "review")
      yield* approve(bench, workflow, 2)
      expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed(2))
    }).pipe(Effect.scoped, Effect.provide(quiet)))

  test("of something that would be shown otherwise by now is asked for anew", (bench) =>
    Effect.gen(function* () {
      const before = approving({}, () => ({ cents: 100 }))
      const after = approving({}, () => ({ cents: 900 }))
      const first = yield* startDoomed(makeMortal(bench.store), { workflows: [before] })
      const handle = yield* start(bench, before)
      yield* until(bench, "review")
      yield* first.close
      yield* approve(bench, before, 1)
      yield* startWorker(bench.store, { workflows: [after], ...rarely })
      yield* until(bench, "review")
      const { waits } = (yield* bench.driver.loadWaits("default", "r"))!
      expect(waits).toMatchObject([{ state: "open", data: expect.stringContaining("900") }])
      yield* approve(bench, after, 2)
      expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed(2))
    }).pipe(Effect.scoped, Effect.provide(quiet)))
})

describe("a cancel that races with the end", () => {
  test("leaves one end, which never changes (500 times)", (bench) =>
    Effect.gen(function* () {
      const workflow = done(
        flow().step("s", number, () => Effect.delay(Effect.succeed(1), 2)),
        Schema.Number,
        () => 1,
      )
      yield* startWorker(bench.store, { workflows: [workflow], concurrency: 64 })
      yield* Effect.forEach(
        Array.from({ length: 500 }, (_, n) => n),
        (n) =>
          Effect.gen(function* () {
            const runId = `race-${n}`
            const handle = yield* start(bench, workflow, runId)
            yield* Effect.sleep(n % 5)
            const told = yield* provided(bench, Cairn.cancel({ runId }))
            const end = yield* Effect.exit(handle.result)
            const { status } = yield* row(bench, runId)
            if (!told) expect(status).toBe("completed")
            expect(status).toBe(Exit.isSuccess(end) ? "completed" : "canceled")
            if (Exit.isFailure(end)) expect(errorOf(end)).toMatchObject({ _tag: "RunCanceled" })
            expect(yield* provided(bench, Cairn.cancel({ runId }))).toBe(false)
            yield* Effect.sleep(5)
            expect((yield* row(bench, runId)).status).toBe(status)
          }),
        { concurrency: 16, discard: true },
      )
    }).pipe(Effect.scoped, Effect.provide(quiet)))
})

describe("a sleep of years", () => {
  it("sets no timer that a process would run at once", async () => {
    const timer = vi.spyOn(globalThis, "setTimeout")
    const workflow = done(
      flow().parallel("p", {
        years: (flow: any) => flow.sleep("long", "400 days"),
        review: (flow: any) =>
          flow.review("ok", {
            ...{ decision: Schema.Null, show: () => 1, deadline: "90 days", onReject: "fail", onTimeout: "fail" },
          }),
        work: (flow: any) => flow.step("s", number, () => Effect.delay(Effect.succeed(1), 50)),
      }),
      Schema.Null,
      () => null,
    )
    const cairn = await Cairn.open({
      store: MemoryStore.layer,
      workflows: [workflow as AnyWorkflow],
      handlers: Layer.empty as any,
    })
    const handle = await cairn.start(workflow, null)
    while ((await handle.poll()).status !== "review") await new Promise((resolve) => setTimeout(resolve, 5))
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect((await handle.poll()).status).toBe("review")
    await cairn.close()
    const asked = timer.mock.calls.map(([, ms]) => ms ?? 0)
    expect(Math.max(...asked)).toBeLessThan(2 ** 31)
    vi.restoreAllMocks()
  })
})
