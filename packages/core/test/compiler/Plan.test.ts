import { Context, Effect, Either, Schema } from "effect"
import { describe, expect, it } from "vitest"
import { Effects, OnUnknown, Operation, Plan, Workflow } from "../../src/index.js"

class Model extends Context.Tag("Model")<Model, { readonly ask: (text: string) => Effect.Effect<string> }>() {}
const Send = Operation.make("mail.send", {
  payload: Schema.Struct({ to: Schema.String }),
  success: Schema.Struct({ id: Schema.String }),
  onUnknown: OnUnknown.retryWithKey({ keyWindow: "24 hours" }),
})
const input = Schema.Struct({ to: Schema.String })

describe("Plan.make", () => {
  it("builds a workflow of as many steps as a list says", () => {
    const people = ["ann", "bob", "cy"]
    const mails = Plan.make("mails", {
      version: 1,
      input,
      steps: [
        ...people.map((person) =>
          Plan.step(`write to ${person}`, { effects: [Effects.read(Model)], output: Schema.String }, function* () {
            return yield* (yield* Model).ask(person)
          }),
        ),
        ...people.map((person) =>
          Plan.perform(`mail ${person}`, Send, { payload: ({ results }) => ({ to: results[`write to ${person}`] }) }),
        ),
      ],
      output: { schema: Schema.Number, select: ({ results }) => Object.keys(results).length },
    })
    expect(mails.diagnostics).toEqual([])
    expect(Either.getOrThrow(mails.plan).nodes.map(({ name }) => name)).toEqual([
      "write to ann",
      "write to bob",
      "write to cy",
      "mail ann",
      "mail bob",
      "mail cy",
    ])
  })

  it("gives the plan that the builder gives", () => {
    const built = Workflow.make("one", { version: 1, input, failure: Schema.String })
      .step("a", { effects: [], output: Schema.Date, retry: { times: 2 } }, () => new Date(0))
      .perform("b", Send, { payload: () => null, optional: true, settle: true })
      .output(Schema.Date, ({ results }) => results.a)
      .compile()
    const computed = Plan.make("one", {
      version: 1,
      input,
      failure: Schema.String,
      steps: [
        Plan.step("a", { effects: [], output: Schema.Date, retry: { times: 2 } }, () => new Date(0)),
        Plan.perform("b", Send, { payload: () => null, optional: true, settle: true }),
      ],
      output: { schema: Schema.Date, select: ({ results }) => results.a },
    })
    expect(Either.getOrThrow(computed.plan)).toStrictEqual(Either.getOrThrow(built.plan))
  })

  it("is checked by the rules that types cannot keep here", () => {
    const twice = Plan.make("twice", {
      version: 1,
      input,
      steps: ["a", "a"].map((name) => Plan.step(name, { effects: [], output: Schema.Void }, () => {})),
    })
    expect(twice.diagnostics.map(({ message }) => message)).toEqual([
      "CRN104: step name 'a' is already taken; every step of a scope has a name of its own",
    ])
    const many = Plan.make("many", {
      version: 1,
      input,
      steps: [Plan.step("a", { effects: [Send, Send], output: Schema.Void }, () => {})],
    })
    expect(many.diagnostics.map(({ code }) => code)).toEqual(["CRN101"])
  })

  it("says so when something else stands among the steps, and leaves none out in silence", () => {
    const good = Plan.step("a", { effects: [], output: Schema.Void }, () => {})
    for (const steps of [undefined, "ab", [good, undefined], [{}], Object.assign(Array(2), { 1: good })]) {
      const workflow = Plan.make("odd", { version: 1, input, steps: steps as never })
      expect(workflow.diagnostics.map(({ message }) => message)).toEqual([
        "CRN107: the steps of Plan.make must be a list of what Plan.step and Plan.perform give; something else stands there",
      ])
    }
  })
})
