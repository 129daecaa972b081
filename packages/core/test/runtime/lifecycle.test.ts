/** Pausing, trying again, and starting later or many at once: what people do with runs. */
import { describe, expect } from "@effect/vitest"
import { Deferred, Effect, Either, Exit, Layer, Schema } from "effect"
import { Cairn, Workflow, type AnyWorkflow } from "../../src/index.js"
import { intercepted, makeMortal, nothing, startWorker, storeLayer, type Bench } from "./support/bench.js"
import { row, test } from "./support/adding.js"
import { Book, bookAt, cancelAt, cancelling } from "./support/trips.js"
import { Provider } from "./support/operations.js"

const flow = (name = "w"): any => (Workflow.make as any)(name, { version: 1, input: Schema.NullOr(Schema.Number) })
const done = (built: any): AnyWorkflow => {
  const workflow = built.compile()
  expect(workflow.diagnostics).toEqual([])
  return workflow
}
const step = (body: (context: any) => unknown): any => [{ effects: [], output: Schema.JsonNumber }, body]
const provided = <A, E>(bench: Bench, effect: Effect.Effect<A, E, any>) =>
  Effect.provide(effect, storeLayer(bench.store)) as Effect.Effect<A, E>
const start = (bench: Bench, workflow: AnyWorkflow, runId = "r", options: object = {}) =>
  provided(bench, Cairn.start(workflow, null, { runId, ...options }))
const until = (bench: Bench, status: string, runId = "r") =>
  Effect.repeat(Effect.zipRight(Effect.sleep(10), row(bench, runId)), { until: (found) => found.status === status })
const errorOf = (exit: Exit.Exit<unknown, any>): any =>
  Exit.isFailure(exit) && exit.cause._tag === "Fail" ? exit.cause.error : expect.fail(String(exit))
const refusal = <A>(effect: Effect.Effect<A, any, any>) => Effect.map(Effect.exit(effect), errorOf)

describe("a pause", () => {
  test("lets what is under way end, and nothing further begin, until it is over", (bench) =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const goOn = yield* Deferred.make<void>()
      let second = 0
      const workflow = done(
        flow()
          .step(
            "first",
            ...step(() => Effect.as(Effect.zipRight(Deferred.succeed(begun, undefined), Deferred.await(goOn)), 1)),
          )
          .step("second", ...step(() => ++second)),
      )
      yield* startWorker(bench.store, { workflows: [workflow] })
      const handle = yield* start(bench, workflow)
      yield* Deferred.await(begun)
      expect(yield* provided(bench, Cairn.pause({ runId: "r" }))).toBe(true)
      expect(yield* provided(bench, Cairn.pause({ runId: "r" }))).toBe(true)
      yield* Effect.sleep(50)
      yield* Deferred.succeed(goOn, undefined)
      yield* until(bench, "pending")
      // Long past every poll.
      yield* Effect.sleep("1 hour")
      expect(second).toBe(0)
      expect((yield* bench.driver.load("default", "r"))!.steps.map(({ path }) => path)).toEqual(["first"])
      expect(yield* provided(bench, Cairn.resume({ runId: "r" }))).toBe(true)
      expect(yield* provided(bench, Cairn.resume({ runId: "r" }))).toBe(false)
      yield* handle.result
      expect(second).toBe(1)
      expect(yield* provided(bench, Cairn.pause({ runId: "r" }))).toBe(false)
      expect((yield* refusal(provided(bench, Cairn.pause({ runId: "none" }))))._tag).toBe("RunNotFound")
    }))

  test("of a run of another process is heard of by a heartbeat", (bench) =>
    Effect.gen(function* () {
      let turns = 0
      const workflow = done(
        flow().loop(
          "l",
          { state: Schema.Number, initial: () => 0, maxIterations: 10_000 },
          (flow: any) => flow.step("wait", ...step(() => Effect.as(Effect.sleep(500), ++turns))),
          ({ state }: any) => ({ done: false, state: state + 1 }),
        ),
      )
      yield* startWorker(bench.store, { workflows: [workflow], lease: 30_000 })
      yield* start(bench, workflow)
      yield* Effect.repeat(Effect.sleep(10), { until: () => turns > 2 })
      // Past the store object of the worker: nobody in its process is told.
      expect(yield* bench.driver.setPaused("default", "r", true)).toBe("Done")
      yield* until(bench, "pending")
      const stood = turns
      yield* Effect.sleep("1 minute")
      expect(turns).toBe(stood)
    }))

  test("that comes as the run completes changes nothing of that, and one that is first does", (bench) =>
    Effect.gen(function* () {
      const workflow = done(flow().step("only", ...step(() => 1)))
      for (const point of ["beforeCommit", "afterCommit"] as const) {
        const runId = point
        const mortal = makeMortal(bench.store, (at, site) =>
          at === point && site.runId === runId && site.step === "only"
            ? Effect.asVoid(Effect.orDie(provided(bench, Cairn.pause({ runId }))))
            : Effect.void,
        )
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* startWorker(mortal.store, { workflows: [workflow] }, nothing, mortal.faults)
            const handle = yield* start(bench, workflow, runId)
            yield* handle.result
          }),
        )
        expect((yield* row(bench, runId)).status).toBe("completed")
        expect(yield* provided(bench, Cairn.resume({ runId }))).toBe(false)
      }
    }))

  test("keeps a signal, and the run takes it once it is resumed", (bench) =>
    Effect.gen(function* () {
      const workflow = done(
        flow()
          .signal("go", { schema: Schema.Number })
          .output(Schema.Number, ({ results }: any) => results.go),
      )
      yield* startWorker(bench.store, { workflows: [workflow] })
      const handle = yield* start(bench, workflow)
      yield* until(bench, "waiting")
      yield* provided(bench, Cairn.pause({ runId: "r" }))
      expect(yield* provided(bench, Cairn.signal(workflow, { runId: "r" }, "go", 7))).toBe(true)
      yield* Effect.sleep("1 hour")
      expect((yield* row(bench, "r")).status).toBe("pending")
      yield* provided(bench, Cairn.resume({ runId: "r" }))
      expect(yield* handle.result).toBe(7)
    }))
})

/** The last step fails as long as `broken` says so. */
const failing = (broken: () => boolean, counts: Record<string, number>, retry: object = {}) => {
  const count = (name: string) => (counts[name] = (counts[name] ?? 0) + 1)
  return done(
    flow()
      .step("first", ...step(() => count("first")))
      .step("second", { effects: [], output: Schema.Number, ...retry }, () =>
        Effect.suspend(() => (count("second"), broken() ? Effect.fail(new Error("broken")) : Effect.succeed(2))),
      )
      .output(Schema.Number, ({ results }: any) => results.second),
  )
}

describe("a retry", () => {
  test("goes on from the step that failed, with all its attempts anew", (bench) =>
    Effect.gen(function* () {
      let broken = true
      const counts: Record<string, number> = {}
      const workflow = failing(() => broken, counts, { retry: { times: 2, delay: 1 } })
      yield* startWorker(bench.store, { workflows: [workflow] })
      const handle = yield* start(bench, workflow)
      expect(errorOf(yield* Effect.exit(handle.result))._tag).toBe("RunFailed")
      expect(counts).toEqual({ first: 1, second: 3 })
      const again = yield* provided(bench, Cairn.retry(workflow, { runId: "r" }))
      expect(errorOf(yield* Effect.exit(again.result))._tag).toBe("RunFailed")
      expect(counts).toEqual({ first: 1, second: 6 })
      broken = false
      expect(yield* (yield* provided(bench, Cairn.retry(workflow, { runId: "r" }))).result).toBe(2)
      expect(counts).toEqual({ first: 1, second: 7 })
      const { attempts } = yield* bench.driver.loadOpen("default", "r", ["second"])
      const kinds = attempts.map(({ attempt, kind }) => `${attempt} ${kind}`)
      expect(kinds.filter((kind) => kind.endsWith("retried"))).toEqual(["4 retried", "8 retried"])
      const refused = yield* refusal(provided(bench, Cairn.retry(workflow, { runId: "r" })))
      expect([refused._tag, refused.reason]).toEqual(["RetryRefused", "NotFailed"])
      const other = done(flow("other").step("a", ...step(() => 1)))
      expect((yield* refusal(provided(bench, Cairn.retry(other, { runId: "r" }))))._tag).toBe("RunConflict")
      expect((yield* refusal(provided(bench, Cairn.retry(workflow, { runId: "none" }))))._tag).toBe("RunNotFound")
    }))

  test("asked for twice at once happens once", (bench) =>
    Effect.gen(function* () {
      const counts: Record<string, number> = {}
      const workflow = failing(() => true, counts)
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* startWorker(bench.store, { workflows: [workflow] })
          yield* Effect.exit((yield* start(bench, workflow)).result)
        }),
      )
      // Both have seen it failed before either acts.
      let arrived = 0
      const both = yield* Effect.makeLatch(false)
      const store = intercepted(bench.store, (method) =>
        method === "reopenRun" ? Effect.zipRight(++arrived === 2 ? both.open : Effect.void, both.await) : Effect.void,
      )
      const asked = Effect.exit(Effect.provide(Cairn.retry(workflow, { runId: "r" }), storeLayer(store)))
      const exits = yield* Effect.all([asked, asked], { concurrency: 2 })
      expect(exits.filter(Exit.isSuccess)).toHaveLength(1)
      const refused = errorOf(exits.find(Exit.isFailure)!)
      expect([refused._tag, refused.reason]).toEqual(["RetryRefused", "NotFailed"])
      const { attempts } = yield* bench.driver.loadOpen("default", "r", ["second"])
      expect(attempts.map(({ kind }) => kind)).toEqual(["failed", "retried"])
    }))

  test("of a run that has taken back what it did is refused", (bench) =>
    Effect.gen(function* () {
      const booked = new Provider()
      const cancelled = new Provider()
      const needs = Layer.merge(bookAt(booked), cancelAt(cancelled)) as Layer.Layer<any>
      const workflow = done(
        flow()
          .perform("flight", Book, { payload: () => ({ what: "flight" }), compensate: cancelling })
          .perform("guide", Book, { payload: () => ({ what: "guide" }) }),
      )
      yield* startWorker(bench.store, { workflows: [workflow] }, needs)
      yield* Effect.exit((yield* start(bench, workflow)).result)
      const before = yield* row(bench, "r")
      const refused = yield* refusal(provided(bench, Cairn.retry(workflow, { runId: "r" })))
      expect([refused._tag, refused.reason]).toEqual(["RetryRefused", "Compensated"])
      expect(yield* row(bench, "r")).toEqual(before)
      // Nor does a fork build on what is not there any more; one that begins before it is told what would be done again.
      const fork = (step: string) =>
        refusal(provided(bench, Cairn.fork(workflow, { runId: "r", step, effects: "reuse" })))
      expect((yield* fork("guide")).reason).toBe("Compensated")
      expect((yield* fork("flight")).reason).toBe("NotReusable")
    }))

  test("performs an operation that was declined under a new key, and what is committed not again", (bench) =>
    Effect.gen(function* () {
      const keys: Array<string> = []
      let full = true
      const needs = Book.toLayer(({ what }, { idempotencyKey }) => {
        keys.push(`${what} ${idempotencyKey}`)
        return what === "guide" && full ? Effect.fail({ full: "none left" }) : Effect.succeed({ id: what })
      }) as Layer.Layer<any>
      const workflow = done(
        flow()
          .perform("flight", Book, { payload: () => ({ what: "flight" }) })
          .perform("guide", Book, { payload: () => ({ what: "guide" }) }),
      )
      yield* startWorker(bench.store, { workflows: [workflow] }, needs)
      expect(errorOf(yield* Effect.exit((yield* start(bench, workflow)).result))).toEqual({ full: "none left" })
      full = false
      yield* (yield* provided(bench, Cairn.retry(workflow, { runId: "r" }))).result
      expect(keys).toEqual(["flight default/r/flight#0", "guide default/r/guide#0", "guide default/r/guide#1"])
    }))
})

const family = (broken: () => boolean, counts: Record<string, number>) => {
  const child = failing(broken, counts)
  const parent = done(
    flow("parent")
      .step("before", ...step(() => (counts["before"] = (counts["before"] ?? 0) + 1)))
      .child("part", child, { input: () => null }),
  )
  return { child, parent }
}

describe("a retry of a run whose child has failed", () => {
  test("has the child tried again first, and both go on from where they were", (bench) =>
    Effect.gen(function* () {
      let broken = true
      const counts: Record<string, number> = {}
      const { child, parent } = family(() => broken, counts)
      yield* startWorker(bench.store, { workflows: [child, parent] })
      expect(Exit.isFailure(yield* Effect.exit((yield* start(bench, parent)).result))).toBe(true)
      broken = false
      yield* (yield* provided(bench, Cairn.retry(parent, { runId: "r" }))).result
      expect(counts).toEqual({ before: 1, first: 1, second: 2 })
    }))

  test("that dies between the two leaves both to be asked for again", (bench) =>
    Effect.gen(function* () {
      let broken = true
      const counts: Record<string, number> = {}
      const { child, parent } = family(() => broken, counts)
      yield* startWorker(bench.store, { workflows: [child, parent] })
      yield* Effect.exit((yield* start(bench, parent)).result)
      broken = false
      let reopened = 0
      const store = intercepted(bench.store, (method) =>
        method === "reopenRun" && ++reopened === 2 ? Effect.die("killed") : Effect.void,
      )
      const killed = yield* Effect.exit(Effect.provide(Cairn.retry(parent, { runId: "r" }), storeLayer(store)))
      expect([Exit.isFailure(killed), reopened]).toEqual([true, 2])
      const { runs } = yield* provided(bench, Cairn.list({ parent: "r" }))
      yield* until(bench, "completed", runs[0]!.runId)
      expect((yield* row(bench, "r")).status).toBe("failed")
      yield* (yield* provided(bench, Cairn.retry(parent, { runId: "r" }))).result
      expect(counts).toEqual({ before: 1, first: 1, second: 2 })
    }))

  test("is refused where the child was canceled, and changes nothing", (bench) =>
    Effect.gen(function* () {
      const child = done(flow("child").signal("go", { schema: Schema.Number }))
      const parent = done(flow("parent").child("part", child, { input: () => null }))
      yield* startWorker(bench.store, { workflows: [child, parent] })
      const handle = yield* start(bench, parent)
      yield* until(bench, "waiting")
      const { runs } = yield* provided(bench, Cairn.list({ parent: "r" }))
      yield* provided(bench, Cairn.cancel({ runId: runs[0]!.runId }))
      yield* Effect.exit(handle.result)
      const refused = yield* refusal(provided(bench, Cairn.retry(parent, { runId: "r" })))
      expect([refused._tag, refused.reason]).toEqual(["RetryRefused", "ChildCanceled"])
      expect((yield* row(bench, "r")).status).toBe("failed")
    }))
})

describe("a start", () => {
  const workflow = done(flow().step("now", ...step(() => 1)))

  test("at a time, or after a delay, begins then by the store's clock", (bench) =>
    Effect.gen(function* () {
      yield* startWorker(bench.store, { workflows: [workflow] })
      const from = yield* bench.driver.now
      const at = yield* start(bench, workflow, "at", { startAt: new Date(from + 3_600_000) })
      const after = yield* start(bench, workflow, "after", { delay: "2 hours", priority: 5 })
      const past = yield* start(bench, workflow, "past", { startAt: new Date(from - 1) })
      yield* past.result
      expect((yield* row(bench, "at")).status).toBe("sleeping")
      yield* at.result
      expect((yield* bench.driver.now) - from).toBeGreaterThanOrEqual(3_600_000)
      expect((yield* row(bench, "after")).priority).toBe(5)
      expect((yield* row(bench, "after")).status).toBe("sleeping")
      yield* after.result
      expect((yield* bench.driver.now) - from).toBeGreaterThanOrEqual(7_200_000)
      // The same start attaches, whenever it was to begin (X9).
      expect((yield* start(bench, workflow, "at", { delay: "9 hours" })).created).toBe(false)
    }))

  test("takes no time that is none", (bench) =>
    Effect.gen(function* () {
      const wrong: ReadonlyArray<object> = [
        { startAt: new Date(Number.NaN) },
        { startAt: "tomorrow" },
        { startAt: new Date(), delay: 1 },
        { delay: Number.NaN },
        { delay: -1 },
        { delay: "soon" },
        { delay: Number.POSITIVE_INFINITY },
        { priority: 1.5 },
      ]
      for (const options of wrong) {
        const refused = yield* refusal(start(bench, workflow, "r", options))
        expect([refused._tag, JSON.stringify(options)]).toEqual(["InvalidValue", JSON.stringify(options)])
      }
      expect(yield* bench.driver.findRun("default", "r")).toBeNull()
    }))

  test("of many gives each its handle or its refusal, in order, in one transaction", (bench) =>
    Effect.gen(function* () {
      yield* start(bench, workflow, "taken")
      let groups = 0
      const create = bench.driver.createRuns
      Object.assign(bench.driver, { createRuns: (rows: any) => (groups++, create(rows)) })
      const runs = Array.from({ length: 200 }, (_, n) => ({ input: n === 50 ? ("x" as any) : n, runId: `run-${n}` }))
      const started = yield* provided(
        bench,
        Cairn.startMany(workflow, [...runs, { input: 1, runId: "taken" }, { input: 7, runId: "run-7" }]),
      )
      const shown = started.map((one) =>
        Either.isRight(one) ? `${one.right.runId} ${one.right.created}` : (one.left as any)._tag,
      )
      const expected = runs.map(({ runId }, n) => (n === 50 ? "InvalidValue" : `${runId} true`))
      expect(shown).toEqual([...expected, "RunConflict", "run-7 false"])
      expect(groups).toBeLessThanOrEqual(2)
    }))
})
