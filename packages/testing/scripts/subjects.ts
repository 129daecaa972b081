/** What the published table explores: for each policy a workflow that performs in both forms, and one that takes back. */
import { OnUnknown, Operation, Workflow, type AnyWorkflow } from "@cairn/core"
import { Schema } from "effect"
import type { ExploreOptions } from "../src/index.js"

const Receipt = Schema.Struct({ id: Schema.String, at: Schema.Date })

/** The four policies, by name. */
export const policies = {
  retryWithKey: OnUnknown.retryWithKey({ keyWindow: "24 hours" }),
  checkFirst: OnUnknown.checkFirst(),
  recordFirst: OnUnknown.recordFirst(),
  review: OnUnknown.review(),
} as const

class Declined extends Schema.TaggedError<Declined>()("Declined", { code: Schema.String }) {}

/** A step without effects, an operation in its own form, one inside a step, and another step without effects. */
export const paying = (policy: keyof typeof policies): AnyWorkflow => {
  const Charge = Operation.make("payments.charge", {
    ...{ payload: Schema.Struct({ cents: Schema.Int }), success: Receipt, failure: Declined },
    onUnknown: policies[policy],
  })
  const Mail = Operation.make("mail.send", {
    ...{ payload: Schema.Struct({ body: Schema.String }), success: Schema.Void, timeout: "10 seconds" },
    onUnknown: policies[policy],
  })
  return Workflow.make(`paying-${policy}`, { version: 1, input: Schema.Int })
    .step("price", { effects: [], output: Schema.Int }, ({ input }) => input * 100)
    .perform("charge", Charge, { payload: ({ results }) => ({ cents: results.price }) })
    .step("mail", { effects: [Mail], output: Schema.Date }, function* ({ results }) {
      yield* Mail.perform({ body: results.charge.id })
      return results.charge.at
    })
    .step("note", { effects: [], output: Schema.String }, async ({ results }) => `${results.mail.getTime()}`)
    .output(Schema.String, ({ results }) => `${results.charge.id} ${results.note}`)
    .compile()
}

/** Two charges, then a step that fails for good: both are taken back, the last one first. */
export const takingBack = (): AnyWorkflow => {
  const onUnknown = policies.retryWithKey
  const Charge = Operation.make("payments.charge", {
    ...{ payload: Schema.Struct({ cents: Schema.Int }), success: Receipt, onUnknown },
  })
  const Refund = Operation.make("payments.refund", {
    ...{ payload: Schema.Struct({ charge: Schema.String }), success: Schema.Void, onUnknown },
  })
  const charge = (cents: number) => ({
    payload: () => ({ cents }),
    compensate: { operation: Refund, payload: ({ result }: any) => ({ charge: result.id }) },
  })
  return Workflow.make("taking-back", { version: 1, input: Schema.Int })
    .perform("first", Charge, charge(100))
    .perform("second", Charge, charge(200))
    .step("refuse", { effects: [], output: Schema.Void }, () => {
      throw new Error("sold out")
    })
    .compile()
}

export const subjects = (): ReadonlyArray<AnyWorkflow> => [
  ...(Object.keys(policies) as ReadonlyArray<keyof typeof policies>).map(paying),
  takingBack(),
]

export const input: ExploreOptions<AnyWorkflow>["input"] = 7 as never
