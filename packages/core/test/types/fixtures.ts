/** Services, operations and schemas that the type tests share. */
import { Context, Effect, Schema } from "effect"
import { OnUnknown, Operation, Workflow } from "../../src/index.js"

export class ModelError extends Schema.TaggedError<ModelError>()("ModelError", { message: Schema.String }) {}
export class CardDeclined extends Schema.TaggedError<CardDeclined>()("CardDeclined", { code: Schema.String }) {}
export class NotBillable extends Schema.TaggedError<NotBillable>()("NotBillable", { why: Schema.String }) {}

export class Model extends Context.Tag("Model")<
  Model,
  {
    readonly extract: (text: string) => Effect.Effect<unknown, ModelError>
    readonly complete: (text: string) => Effect.Effect<string, "rate">
  }
>() {}
export class Web extends Context.Tag("Web")<Web, { readonly get: (url: string) => Effect.Effect<string, "down"> }>() {}
export class Clock extends Context.Tag("Clock")<Clock, { readonly now: Effect.Effect<number> }>() {}
export class Hidden extends Context.Tag("Hidden")<Hidden, { readonly send: Effect.Effect<void> }>() {}

const onUnknown = OnUnknown.retryWithKey({ keyWindow: "24 hours" })

export const Charge = Operation.make("payments.charge", {
  payload: Schema.Struct({ customer: Schema.String, cents: Schema.Int }),
  success: Schema.Struct({ id: Schema.String }),
  failure: CardDeclined,
  onUnknown,
})
export const Refund = Operation.make("payments.refund", {
  payload: Schema.Struct({ charge: Schema.String }),
  success: Schema.Void,
  onUnknown,
})
export const Email = Operation.make("mail.send", {
  payload: Schema.Struct({ to: Schema.String }),
  success: Schema.Void,
  onUnknown,
})
export const Publish = Operation.make("cms.publish", {
  payload: Schema.Struct({ title: Schema.String }),
  success: Schema.Struct({ url: Schema.String }),
  onUnknown,
})

export const payment = { customer: "c", cents: 1 }

export const flow = Workflow.make("orders", {
  version: 1,
  input: Schema.Struct({ email: Schema.String, cents: Schema.Int }),
})

/** A helper that hides an operation, as helpers do. */
export const chargeQuietly = Effect.asVoid(Charge.perform(payment))
export const mailQuietly = (
  to: string,
): Effect.Effect<void, never, Effect.Effect.Context<ReturnType<typeof Email.perform>>> => Email.perform({ to })
