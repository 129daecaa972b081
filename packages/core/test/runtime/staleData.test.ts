/**
 * Data that a step has read moves while its run sleeps, or is taken over: it is found before anything is built on it.
 */
import { describe, expect } from "@effect/vitest"
import { Chunk, Effect, Exit, Schema, Stream } from "effect"
import { Cairn, DataVersion, StaleData, type RunEvent } from "../../src/index.js"
import { quiet, type Bench } from "./support/bench.js"
import { errorOf, test } from "./support/paying.js"
import { done, flow, makeShelf, parkedOf, provided, quoting, row, start, until, worker } from "./support/shelf.js"

describe("data that has moved while its run slept", () => {
  const movedAsleep = (bench: Bench, of: ReturnType<typeof quoting>) =>
    Effect.gen(function* () {
      yield* worker(bench, of.workflow)
      const handle = yield* start(bench, of.workflow)
      const { seq } = yield* until(bench, "sleeping")
      of.shelf.put("a", 2)
      return { handle, seq }
    })

  test("has the step and what came after it run again, where it says rerun", (bench) =>
    Effect.gen(function* () {
      const of = quoting("rerun")
      const { handle, seq } = yield* movedAsleep(bench, of)
      expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed(20))
      expect(of.calls).toEqual(["quote", "quote", "use"])
      const { run, steps } = (yield* bench.driver.load("default", "r"))!
      expect(steps.map(({ path }) => path)).toEqual(["quote", "night", "use", "day"])
      for (const step of steps) expect(step.seq).toBeGreaterThan(seq)
      expect(run.status).toBe("completed")
    }).pipe(Effect.scoped, Effect.provide(quiet)))

  test("is told of by an event, with what is of no account any more", (bench) =>
    Effect.gen(function* () {
      const of = quoting("rerun")
      const { handle } = yield* movedAsleep(bench, of)
      yield* Effect.exit(handle.result)
      const events: ReadonlyArray<RunEvent> = Chunk.toReadonlyArray(
        yield* Stream.runCollect(Stream.fromAsyncIterable(handle.events(), String)),
      )
      expect(events.map((event) => [event._tag, "path" in event ? event.path : ""])).toEqual([
        ["Rewound", "quote"],
        ...["quote", "night", "use", "day"].map((path) => ["StepCompleted", path]),
        ["Finished", ""],
      ])
      expect(events[0]).toMatchObject({ toSeq: 1, problem: `of what 'quote' has read, 'stock' ("a") has moved` })
    }).pipe(Effect.scoped, Effect.provide(quiet)))

  test("parks the run, which goes on with what it has once a person says so, and is asked no more", (bench) =>
    Effect.gen(function* () {
      for (const onStale of [undefined, "review"] as const) {
        const of = quoting(onStale)
        const { driver } = bench
        yield* Effect.scoped(
          Effect.gen(function* () {
            const runId = `r-${onStale}`
            yield* worker(bench, of.workflow)
            const handle = yield* start(bench, of.workflow, runId)
            const stands = (status: string) =>
              Effect.repeat(
                Effect.zipRight(
                  Effect.sleep(10),
                  Effect.map(driver.findRun("default", runId), (run) => run!),
                ),
                { until: (run) => run.status === status },
              )
            yield* stands("sleeping")
            of.shelf.put("a", 2)
            const { parked } = yield* stands("review")
            expect(JSON.parse(parked!)).toEqual({
              reason: "DataStale",
              step: "quote",
              problem:
                "of what 'quote' has read, 'stock' (\"a\") has moved; resume the run to go on with what it has, or cancel it, or fork it from 'quote'",
            })
            expect(of.calls).toEqual(["quote"])
            expect(yield* provided(bench, Cairn.resume({ runId }))).toBe(true)
            // It sleeps once more, and is not asked again.
            expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed(10))
            expect(of.calls).toEqual(["quote", "use"])
          }),
        )
      }
    }).pipe(Effect.provide(quiet)))

  test("is asked about again where it has moved on since the person was asked", (bench) =>
    Effect.gen(function* () {
      const of = quoting("review")
      const { handle } = yield* movedAsleep(bench, of)
      const first = yield* until(bench, "review")
      of.shelf.put("a", 3)
      yield* provided(bench, Cairn.resume({ runId: "r" }))
      yield* until(bench, "review", first.seq)
      expect((yield* parkedOf(bench)).reason).toBe("DataStale")
      expect(of.calls).toEqual(["quote"])
      yield* provided(bench, Cairn.resume({ runId: "r" }))
      expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed(10))
    }).pipe(Effect.scoped, Effect.provide(quiet)))

  test("fails the run, by the tag where the workflow declares it, and readably where not", (bench) =>
    Effect.gen(function* () {
      const of = quoting("fail", { failure: StaleData })
      const { handle } = yield* movedAsleep(bench, of)
      expect(errorOf(yield* Effect.exit(handle.result))).toEqual(
        new StaleData({ step: "quote", name: "stock", key: '"a"' }),
      )
      expect(of.calls).toEqual(["quote"])
    }).pipe(Effect.scoped, Effect.provide(quiet)))

  test("fails the run with what people can read, where the workflow declares no such failure", (bench) =>
    Effect.gen(function* () {
      const { handle } = yield* movedAsleep(bench, quoting("fail"))
      const error = errorOf(yield* Effect.exit(handle.result))
      expect(error._tag).toBe("RunFailed")
      expect(error.message).toContain(`data 'stock' ("a") that 'quote' has read has moved since`)
    }).pipe(Effect.scoped, Effect.provide(quiet)))

  test("is gone on with, where it says accept", (bench) =>
    Effect.gen(function* () {
      const of = quoting("accept")
      const { handle } = yield* movedAsleep(bench, of)
      expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed(10))
      expect(of.calls).toEqual(["quote", "use"])
    }).pipe(Effect.scoped, Effect.provide(quiet)))

  test("is found also after a sleep of a moment, for which the run stays where it is", (bench) =>
    Effect.gen(function* () {
      const { shelf, Stock } = makeShelf()
      let calls = 0
      const built = flow()
        .step("quote", { effects: [Stock], output: Schema.Number, onStale: "rerun" }, () => {
          calls += 1
          return Stock.read("a")
        })
        .sleep("moment", "500 millis")
      const workflow = done(built, Schema.Number, ({ results }) => results.quote)
      yield* worker(bench, workflow)
      const handle = yield* start(bench, workflow)
      yield* Effect.repeat(Effect.sleep(5), { until: () => calls === 1 })
      yield* Effect.sleep(50)
      shelf.put("a", 2)
      expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed(2))
      expect(calls).toBe(2)
      expect((yield* row(bench)).fence).toBe(1)
    }).pipe(Effect.scoped, Effect.provide(quiet)))
})

describe("whether data has moved", () => {
  const asked = (isCurrent: (key: string, token: number) => Effect.Effect<boolean, Error>) => {
    const Feed = DataVersion.make("feed", {
      capture: (key: string) => Effect.succeed({ value: key.length, token: 7 }),
      isCurrent,
    })
    const built = flow()
      .step("read", { effects: [Feed], output: Schema.Number }, () => Feed.read("abc"))
      .sleep("night", "5 seconds")
    return done(built, Schema.Number, ({ results }) => results.read)
  }

  test("is said by its own function, where it has one", (bench) =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const workflow = asked((key, token) => Effect.sync(() => seen.push([key, token]) === 0))
      yield* worker(bench, workflow)
      const handle = yield* start(bench, workflow)
      yield* until(bench, "review")
      expect(seen).toEqual([["abc", 7]])
      yield* provided(bench, Cairn.resume({ runId: "r" }))
      expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed(3))
    }).pipe(Effect.scoped, Effect.provide(quiet)))

  test("is asked again where nobody can tell, and then a person is", (bench) =>
    Effect.gen(function* () {
      let asks = 0
      const workflow = asked(() => Effect.suspend(() => (asks++, Effect.fail(new Error("no route")))))
      yield* worker(bench, workflow)
      const handle = yield* start(bench, workflow)
      yield* until(bench, "review")
      expect(asks).toBe(3)
      expect((yield* parkedOf(bench)).problem).toContain(`'feed' ("abc") cannot be compared: no route`)
      yield* provided(bench, Cairn.resume({ runId: "r" }))
      expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed(3))
    }).pipe(Effect.scoped, Effect.provide(quiet)))

  test("is not waited for without end: a check that gives no answer in time has none", (bench) =>
    Effect.gen(function* () {
      const workflow = asked(() => Effect.never)
      yield* worker(bench, workflow)
      yield* start(bench, workflow)
      yield* until(bench, "review")
      expect((yield* parkedOf(bench)).problem).toContain("cannot be compared")
    }).pipe(Effect.scoped, Effect.provide(quiet)))

  test("is neither a failure nor a reason to run again, where nobody can tell", (bench) =>
    Effect.gen(function* () {
      for (const onStale of ["rerun", "fail"] as const) {
        const of = quoting(onStale)
        const runId = onStale
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* worker(bench, of.workflow)
            yield* start(bench, of.workflow, runId)
            const stands = (status: string) =>
              Effect.repeat(Effect.zipRight(Effect.sleep(10), row(bench, runId)), {
                until: (run) => run.status === status,
              })
            yield* stands("sleeping")
            of.shelf.trouble = new Error("away")
            const { parked } = yield* stands("review")
            expect(JSON.parse(parked!).problem).toContain("cannot be compared: away")
            expect(of.calls).toEqual(["quote"])
          }),
        )
      }
    }).pipe(Effect.provide(quiet)))
})

describe("in turns and items", () => {
  test("only what is under way is asked about, not what is over", (bench) =>
    Effect.gen(function* () {
      const { shelf, Stock } = makeShelf()
      const read: Array<number> = []
      const built = flow().loop(
        "agent",
        { state: Schema.Number, initial: () => 0, maxIterations: 3 },
        (f: any) =>
          f
            .step(
              "look",
              { effects: [Stock], output: Schema.Number, onStale: "rerun" },
              function* ({ turn }: any): any {
                read.push(turn)
                return yield* Stock.read(`turn ${turn}`)
              },
            )
            .sleep("night", "5 seconds"),
        ({ results, state, turn }: any) => ({ done: turn === 1, state: state + results.look }),
      )
      const workflow = done(built, Schema.Number, ({ results }) => results.agent)
      yield* worker(bench, workflow)
      const handle = yield* start(bench, workflow)
      const first = yield* until(bench, "sleeping")
      yield* until(bench, "sleeping", first.seq)
      shelf.put("turn 0", 5)
      shelf.put("turn 1", 7)
      expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed(7))
      expect(read).toEqual([0, 1, 1])
    }).pipe(Effect.scoped, Effect.provide(quiet)))

  test("an item whose data has moved fails alone, where failures are collected", (bench) =>
    Effect.gen(function* () {
      const { shelf, Stock } = makeShelf()
      const built = flow().forEach(
        "each",
        { items: () => ["a", "b"], key: (item: string) => item, onFailure: "collect" },
        (f: any) =>
          f
            .step("look", { effects: [Stock], output: Schema.Number, onStale: "fail" }, ({ item }: any) =>
              Stock.read(item),
            )
            .sleep("night", "5 seconds"),
      )
      const workflow = done(built, Schema.Array(Schema.Number), ({ results }) => [
        results.each.total,
        results.each.failed,
      ])
      yield* worker(bench, workflow)
      const handle = yield* start(bench, workflow)
      yield* until(bench, "sleeping")
      shelf.put("b", 5)
      expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed([2, 1]))
    }).pipe(Effect.scoped, Effect.provide(quiet)))
})

describe("a list whose items have all read what moved", () => {
  test("is told of by the first few of them, and gone on with as a whole", (bench) =>
    Effect.gen(function* () {
      const { shelf, Stock } = makeShelf()
      const items = Array.from({ length: 20 }, (_, n) => `item ${n}`)
      const built = flow().forEach(
        "each",
        { items: () => items, key: (item: string) => item, concurrency: 20 },
        (f: any) =>
          f
            .step("look", { effects: [Stock], output: Schema.Number }, () => Stock.read("x".repeat(500)))
            .sleep("night", "5 seconds"),
      )
      const workflow = done(built, Schema.Number, ({ results }) => results.each.total)
      yield* worker(bench, workflow)
      const handle = yield* start(bench, workflow)
      yield* until(bench, "sleeping")
      shelf.put("x".repeat(500), 1)
      yield* until(bench, "review")
      const { problem } = yield* parkedOf(bench)
      expect(problem).toContain("; and 17 more; resume the run")
      expect(problem.length).toBeLessThan(1_000)
      // Once by each item, and one question for all of them.
      expect(shelf.looks).toBe(21)
      yield* provided(bench, Cairn.resume({ runId: "r" }))
      expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed(20))
    }).pipe(Effect.scoped, Effect.provide(quiet)))
})

describe("a fork", () => {
  test("has with the steps what they have read", (bench) =>
    Effect.gen(function* () {
      const of = quoting("rerun")
      yield* worker(bench, of.workflow)
      yield* start(bench, of.workflow)
      yield* until(bench, "sleeping")
      of.shelf.put("a", 2)
      const handle = yield* provided(bench, Cairn.fork(of.workflow, { runId: "r", step: "use", newRunId: "fork" }))
      expect(yield* Effect.exit(provided(bench, handle.result))).toEqual(Exit.succeed(20))
    }).pipe(Effect.scoped, Effect.provide(quiet)))
})
