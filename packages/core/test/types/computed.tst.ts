/** Computed workflows: names and lists have no literal types, requirements and failures still have. */
import { Effect, Schema } from "effect"
import { describe, expect, test } from "tstyche"
import { Effects, Plan, type Performs } from "../../src/index.js"
import type {
  failureOfWorkflow,
  givenOfWorkflow,
  needsOfWorkflow,
  outputOfWorkflow,
} from "../../src/builder/Workflow.js"
import { type CardDeclined, Charge, Email, Hidden, Model, NotBillable, payment, Web } from "./fixtures.js"

declare const names: ReadonlyArray<string>

describe("Plan.make", () => {
  test("knows what it is given, gives, needs and fails with", () => {
    const used = Plan.make("computed", {
      version: 1,
      input: Schema.Struct({ at: Schema.Date }),
      failure: NotBillable,
      steps: [
        ...names.map((name) =>
          Plan.step(name, { effects: [Effects.read(Model), Effects.read(Web)], output: Schema.String }, () =>
            Effect.flatMap(Model, (model) => model.complete("")),
          ),
        ),
        Plan.perform("pay", Charge, { payload: ({ input }) => ({ customer: input.at, cents: 1 }) }),
      ],
      output: { schema: Schema.Number, select: () => 1 },
    })
    expect<givenOfWorkflow<typeof used>>().type.toBe<{ readonly at: Date }>()
    expect<outputOfWorkflow<typeof used>>().type.toBe<number>()
    expect<needsOfWorkflow<typeof used>>().type.toBe<Model | Web | Performs<"payments.charge">>()
    expect<failureOfWorkflow<typeof used>>().type.toBe<NotBillable | CardDeclined>()
  })

  test("gives nothing without an output", () => {
    const used = Plan.make("computed", { version: 1, input: Schema.Void, steps: [] })
    expect<outputOfWorkflow<typeof used>>().type.toBe<void>()
    expect<needsOfWorkflow<typeof used>>().type.toBe<never>()
  })

  test("takes computed names, computed lists of effects, and the four forms of run", () => {
    const effects = names.map((name) => Effects.read(name))
    Plan.step(names[0]!, { effects, output: Schema.Number }, () => 1)
    Plan.step(names[0]!, { effects, output: Schema.Number }, async () => 1)
    Plan.step(names[0]!, { effects, output: Schema.Number }, () => Effect.succeed(1))
    Plan.step(names[0]!, { effects: [Effects.read(Model)], output: Schema.String }, function* () {
      return yield* (yield* Model).complete("")
    })
  })

  test("refuses a service that the step does not declare", () => {
    expect(
      Plan.step("a", { effects: [Effects.read(Model)], output: Schema.Void }, () =>
        Effect.flatMap(Hidden, (hidden) => hidden.send),
      ),
    ).type.toRaiseError("not assignable")
  })

  test("refuses an operation that the step does not declare", () => {
    expect(Plan.step("a", { effects: [], output: Schema.Void }, () => Email.perform({ to: "" }))).type.toRaiseError(
      "not assignable",
    )
  })

  test("refuses an output or payload of another type", () => {
    expect(Plan.step("a", { effects: [], output: Schema.Number }, () => "no")).type.toRaiseError("not assignable")
    expect(Plan.perform("a", Charge, { payload: () => ({ ...payment, cents: "1" }) })).type.toRaiseError(
      "not assignable",
    )
  })
})
