/**
 * A run goes back to before what it has read: once, whatever point its worker dies at, and never over what has happened outside.
 */
import { describe, expect } from "@effect/vitest"
import { Effect, Exit, Schema } from "effect"
import { Cairn, OnUnknown, Operation, StoreError, Workflow, type CheckpointStoreService } from "../../src/index.js"
import { makeMortal, quiet, startDoomed, startWorker } from "./support/bench.js"
import { test } from "./support/paying.js"
import { done, flow, makeShelf, parkedOf, provided, quoting, row, start, until, worker } from "./support/shelf.js"

describe("a run that is to go back", () => {
  const Mail = Operation.make("mail", {
    payload: Schema.Number,
    success: Schema.Number,
    onUnknown: OnUnknown.retryWithKey({ keyWindow: "30 days" }),
  })

  test("waits for a person where an operation has happened since, and performs it once", (bench) =>
    Effect.gen(function* () {
      const { shelf, Stock } = makeShelf()
      let sent = 0
      const Handlers = Mail.toLayer((n) => Effect.sync(() => ((sent += 1), n)))
      const built = flow()
        .step("quote", { effects: [Stock], output: Schema.Number, onStale: "rerun" }, () => Stock.read("a"))
        .perform("mail", Mail, { payload: ({ results }: any) => results.quote })
        .sleep("night", "5 seconds")
      const workflow = done(built, Schema.Number, ({ results }) => results.quote)
      yield* worker(bench, workflow, Handlers)
      const handle = yield* start(bench, workflow)
      yield* until(bench, "sleeping")
      shelf.put("a", 2)
      yield* until(bench, "review")
      expect((yield* parkedOf(bench)).problem).toContain(
        "it is not run again, for 'mail' (mail) has happened since, or may have",
      )
      yield* provided(bench, Cairn.resume({ runId: "r" }))
      expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed(1))
      expect(sent).toBe(1)
    }).pipe(Effect.scoped, Effect.provide(quiet)))

  test("goes back where an operation has happened before", (bench) =>
    Effect.gen(function* () {
      const { shelf, Stock } = makeShelf()
      let sent = 0
      const Handlers = Mail.toLayer((n) => Effect.sync(() => ((sent += 1), n)))
      const built = flow()
        .perform("mail", Mail, { payload: () => 5 })
        .step("quote", { effects: [Stock], output: Schema.Number, onStale: "rerun" }, () => Stock.read("a"))
        .sleep("night", "5 seconds")
      const workflow = done(built, Schema.Number, ({ results }) => results.quote)
      yield* worker(bench, workflow, Handlers)
      const handle = yield* start(bench, workflow)
      yield* until(bench, "sleeping")
      shelf.put("a", 2)
      expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed(2))
      expect(sent).toBe(1)
    }).pipe(Effect.scoped, Effect.provide(quiet)))

  test("waits for a person where an operation was declined since, for its key is spent", (bench) =>
    Effect.gen(function* () {
      const { shelf, Stock } = makeShelf()
      class No extends Schema.TaggedError<No>()("No", {}) {}
      const Ask = Operation.make("ask", {
        ...{ payload: Schema.Number, success: Schema.Number, failure: No },
        onUnknown: OnUnknown.retryWithKey({ keyWindow: "30 days" }),
      })
      const built = flow()
        .step("quote", { effects: [Stock], output: Schema.Number, onStale: "rerun" }, () => Stock.read("a"))
        .perform("ask", Ask, { payload: ({ results }: any) => results.quote, settle: true })
        .sleep("night", "5 seconds")
      const workflow = done(built, Schema.Boolean, ({ results }) => results.ask.ok)
      yield* worker(
        bench,
        workflow,
        Ask.toLayer(() => Effect.fail(new No())),
      )
      yield* start(bench, workflow)
      yield* until(bench, "sleeping")
      shelf.put("a", 2)
      yield* until(bench, "review")
      expect((yield* parkedOf(bench)).problem).toContain("it is not run again")
    }).pipe(Effect.scoped, Effect.provide(quiet)))

  test("waits for a person where a child was started since, and while it waits for it", (bench) =>
    Effect.gen(function* () {
      for (const rests of [true, false]) {
        const { shelf, Stock } = makeShelf()
        const runId = `r-${rests}`
        const child: any = (Workflow.make as any)("child", { version: 1, input: Schema.Null })
        const other = (rests ? child.sleep("long", "1 minute") : child).output(Schema.Number, () => 1).compile()
        const built = flow()
          .step("quote", { effects: [Stock], output: Schema.Number, onStale: "rerun" }, () => Stock.read("a"))
          .parallel("p", {
            a: (f: any) => f.child("kid", other, { input: () => null }),
            b: (f: any) => f.sleep("night", "5 seconds"),
          })
        const workflow = done(built, Schema.Number, ({ results }) => results.quote)
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* worker(bench, workflow)
            yield* start(bench, workflow, runId)
            const stands = (statuses: ReadonlyArray<string>) =>
              Effect.repeat(Effect.zipRight(Effect.sleep(10), row(bench, runId)), {
                until: (run) => statuses.includes(run.status),
              })
            yield* stands(["sleeping", "waiting"])
            yield* Effect.sleep("3 seconds")
            shelf.put("a", 2)
            const { parked } = yield* stands(["review"])
            expect(JSON.parse(parked!).problem).toContain("it is not run again")
          }),
        )
      }
    }).pipe(Effect.provide(quiet)))

  test("has the signals again that it had taken, and in their order", (bench) =>
    Effect.gen(function* () {
      const { shelf, Stock } = makeShelf()
      const built = flow()
        .step("quote", { effects: [Stock], output: Schema.Number, onStale: "rerun" }, () => Stock.read("a"))
        .signal("first", { signal: "go", schema: Schema.Number })
        .sleep("night", "5 seconds")
        .signal("second", { signal: "go", schema: Schema.Number })
      const workflow = done(built, Schema.Array(Schema.Number), ({ results }) => [
        results.quote,
        results.first,
        results.second,
      ])
      yield* worker(bench, workflow)
      const handle = yield* start(bench, workflow)
      for (const n of [1, 2]) {
        yield* provided(bench, Cairn.signal(workflow, { runId: "r", signalId: `s${n}` }, "go", n))
      }
      yield* until(bench, "sleeping")
      shelf.put("a", 2)
      expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed([2, 1, 2]))
    }).pipe(Effect.scoped, Effect.provide(quiet)))

  test("goes back to the first step that has read what moved; those before it stay", (bench) =>
    Effect.gen(function* () {
      const { shelf, Stock } = makeShelf()
      const calls: Array<string> = []
      const reading = (name: string, key: string) => (f: any) =>
        f.step(name, { effects: [Stock], output: Schema.Number, onStale: "rerun" }, function* (): any {
          calls.push(name)
          return yield* Stock.read(key)
        })
      const built = reading("c", "c")(reading("b", "b")(reading("a", "a")(flow()))).sleep("night", "5 seconds")
      const workflow = done(built, Schema.Number, ({ results }) => results.a + results.b + results.c)
      yield* worker(bench, workflow)
      const handle = yield* start(bench, workflow)
      yield* until(bench, "sleeping")
      shelf.put("c", 5)
      shelf.put("b", 50)
      expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed(56))
      expect(calls).toEqual(["a", "b", "c", "b", "c"])
    }).pipe(Effect.scoped, Effect.provide(quiet)))
})

describe("a run whose worker dies while it goes back", () => {
  /** So many points are passed on the way from the sleep to the end; each is a place to die at, also twice in a row. */
  const points = 32

  for (const again of [false, true]) {
    test(`has gone back once, whatever point it dies at${again ? ", and the next one as well" : ""}`, (bench) =>
      Effect.gen(function* () {
        let furthest = 0
        for (let point = 0; point < points; point++) {
          const one = Effect.gen(function* () {
            const of = quoting("rerun")
            const runId = `r${point}`
            const first = yield* Effect.scoped(
              Effect.gen(function* () {
                yield* worker(bench, of.workflow)
                yield* start(bench, of.workflow, runId)
                return yield* Effect.repeat(Effect.zipRight(Effect.sleep(10), row(bench, runId)), {
                  until: ({ status }) => status === "sleeping",
                })
              }),
            )
            of.shelf.put("a", 2)
            const handle = yield* provided(bench, Cairn.attach(of.workflow, { runId }))
            for (const after of again ? [point, Math.floor(point / 2)] : [point]) {
              let left = after
              const over = Effect.unsafeMakeLatch(false)
              const mortal = makeMortal(bench.store, (_, site) =>
                Effect.suspend(() => {
                  if (site.runId !== runId || left-- > 0) return Effect.void
                  furthest = Math.max(furthest, after)
                  mortal.kill()
                  return over.open
                }),
              )
              yield* startDoomed(mortal, { workflows: [of.workflow], lease: "1 second" })
              yield* Effect.raceFirst(over.await, Effect.either(provided(bench, handle.result)))
              mortal.kill()
            }
            yield* startWorker(bench.store, { workflows: [of.workflow], lease: "1 second", maxRecoveries: 100 })
            expect(yield* Effect.exit(provided(bench, handle.result)), `point ${point}`).toEqual(Exit.succeed(20))
            const { run, steps } = (yield* bench.driver.load("default", runId))!
            expect(steps.map(({ path }) => path)).toEqual(["quote", "night", "use", "day"])
            expect(run.seq).toBeGreaterThan(first.seq)
            const query = {
              namespace: "default",
              runId,
              newestFirst: false,
              after: null,
              limit: null,
              withResults: true,
            }
            const marks = yield* bench.driver.loadSteps({ ...query, scopes: [":rewound"] })
            expect(marks, `point ${point}`).toHaveLength(1)
            const [note] = yield* bench.driver.loadSteps({ ...query, scopes: [":data/"] })
            expect(note).toMatchObject({ path: ":data/quote", seq: steps[0]!.seq })
          })
          yield* Effect.scoped(one)
        }
        // The last points lie beyond the end of the run: all before were tried.
        expect(furthest).toBeLessThan(points - 1)
        expect(furthest).toBeGreaterThan(6)
      }).pipe(Effect.scoped, Effect.provide(quiet)))
  }

  test("has gone back where the store did so and its answer was lost", (bench) =>
    Effect.gen(function* () {
      const of = quoting("rerun")
      let lost = 0
      const store: CheckpointStoreService = {
        ...bench.store,
        rewindRun: (rewind) =>
          Effect.flatMap(bench.store.rewindRun(rewind), (at) =>
            ++lost === 1
              ? Effect.fail(new StoreError({ reason: "Unavailable", operation: "rewind", problem: "cut" }))
              : Effect.succeed(at),
          ),
      }
      yield* startWorker(store, { workflows: [of.workflow] })
      const handle = yield* start(bench, of.workflow)
      yield* until(bench, "sleeping")
      of.shelf.put("a", 2)
      expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed(20))
      expect([lost, of.calls]).toEqual([2, ["quote", "quote", "use"]])
    }).pipe(Effect.scoped, Effect.provide(quiet)))

  test("leaves it to the owner that the run has by then, where it has lost its lease meanwhile", (bench) =>
    Effect.gen(function* () {
      const of = quoting("rerun")
      const first = yield* startDoomed(makeMortal(bench.store), { workflows: [of.workflow] })
      const handle = yield* start(bench, of.workflow)
      yield* until(bench, "sleeping")
      yield* first.close
      of.shelf.put("a", 2)
      const reached = Effect.unsafeMakeLatch(false)
      const stalled = makeMortal(bench.store, (point, site) =>
        Effect.suspend(() => {
          if (point !== "beforeCommit" || site.step !== "quote") return Effect.void
          stalled.kill()
          return reached.open
        }),
      )
      yield* startDoomed(stalled, { workflows: [of.workflow], lease: "1 second" })
      yield* reached.await
      yield* startWorker(bench.store, { workflows: [of.workflow], lease: "1 second" })
      expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed(20))
      const before = yield* row(bench)
      stalled.wake()
      yield* Effect.sleep("3 seconds")
      expect(yield* row(bench)).toEqual(before)
    }).pipe(Effect.scoped, Effect.provide(quiet)))
})
