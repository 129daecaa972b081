/** Outputs that their schema refuses: what the next attempt sees of them, what mends them, and what a person gives instead. */
import { describe, expect } from "@effect/vitest"
import { Effect, Exit, Schema } from "effect"
import { Cairn, Output, Workflow, type AnyWorkflow } from "../../src/index.js"
import { startWorker, storeLayer, type Bench } from "./support/bench.js"
import { row, test } from "./support/adding.js"

const Cents = Schema.Struct({ cents: Schema.Int })

/** A model that gives these answers, one after the other; the last one for ever. */
const asking = (answers: ReadonlyArray<unknown>, onInvalid: object) => {
  const prompts: Array<unknown> = []
  const workflow: AnyWorkflow = (Workflow.make as any)("w", { version: 1, input: Schema.Null })
    .step("extract", { effects: [], output: Cents, onInvalid }, ({ rejected }: any) => {
      prompts.push(rejected)
      const answer = answers[Math.min(prompts.length, answers.length) - 1]
      return typeof answer === "string" ? Output.json(answer) : Output.unvalidated(answer)
    })
    .step("after", { effects: [], output: Schema.Int }, ({ results }: any) => results.extract.cents + 1)
    .output(Schema.Int, ({ results }: any) => results.after)
    .compile()
  expect(workflow.diagnostics).toEqual([])
  return { workflow, prompts }
}
const run = (bench: Bench, workflow: AnyWorkflow) =>
  Effect.gen(function* () {
    yield* startWorker(bench.store, { workflows: [workflow] })
    const handle = yield* Effect.provide(Cairn.start(workflow, null, { runId: "r" }), storeLayer(bench.store))
    return { handle, exit: yield* Effect.exit(handle.result) }
  })
const accept = (bench: Bench, workflow: AnyWorkflow, given: any, of: object = {}) =>
  Effect.provide(Cairn.accept(workflow, { runId: "r", ...of }, given), storeLayer(bench.store))
const attempts = (bench: Bench) =>
  Effect.map(bench.driver.loadOpen("default", "r", ["extract"]), (open) =>
    open.attempts.map(({ kind, output }) => [kind, output]),
  )

describe("an output that its schema refuses", () => {
  test("is shown to the next attempt, with what is wrong with it, and kept", (bench) =>
    Effect.gen(function* () {
      const { prompts, workflow } = asking([{ cents: "12" }, "none at all", { cents: 7 }], { retries: 2, then: "fail" })
      const { exit } = yield* run(bench, workflow)
      expect(exit).toEqual(Exit.succeed(8))
      expect(prompts).toEqual([
        null,
        { raw: { cents: "12" }, issues: expect.stringContaining(".cents"), attempt: 1 },
        { raw: "none at all", issues: expect.stringContaining("no JSON"), attempt: 2 },
      ])
      expect(yield* attempts(bench)).toEqual([
        ["rejected", '{"cents":"12"}'],
        ["rejected", '"none at all"'],
      ])
      expect(bench.commits.flatMap(({ steps }) => steps.map(({ path }) => path))).toEqual(["extract", "after"])
    }))

  test("may be mended without another attempt", (bench) =>
    Effect.gen(function* () {
      const repair = ({ raw }: any) => ({ cents: Number.parseInt(raw.cents, 10) })
      const { prompts, workflow } = asking([{ cents: "12 cents" }], { retries: 0, repair, then: "fail" })
      expect((yield* run(bench, workflow)).exit).toEqual(Exit.succeed(13))
      expect(prompts).toHaveLength(1)
    }))

  test("is refused for what is wrong with itself, where mending fails or throws", (bench) =>
    Effect.gen(function* () {
      const repair = () => {
        throw new Error("cannot")
      }
      const { workflow } = asking([{ cents: "x" }], { retries: 0, repair, then: "fail" })
      const { exit } = yield* run(bench, workflow)
      expect(Exit.isFailure(exit) && exit.cause).toMatchObject({
        error: { problem: expect.stringContaining(".cents") },
      })
    }))

  test("that never fits is left to a person after so many attempts, and what they give is taken once", (bench) =>
    Effect.gen(function* () {
      const { prompts, workflow } = asking([{ cents: "never" }], { retries: 2, then: "review" })
      const { exit, handle } = yield* run(bench, workflow)
      expect(Exit.isFailure(exit) && exit.cause).toMatchObject({
        error: { _tag: "RunParked", reason: "OutputInvalid" },
      })
      expect(prompts).toHaveLength(3)
      expect(yield* Effect.flip(accept(bench, workflow, { by: "ann", output: { cents: "12" } }))).toMatchObject({
        _tag: "InvalidValue",
      })
      for (const by of ["", " ", "\n\u00a0"]) {
        expect(yield* Effect.flip(accept(bench, workflow, { by, output: { cents: 12 } }))).toMatchObject({
          field: ".by",
        })
      }
      expect(
        yield* Effect.flip(accept(bench, workflow, { by: "ann", output: { cents: 1 } }, { step: "after" })),
      ).toMatchObject({
        reason: "StepDiffers",
      })
      const both = yield* Effect.all(
        [
          Effect.either(accept(bench, workflow, { by: "ann", output: Output.unvalidated({ cents: 12 }) })),
          Effect.either(accept(bench, workflow, { by: "bob", output: { cents: 99 } })),
        ],
        { concurrency: "unbounded" },
      )
      expect(both.map(({ _tag }) => _tag)).toEqual(["Right", "Left"])
      expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed(13))
      expect(prompts).toHaveLength(3)
      expect(yield* Effect.flip(accept(bench, workflow, { by: "bob", output: { cents: 99 } }))).toMatchObject({
        _tag: "AnswerRefused",
        reason: "NotParked",
      })
      expect((yield* row(bench, "r")).status).toBe("completed")
    }))

  test("is asked for again where a person resumes the run instead", (bench) =>
    Effect.gen(function* () {
      const { prompts, workflow } = asking([{ cents: "no" }, { cents: 5 }], { retries: 0, then: "review" })
      const { handle } = yield* run(bench, workflow)
      yield* Effect.provide(Cairn.resume({ runId: "r" }), storeLayer(bench.store))
      expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed(6))
      expect(prompts).toMatchObject([null, { raw: { cents: "no" } }])
    }))
})

describe("a reviewer (P097)", () => {
  for (const [what, answer] of [
    ["prose", "The invoice comes to about four euros."],
    ["JSON that was cut off", '{"cents":4'],
    ["JSON with text behind it", '{"cents":420} I hope that helps!'],
    ["a wrong shape", { cents: "420" }],
  ] as const) {
    test(`sees ${what} as it was given, and what is wrong with it`, (bench) =>
      Effect.gen(function* () {
        const { workflow } = asking([answer], { retries: 1, then: "review" })
        const { exit } = yield* run(bench, workflow)
        expect(exit).toMatchObject({ cause: { error: { _tag: "RunParked", reason: "OutputInvalid" } } })
        const parked = yield* Effect.provide(Cairn.parked(), storeLayer(bench.store))
        expect(parked).toMatchObject([
          {
            step: "extract",
            rejected: [1, 2].map((attempt) => ({
              attempt,
              raw: JSON.stringify(answer),
              issues: expect.stringContaining(typeof answer === "string" ? "no JSON" : ".cents"),
            })),
          },
        ])
      }))
  }
})

describe("rejected outputs", () => {
  const left = (bench: Bench, keepRejected: any) =>
    Effect.gen(function* () {
      const { workflow } = asking([{ cents: "12" }, { cents: 7 }], { retries: 1, then: "fail" })
      yield* startWorker(bench.store, { workflows: [workflow], keepRejected, pollInterval: "10 minutes" })
      const handle = yield* Effect.provide(Cairn.start(workflow, null, { runId: "r" }), storeLayer(bench.store))
      yield* handle.result
      yield* Effect.sleep("2 hours")
      return yield* attempts(bench)
    })

  for (const keepRejected of ["1 day", undefined, Number.POSITIVE_INFINITY]) {
    test(`are kept where the worker says so: ${String(keepRejected)}`, (bench) =>
      Effect.gen(function* () {
        expect(yield* left(bench, keepRejected)).toEqual([["rejected", '{"cents":"12"}']])
      }))
  }

  test("are taken away when that time is over, and their attempts are not", (bench) =>
    Effect.gen(function* () {
      expect(yield* left(bench, "30 minutes")).toEqual([["rejected", null]])
    }))

  test("are not kept for a time that is none", (bench) =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(startWorker(bench.store, { workflows: [], keepRejected: "soon" as never }))
      expect(exit).toMatchObject({ cause: { error: { _tag: "CompileError" } } })
    }))
})
