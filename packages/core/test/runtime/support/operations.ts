/** Operations and services of runtime tests, with a provider that honours idempotency keys and counts what it sees. */
import { Context, Effect, Layer, Schema } from "effect"
import { OnUnknown, Operation, type HandlerContext } from "../../../src/index.js"

export class Declined extends Schema.TaggedError<Declined>()("Declined", { code: Schema.String }) {}

export const Charge = Operation.make("payments.charge", {
  payload: Schema.Struct({ customer: Schema.String, cents: Schema.Int }),
  success: Schema.Struct({ id: Schema.String, at: Schema.Date }),
  failure: Declined,
  onUnknown: OnUnknown.retryWithKey({ keyWindow: "24 hours" }),
})

export const Mail = Operation.make("mail.send", {
  payload: Schema.Struct({ to: Schema.String, body: Schema.String }),
  success: Schema.Void,
  onUnknown: OnUnknown.retryWithKey({ keyWindow: "24 hours", maxSends: 3 }),
  timeout: "10 seconds",
})

export interface Call {
  readonly key: string
  readonly payload: unknown
  readonly attempt: number
  readonly fence: number
}

/** What a provider knows: every request, and one effect a key. */
export class Provider {
  readonly calls: Array<Call> = []
  readonly done = new Map<string, unknown>()

  handle(payload: unknown, context: HandlerContext, result: (count: number) => unknown): unknown {
    this.calls.push({ key: context.idempotencyKey, payload, attempt: context.attempt, fence: context.fence })
    if (!this.done.has(context.idempotencyKey)) this.done.set(context.idempotencyKey, result(this.done.size + 1))
    return this.done.get(context.idempotencyKey)
  }

  keys(): ReadonlyArray<string> {
    return [...new Set(this.calls.map(({ key }) => key))]
  }

  payloads(): ReadonlyArray<string> {
    return [...new Set(this.calls.map(({ payload }) => JSON.stringify(payload)))]
  }
}

export interface Receipt {
  readonly id: string
  readonly at: Date
}

export const chargeAt = (provider: Provider) =>
  Charge.toLayer((payload, context) =>
    Effect.sync(() => provider.handle(payload, context, (n) => ({ id: `ch_${n}`, at: new Date(n) })) as Receipt),
  )

export const mailAt = (provider: Provider) =>
  Mail.toLayer((payload, context) => Effect.sync(() => void provider.handle(payload, context, () => undefined)))

export class Model extends Context.Tag("test/Model")<
  Model,
  { readonly ask: (text: string) => Effect.Effect<unknown> }
>() {}

export const modelSays = (answers: () => unknown) => Layer.succeed(Model, { ask: () => Effect.sync(answers) })
