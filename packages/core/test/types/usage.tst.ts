/** What a paid call may say, and what budgets take. */
import { Effect, Schema } from "effect"
import { describe, expect, test } from "tstyche"
import { Cairn, Effects, Usage, Workflow, type CostSum } from "../../src/index.js"
import { flow } from "./fixtures.js"

describe("a paid call", () => {
  const answer = Effect.succeed({ text: "42", used: { input: 1, output: 2 } })

  test("is what the effect is, and needs nothing more", () => {
    const paid = Usage.call(
      { model: "m", usage: ({ used }) => ({ inputTokens: used.input, outputTokens: used.output }) },
      answer,
    )
    expect(paid).type.toBe<typeof answer>()
    const failing = Usage.call(
      { model: "m", usage: () => null, failed: (error) => ({ microDollars: error.billed }) },
      Effect.fail({ billed: 3 }),
    )
    expect(failing).type.toBe<Effect.Effect<never, { billed: number }>>()
    expect(Usage.report({ model: "m", microDollars: 5 })).type.toBe<Effect.Effect<void>>()
  })

  test("knows its answer in promise style", () => {
    flow.step("ask", { effects: [Effects.read("m")], output: Schema.String }, async ({ paid, signal }) => {
      const said = await paid({ model: "m", usage: ({ tokens }) => ({ outputTokens: tokens }) }, async () => {
        expect(signal).type.toBe<AbortSignal>()
        return { text: "42", tokens: 2 }
      })
      expect(said).type.toBe<{ text: string; tokens: number }>()
      return said.text
    })
  })

  test("is refused without a model, with tokens that are none, or with an option that does not exist", () => {
    expect(Usage.call).type.not.toBeCallableWith({ usage: () => null }, answer)
    expect(Usage.call).type.not.toBeCallableWith({ model: "m" }, answer)
    expect(Usage.call).type.not.toBeCallableWith({ model: "m", usage: () => ({ inputTokens: "5" }) }, answer)
    expect(Usage.report).type.not.toBeCallableWith({ inputTokens: 5 })
    expect(Usage.dollars).type.not.toBeCallableWith("5")
  })
})

describe("a budget", () => {
  test("is for a run and for a day", () => {
    Workflow.make("w", { version: 1, input: Schema.Null, budget: { run: Usage.dollars(1), day: Usage.dollars(9) } })
    expect(Workflow.make).type.not.toBeCallableWith("w", { version: 1, input: Schema.Null, budget: { week: 1 } })
    expect(Workflow.make).type.not.toBeCallableWith("w", { version: 1, input: Schema.Null, budget: "$5" })
  })
})

describe("costs", () => {
  test("are summed by what there is", () => {
    expect(Cairn.cost({ by: "outcome" })).type.toBeAssignableTo<Effect.Effect<ReadonlyArray<CostSum>, any, any>>()
    expect(Cairn.cost).type.not.toBeCallableWith({ by: "customer" })
    expect(Cairn.cost).type.not.toBeCallableWith({})
  })
})
