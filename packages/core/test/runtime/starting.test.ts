/** Starting an id that is there already: one run, or a typed conflict (X9). */
import { describe, expect } from "@effect/vitest"
import { Effect, Exit, Schema } from "effect"
import { Cairn, Workflow, type AnyWorkflow } from "../../src/index.js"
import { adding, make, row, start, test } from "./support/adding.js"
import { refuseUnhandled, startWorker, storeLayer, type Bench } from "./support/bench.js"
import { Charge, chargeAt, Declined, Provider } from "./support/operations.js"

refuseUnhandled()

describe("starting the same id", () => {
  test("twenty times at once is one run", (bench) =>
    Effect.gen(function* () {
      const provider = new Provider()
      const workflow = make("paying")
        .perform("pay", Charge, { payload: () => ({ customer: "ada", cents: 1 }) })
        .output(Schema.String, ({ results }: any) => results.pay.id)
        .compile()
      yield* startWorker(bench.store, { workflows: [workflow] }, chargeAt(provider))
      const started = yield* Effect.forEach(
        Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? { a: 1, b: 2 } : { b: 2, a: 1 })),
        (given) =>
          Effect.gen(function* () {
            const handle = yield* start(bench, workflow, "r", given)
            return [handle.created, yield* handle.result]
          }),
        { concurrency: "unbounded" },
      )
      expect(started.filter(([created]) => created)).toHaveLength(1)
      expect(new Set(started.map(([, result]) => result))).toEqual(new Set(["ch_1"]))
      expect(provider.calls).toHaveLength(1)
    }))

  test("with another workflow or input is a typed conflict that leaves the run alone", (bench) =>
    Effect.gen(function* () {
      yield* start(bench, adding(), "r")
      const before = yield* row(bench, "r")
      expect(yield* Effect.flip(start(bench, adding(), "r", { a: 1, b: 3 }))).toMatchObject({
        _tag: "RunConflict",
        reason: "InputDiffers",
      })
      expect(yield* Effect.flip(start(bench, adding("other"), "r"))).toMatchObject({
        _tag: "RunConflict",
        reason: "WorkflowDiffers",
      })
      const attach = Effect.provide(Cairn.attach(adding("other"), { runId: "r" }), storeLayer(bench.store))
      expect(yield* Effect.flip(attach)).toMatchObject({ _tag: "RunConflict" })
      const nobody = Effect.provide(Cairn.attach(adding(), { runId: "nobody" }), storeLayer(bench.store))
      expect(yield* Effect.flip(nobody)).toMatchObject({ _tag: "RunNotFound" })
      expect(yield* row(bench, "r")).toEqual(before)
    }))

  test("with an unusable id or input is refused before anything is stored", (bench) =>
    Effect.gen(function* () {
      for (const runId of ["", "a\u0000b", "\ud800", "x".repeat(256)]) {
        expect(yield* Effect.flip(start(bench, adding(), runId))).toMatchObject({ _tag: "InvalidId" })
      }
      const refused = start(bench, adding(), "r", { a: 1, b: "2" })
      expect(yield* Effect.flip(refused)).toMatchObject({ _tag: "InvalidValue", field: ".b" })
      expect(yield* bench.driver.findRun("default", "r")).toBeNull()
    }))

  test("for ids that objects treat specially are runs like any other", (bench) =>
    Effect.gen(function* () {
      const workflow = adding()
      yield* startWorker(bench.store, { workflows: [workflow] })
      for (const runId of ["__proto__", "constructor", "prototype", "a/b", "a#1", " "]) {
        expect(yield* (yield* start(bench, workflow, runId)).result).toBe(3)
      }
      expect(({} as any).status).toBeUndefined()
    }))
})

describe("starting another version under an id that is there", () => {
  const bare = (version: number): AnyWorkflow =>
    make("adding", version)
      .step("sum", { effects: [], output: Schema.Int }, () => 3)
      .compile()
  const giving = (version: number, output: Schema.Schema.AnyNoContext, select: (sum: any) => unknown): AnyWorkflow =>
    make("adding", version)
      .step("sum", { effects: [], output: Schema.Int }, ({ input: { a, b } }: any) => a + b)
      .output(output, ({ results }: any) => select(results.sum))
      .compile()
  const failing = (version: number, failure: Schema.Schema.AnyNoContext | null): AnyWorkflow =>
    (Workflow.make as any)("adding", {
      version,
      input: Schema.Struct({ a: Schema.Int, b: Schema.Int }),
      ...(failure === null ? {} : { failure }),
    })
      .step("sum", { effects: [], output: Schema.Int }, () => Effect.fail(new Declined({ code: "stolen" })))
      .compile()
  const same = (sum: unknown) => sum

  const attached = (bench: Bench, old: AnyWorkflow, newer: AnyWorkflow) =>
    Effect.gen(function* () {
      yield* startWorker(bench.store, { workflows: [old] })
      yield* Effect.exit((yield* start(bench, old, "r")).result)
      const before = yield* row(bench, "r")
      const handle = yield* start(bench, newer, "r")
      const exit = yield* Effect.exit(handle.result)
      expect([handle.created, before.version]).toEqual([false, 1])
      expect(yield* row(bench, "r")).toEqual(before)
      // A look says the same as waiting does.
      expect((yield* handle.poll).result).toMatchObject({ _tag: "Some", value: exit })
      return exit
    })
  const refused = { _tag: "Failure", cause: { _tag: "Fail", error: { _tag: "InvalidValue" } } }

  const outputs: Record<string, readonly [old: AnyWorkflow, newer: AnyWorkflow, end: object]> = {
    "of the same output gives it": [adding(), adding("adding", 2), Exit.succeed(3)],
    "of another type over the same text gives its own type": [
      giving(1, Schema.String, () => "1970-01-01T00:00:00.003Z"),
      giving(2, Schema.Date, (sum) => new Date(sum)),
      Exit.succeed(new Date(3)),
    ],
    "of another output is an InvalidValue": [adding(), giving(2, Schema.String, String), refused],
    "with an output, where the old one has none, is an InvalidValue": [bare(1), adding("adding", 2), refused],
    "without an output gives nothing": [adding(), bare(2), Exit.succeed(undefined)],
    "of a struct over a number is an InvalidValue": [
      adding(),
      giving(2, Schema.Struct({ sum: Schema.Int }), same),
      refused,
    ],
    "of the same failure gives it": [
      failing(1, Declined),
      failing(2, Declined),
      Exit.fail(new Declined({ code: "stolen" })),
    ],
    "of another failure is a RunFailed with its text": [
      failing(1, Declined),
      failing(2, Schema.Struct({ other: Schema.String })),
      { _tag: "Failure", cause: { _tag: "Fail", error: { _tag: "RunFailed", step: "sum" } } },
    ],
    "without a failure is a RunFailed": [
      failing(1, Declined),
      failing(2, null),
      { _tag: "Failure", cause: { _tag: "Fail", error: { _tag: "RunFailed", step: "sum" } } },
    ],
  }
  for (const [how, [old, newer, end]] of Object.entries(outputs)) {
    test(`attaches to it: one ${how}`, (bench) =>
      Effect.gen(function* () {
        expect(yield* attached(bench, old, newer)).toMatchObject(end)
      }))
  }

  test("leaves a run that has not ended to workers of its own version", (bench) =>
    Effect.gen(function* () {
      yield* start(bench, adding(), "r")
      const handle = yield* start(bench, adding("adding", 2), "r")
      yield* startWorker(bench.store, { workflows: [adding("adding", 2)] })
      yield* Effect.sleep("1 minute")
      expect([handle.created, (yield* handle.poll).status]).toEqual([false, "pending"])
      yield* startWorker(bench.store, { workflows: [adding()] })
      expect(yield* handle.result).toBe(3)
    }))

  test("with an input that the new version writes otherwise is a typed conflict", (bench) =>
    Effect.gen(function* () {
      yield* start(bench, adding(), "r")
      const newer: AnyWorkflow = (Workflow.make as any)("adding", {
        version: 2,
        input: Schema.Struct({ a: Schema.Int, b: Schema.NumberFromString }),
      }).compile()
      expect(yield* Effect.flip(start(bench, newer, "r"))).toMatchObject({ reason: "InputDiffers" })
    }))
})
