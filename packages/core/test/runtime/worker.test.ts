/** Workers: what they claim, and what they ask for before they start. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Cairn, CompileError, Worker } from "../../src/index.js"
import { adding, input, make, row, start, test } from "./support/adding.js"
import { makeBench, refuseUnhandled, startWorker, storeLayer, withWorker } from "./support/bench.js"
import { Charge } from "./support/operations.js"

refuseUnhandled()

describe("claims", () => {
  test("leave workflows and versions alone that the worker does not know", (bench) =>
    Effect.gen(function* () {
      yield* start(bench, adding("other"), "other")
      yield* start(bench, adding("adding", 2), "newer")
      const known = yield* start(bench, adding(), "known")
      yield* startWorker(bench.store, { workflows: [adding()] })
      expect(yield* known.result).toBe(3)
      yield* Effect.sleep("1 minute")
      expect(
        [yield* row(bench, "other"), yield* row(bench, "newer")].map(({ status, fence }) => [status, fence]),
      ).toEqual([
        ["pending", 0],
        ["pending", 0],
      ])
    }))

  test("never hold more runs at once than the worker may", (bench) =>
    Effect.gen(function* () {
      let running = 0
      let most = 0
      const workflow = make("slow")
        .step("s", { effects: [], output: Schema.Null }, () =>
          Effect.gen(function* () {
            most = Math.max(most, ++running)
            yield* Effect.sleep("1 second")
            running--
            return null
          }),
        )
        .compile()
      const handles = yield* Effect.forEach(
        Array.from({ length: 10 }, (_, n) => `r${n}`),
        (id) => start(bench, workflow, id),
      )
      yield* startWorker(bench.store, { workflows: [workflow], concurrency: 3 })
      yield* Effect.forEach(handles, ({ result }) => result, { concurrency: "unbounded" })
      expect(most).toBe(3)
    }))

  test("stay within the worker's namespace", (bench) =>
    Effect.gen(function* () {
      const workflow = adding()
      const theirs = Cairn.start(workflow, input, { runId: "r", namespace: "theirs" })
      const handle = yield* Effect.provide(theirs, storeLayer(bench.store))
      yield* startWorker(bench.store, { workflows: [workflow] })
      yield* Effect.sleep("10 seconds")
      expect((yield* handle.poll).status).toBe("pending")
      yield* startWorker(bench.store, { workflows: [workflow], namespace: "theirs" })
      expect(yield* handle.result).toBe(3)
    }))
})

describe("options", () => {
  const refused: Record<string, object> = {
    "a lease of 0": { lease: 0 },
    "a negative lease": { lease: -1 },
    "a lease of NaN": { lease: NaN },
    "an infinite lease": { lease: Infinity },
    "a lease of 1e20": { lease: 1e20 },
    "a lease of no duration": { lease: "" },
    "a poll of 0": { pollInterval: 0 },
    "a longest pause of 0": { maxPollInterval: 0 },
    "a longest pause of two hours": { maxPollInterval: "2 hours" },
    "a longest pause that is shorter than the first": { pollInterval: 2_000, maxPollInterval: 1_999 },
    "a negative drain": { drain: -1 },
    "a drain of NaN": { drain: NaN },
    "an infinite drain": { drain: "Infinity" },
    "no concurrency": { concurrency: 0 },
    "half a run": { concurrency: 1.5 },
    "a concurrency of NaN": { concurrency: NaN },
    "a value length of 0": { maxValueLength: 0 },
  }
  for (const [what, options] of Object.entries(refused)) {
    test(`${what} is refused when the worker starts (CRN110)`, (bench) =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(startWorker(bench.store, { workflows: [adding()], ...options }))
        expect(error).toBeInstanceOf(CompileError)
        expect((error as CompileError).diagnostics.map(({ code }) => code)).toEqual(["CRN110"])
      }))
  }

  test("an unusable namespace is refused", (bench) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(startWorker(bench.store, { workflows: [adding()], namespace: "" }))
      expect(error).toMatchObject({ _tag: "InvalidId", kind: "namespace" })
    }))

  test("a handler that nobody provides is a typed error when the worker starts", (bench) =>
    Effect.gen(function* () {
      const workflow = make("paying")
        .perform("pay", Charge, { payload: () => ({ customer: "a", cents: 1 }) })
        .compile()
      const error = yield* Effect.flip(startWorker(bench.store, { workflows: [workflow] }))
      expect(error).toMatchObject({ _tag: "CompileError", diagnostics: [{ code: "CRN107", step: "pay" }] })
    }))

  test("two workflows of one name and version are refused when the worker starts (CRN104)", (bench) =>
    Effect.gen(function* () {
      const workflows = [adding(), adding("adding", 2), adding("other"), adding()]
      const error = yield* Effect.flip(startWorker(bench.store, { workflows }))
      expect(error).toMatchObject({ _tag: "CompileError", diagnostics: [{ code: "CRN104", step: null }] })
      expect((error as CompileError).message).toContain("CRN104: workflow 'adding' version 1 is given twice; ")
    }))

  test("the same workflow given twice counts once", (bench) =>
    Effect.gen(function* () {
      const workflow = adding()
      yield* startWorker(bench.store, { workflows: [workflow, adding("adding", 2), workflow] })
      expect(yield* (yield* start(bench, workflow, "r")).result).toBe(3)
    }))

  test("a workflow that does not compile is a typed error when the worker starts, and at every start", (bench) =>
    Effect.gen(function* () {
      const broken = make("broken")
        .step("s", { effects: [Charge, Charge], output: Schema.Null }, () => null)
        .compile()
      expect(yield* Effect.flip(startWorker(bench.store, { workflows: [broken] }))).toMatchObject({
        _tag: "CompileError",
      })
      expect(yield* Effect.flip(start(bench, broken, "r"))).toMatchObject({ _tag: "CompileError" })
    }))

  test("the worker says which runs it executes", (bench) =>
    Effect.gen(function* () {
      const workflow = make("slow")
        .step("s", { effects: [], output: Schema.Null }, () => Effect.as(Effect.sleep("5 seconds"), null))
        .compile()
      const worker = yield* startWorker(bench.store, { workflows: [workflow] })
      const handle = yield* start(bench, workflow, "r")
      yield* Effect.sleep("2 seconds")
      expect(yield* worker.running).toEqual(["r"])
      yield* handle.result
      yield* Effect.yieldNow()
      yield* Effect.sleep(1)
      expect(yield* worker.running).toEqual([])
    }))
})

describe("the layer", () => {
  it.live("runs while it lives, and nothing of it is left afterwards", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const live = Worker.layer({ workflows: [adding()] }).pipe(Layer.provideMerge(storeLayer(bench.store)))
      const result = yield* Effect.provide(
        Effect.flatMap(Cairn.start(adding(), input, { runId: "r" }), (handle) => handle.result),
        live as Layer.Layer<any>,
      )
      expect(result).toBe(3)
      const after = yield* start(bench, adding(), "later")
      yield* Effect.sleep(50)
      expect((yield* after.poll).status).toBe("pending")
    }),
  )

  test("two workers share one store, and each run is executed once", (bench) =>
    Effect.gen(function* () {
      const counts = new Map<number, number>()
      const workflow = make("counting")
        .step("s", { effects: [], output: Schema.Int }, ({ input: { a } }: any) => {
          counts.set(a, (counts.get(a) ?? 0) + 1)
          return Effect.as(Effect.sleep(5), a)
        })
        .compile()
      yield* startWorker(bench.store, { workflows: [workflow] })
      yield* startWorker(bench.store, { workflows: [workflow] })
      const runs = Array.from({ length: 60 }, (_, a) => start(bench, workflow, `r${a}`, { a, b: 0 }))
      const handles = yield* Effect.all(runs, { concurrency: "unbounded" })
      yield* Effect.forEach(handles, ({ result }) => result, { concurrency: "unbounded" })
      expect([...counts.values()]).toEqual(Array.from({ length: 60 }, () => 1))
    }))

  it.live("does not need a worker of its own to look at a run", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const snapshot = yield* Effect.gen(function* () {
        const handle = yield* Cairn.start(adding(), input, { runId: "r" })
        yield* handle.result
        return yield* handle.poll
      }).pipe(withWorker(bench, [adding()]))
      expect(snapshot).toMatchObject({
        status: "completed",
        result: { _tag: "Some", value: { _tag: "Success", value: 3 } },
      })
    }),
  )
})
