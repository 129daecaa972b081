/** Workflows that are explored in several tests. */
import { Effects, OnUnknown, Operation, Usage, Workflow } from "@cairn/core"
import { Context, Effect, Layer, Schema } from "effect"

export class Declined extends Schema.TaggedError<Declined>()("Declined", { code: Schema.String }) {}

const withKey = OnUnknown.retryWithKey({ keyWindow: "24 hours" })

export const Charge = Operation.make("payments.charge", {
  payload: Schema.Struct({ customer: Schema.String, cents: Schema.Int }),
  success: Schema.Struct({ id: Schema.String, at: Schema.Date }),
  failure: Declined,
  onUnknown: withKey,
})

export const Refund = Operation.make("payments.refund", {
  payload: Schema.Struct({ charge: Schema.String }),
  success: Schema.Struct({ id: Schema.String }),
  onUnknown: withKey,
})

export const Mail = Operation.make("mail.send", {
  payload: Schema.Struct({ to: Schema.String, body: Schema.String }),
  success: Schema.Void,
  failure: Declined,
  onUnknown: withKey,
  timeout: "10 seconds",
})

export class Model extends Context.Tag("test/Model")<
  Model,
  { readonly ask: (text: string) => Effect.Effect<number> }
>() {}
export const model = Layer.succeed(Model, {
  ask: (text) => Usage.call({ model: "small", usage: () => ({ microDollars: 5 }) }, Effect.succeed(text.length * 100)),
})

/** A read, an operation in its own form, an operation inside a step, and a step without effects. */
export const invoice = Workflow.make("invoice", { version: 1, input: Schema.String })
  .step("read", { effects: [Effects.read(Model)], output: Schema.Int }, ({ input }) =>
    Effect.flatMap(Model, ({ ask }) => ask(input)),
  )
  .perform("charge", Charge, { payload: ({ input, results }) => ({ customer: input, cents: results.read }) })
  .step("mail", { effects: [Mail], output: Schema.Date }, function* ({ input, results }) {
    yield* Mail.perform({ to: input, body: results.charge.id })
    return results.charge.at
  })
  .step("plain", { effects: [], output: Schema.String }, async ({ results }) => `${results.mail.getTime()}`)
  .output(Schema.String, ({ results }) => `${results.charge.id} ${results.plain}`)
  .compile()

/** Two charges, then a mail that is always declined: both charges are taken back. */
export const undone = Workflow.make("undone", { version: 1, input: Schema.Null })
  .perform("first", Charge, {
    payload: () => ({ customer: "ada", cents: 100 }),
    compensate: { operation: Refund, payload: ({ result }) => ({ charge: result.id }) },
  })
  .perform("second", Charge, {
    payload: () => ({ customer: "bob", cents: 200 }),
    compensate: { operation: Refund, payload: ({ result }) => ({ charge: result.id }) },
  })
  .perform("mail", Mail, { payload: () => ({ to: "ada", body: "both" }) })
  .compile()

export const declining = Mail.toLayer(() => Effect.fail(new Declined({ code: "blocked" })))

/** A charge that is declined at first and tried again. */
export const hesitant = Workflow.make("hesitant", { version: 1, input: Schema.Int })
  .perform("charge", Charge, {
    payload: ({ input }) => ({ customer: "ada", cents: input }),
    retry: { times: 2, delay: "2 seconds" },
  })
  .output(Schema.String, ({ results }) => results.charge.id)
  .compile()

/** Declines what comes under the first key of a step; keys end in their generation. */
export const onceDeclined = ({ key }: { readonly key: string }) =>
  key.endsWith("#0") ? Effect.fail(new Declined({ code: "try again" })) : { id: "ch_1", at: new Date(5) }
