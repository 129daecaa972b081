/**
 * What a step reads of data that has versions is noted with its commit, and with no other attempt; what it may not read is refused.
 */
import { describe, expect } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Schema } from "effect"
import { DataVersion } from "../../src/index.js"
import { quiet, startWorker, type Bench } from "./support/bench.js"
import { errorOf, test } from "./support/paying.js"
import { done, flow, makeShelf, notes, number, provided, quoting, row, start, until, worker } from "./support/shelf.js"

describe("what a step has read", () => {
  test("is committed with it, and with nothing else", (bench) =>
    Effect.gen(function* () {
      const { workflow } = quoting(undefined)
      yield* worker(bench, workflow)
      yield* start(bench, workflow)
      yield* until(bench, "sleeping")
      const { steps } = (yield* bench.driver.load("default", "r"))!
      expect(steps.map(({ path }) => path)).toEqual(["quote"])
      const read = { name: "stock", key: "a", token: "v1", snapshot: null }
      expect(yield* notes(bench)).toEqual([[":data/quote", steps[0]!.seq, [read]]])
    }).pipe(Effect.scoped))

  test("is that of the attempt which was committed, not of those that failed", (bench) =>
    Effect.gen(function* () {
      const { shelf, Stock } = makeShelf()
      let calls = 0
      const built = flow()
        .step("quote", { effects: [Stock], output: Schema.Number, retry: { times: 1, delay: 1 } }, function* (): any {
          const value = yield* Stock.read("a")
          if (++calls === 1) {
            shelf.put("a", 2)
            return yield* Effect.fail(new Error("once"))
          }
          return value
        })
        .sleep("night", "5 seconds")
      const workflow = done(built, Schema.Number, ({ results }) => results.quote)
      yield* worker(bench, workflow)
      const handle = yield* start(bench, workflow)
      expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed(2))
      expect((yield* notes(bench)).map(([, , reads]) => reads)).toMatchObject([[{ token: "v2" }]])
    }).pipe(Effect.scoped, Effect.provide(quiet)))

  test("is found as it was: a run is left alone, whatever else has moved (not read, not reported)", (bench) =>
    Effect.gen(function* () {
      for (const onStale of ["rerun", "review", "fail"] as const) {
        const { calls, shelf, workflow } = quoting(onStale)
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* worker(bench, workflow)
            const handle = yield* start(bench, workflow, onStale)
            yield* Effect.repeat(Effect.zipRight(Effect.sleep(10), row(bench, onStale)), {
              until: ({ status }) => status === "sleeping",
            })
            shelf.put("b", 7)
            expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed(10))
            expect(calls).toEqual(["quote", "use"])
            // Once by the step, and once after each sleep.
            expect(shelf.looks).toBe(3)
          }),
        )
      }
    }).pipe(Effect.provide(quiet)))

  test("costs a run that never rests no check", (bench) =>
    Effect.gen(function* () {
      const { shelf, Stock } = makeShelf()
      const built = flow()
        .step("quote", { effects: [Stock], output: Schema.Number }, () => Stock.read("a"))
        .step("use", number, ({ results }: any) => results.quote)
      const workflow = done(built, Schema.Number, ({ results }) => results.use)
      yield* worker(bench, workflow)
      expect(yield* Effect.flatMap(start(bench, workflow), (handle) => handle.result)).toBe(1)
      expect(shelf.looks).toBe(1)
    }).pipe(Effect.scoped))
})

describe("a step that reads data", () => {
  const failing = (bench: Bench, run: any, effects: ReadonlyArray<unknown> = []) =>
    Effect.gen(function* () {
      const workflow = done(
        flow().step("s", { effects, output: Schema.Number }, run),
        Schema.Number,
        ({ results }) => results.s,
      )
      yield* worker(bench, workflow)
      return errorOf(yield* Effect.exit((yield* start(bench, workflow)).result))
    }).pipe(Effect.scoped)

  test("that it does not declare is told so", (bench) =>
    Effect.gen(function* () {
      const { Stock } = makeShelf()
      const error = yield* failing(bench, () => Stock.read("a"))
      expect(error.message).toContain("CRN102: step 's' reads data 'stock' without declaring it in effects")
    }).pipe(Effect.provide(quiet)))

  test("with a key that is no JSON is told so", (bench) =>
    Effect.gen(function* () {
      const { Stock } = makeShelf()
      const error = yield* failing(bench, () => (Stock as any).read(1n), [Stock])
      expect(error.message).toContain("key of data 'stock' in step 's'")
    }).pipe(Effect.provide(quiet)))

  test("with a key or a token that is too large to be kept is told so", (bench) =>
    Effect.gen(function* () {
      const Large = DataVersion.make("large", {
        capture: (key: string) => Effect.succeed({ value: 1, token: `${key}${key}` }),
      })
      const built = flow().step("s", { effects: [Large], output: Schema.Number }, ({ read }: any) =>
        read(Large, "x".repeat(600)),
      )
      const workflow = done(built, Schema.Number, ({ results }) => results.s)
      yield* startWorker(bench.store, { workflows: [workflow], maxValueLength: 1_000 })
      const error = errorOf(yield* Effect.exit((yield* start(bench, workflow)).result))
      expect(error.message).toContain("token of data 'large' in step 's': it takes 1202 characters")
    }).pipe(Effect.scoped, Effect.provide(quiet)))

  test("of the store's database is refused by a worker over a store that has no transactions", (bench) =>
    Effect.gen(function* () {
      const Rows = DataVersion.query("rows", () => ({ text: "select 1" }))
      const workflow = done(
        flow().step("s", { effects: [Rows], output: Schema.Number }, () => 1),
        Schema.Number,
        ({ results }) => results.s,
      )
      const error: any = yield* Effect.flip(worker(bench, workflow))
      expect(error.message).toContain(
        "CRN106: step 's' reads data 'rows' from the store's database, and the memory store",
      )
    }).pipe(Effect.scoped))

  test("is not asked about what its code does not declare any more", (bench) =>
    Effect.gen(function* () {
      const of = quoting("fail")
      const handle = yield* Effect.gen(function* () {
        yield* worker(bench, of.workflow)
        const started = yield* start(bench, of.workflow)
        yield* until(bench, "sleeping")
        return started
      }).pipe(Effect.scoped)
      of.shelf.put("a", 2)
      const changed = done(
        flow()
          .step("quote", number, () => 0)
          .sleep("night", "5 seconds")
          .step("use", number, ({ results }: any) => results.quote * 10)
          .sleep("day", "5 seconds"),
        Schema.Number,
        ({ results }) => results.use,
      )
      yield* worker(bench, changed)
      expect(yield* Effect.exit(provided(bench, handle.result))).toEqual(Exit.succeed(10))
    }).pipe(Effect.scoped))

  test("may do so by promises", (bench) =>
    Effect.gen(function* () {
      const { Stock } = makeShelf()
      const workflow = done(
        flow().step(
          "s",
          { effects: [Stock], output: Schema.Number },
          async ({ read }: any) => (await read(Stock, "a")) + 1,
        ),
        Schema.Number,
        ({ results }) => results.s,
      )
      yield* worker(bench, workflow)
      expect(yield* Effect.exit((yield* start(bench, workflow)).result)).toEqual(Exit.succeed(2))
      expect(yield* notes(bench)).toHaveLength(1)
    }).pipe(Effect.scoped))

  test("finds the services of the worker, in the step as in the check", (bench) =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const Http = Context.GenericTag<{ readonly _: "Http" }, () => string>("Http")
      const Page = DataVersion.make("page", {
        capture: (url: string) => Effect.map(Http, (get) => (seen.push(url), { value: get(), token: get() })),
      })
      const built = flow()
        .step("s", { effects: [Page], output: Schema.String }, () => Page.read("/"))
        .sleep("night", "5 seconds")
      const workflow = done(built, Schema.String, ({ results }) => results.s)
      yield* startWorker(
        bench.store,
        { workflows: [workflow] },
        Layer.succeed(Http, () => "text"),
      )
      expect(yield* Effect.exit((yield* start(bench, workflow)).result)).toEqual(Exit.succeed("text"))
      expect(seen).toEqual(["/", "/"])
    }).pipe(Effect.scoped))

  test("outside of a run is told so", () =>
    Effect.sync(() => {
      const { Stock } = makeShelf()
      const exit = Effect.runSyncExit(Stock.read("a") as Effect.Effect<number>)
      expect(JSON.stringify(exit)).toContain("CRN109")
    }))
})
