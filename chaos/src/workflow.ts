/** Ten steps, two of them operations, over an outside world that is one append-only file. */
import { OnUnknown, Operation, Plan } from "@cairn/core"
import { Effect, Layer, Schema } from "effect"
import { appendFileSync } from "node:fs"
import { note } from "./trace.js"

/** What the outside world has seen: one line a call. */
export interface Sent {
  readonly operation: string
  readonly key: string
  readonly payload: { readonly order: number }
}

/** Short: what is unknown after a kill is resolved after lease and timeout. */
export const operationTimeoutMs = 500

const operation = <const Name extends string>(name: Name) =>
  Operation.make(name, {
    payload: Schema.Struct({ order: Schema.Int }),
    success: Schema.Struct({ receipt: Schema.String }),
    onUnknown: OnUnknown.retryWithKey({ keyWindow: "1 hour", maxSends: 100 }),
    timeout: operationTimeoutMs,
  })

const Charge = operation("payments.charge")
const Mail = operation("mail.send")

/** Slow enough that the whole fleet is at work while it is struck. */
const stepMs = 150

export const runIdOf = (orderNumber: number): string => `order-${orderNumber}`

const counted = (name: string) =>
  Plan.step(name, { effects: [], output: Schema.Int }, ({ input, results }) =>
    Effect.suspend(() => {
      note("ran", runIdOf(input.order), name)
      return Effect.delay(
        Effect.sync(() => Object.keys(results).length),
        stepMs,
      )
    }),
  )

/** Length of what `s2` and `s8` give: how much of it a worker holds while its store is away. */
const outputChars = Number(process.env["CHAOS_OUTPUT_CHARS"] ?? "1")

const lengthy = (name: string) =>
  Plan.step(name, { effects: [], output: Schema.String }, ({ input }) => {
    note("ran", runIdOf(input.order), name)
    return "x".repeat(outputChars)
  })

const input = Schema.Struct({ order: Schema.Int })

export const order = Plan.make("order", {
  version: 1,
  input,
  steps: [
    counted("s1"),
    lengthy("s2"),
    counted("s3"),
    Plan.perform("charge", Charge, { payload: ({ input }) => ({ order: input.order }) }),
    counted("s5"),
    counted("s6"),
    Plan.perform("mail", Mail, { payload: ({ input }) => ({ order: input.order }) }),
    lengthy("s8"),
    counted("s9"),
    counted("s10"),
  ],
  output: {
    schema: Schema.Struct({ charge: Schema.String, mail: Schema.String, steps: Schema.Int }),
    select: ({ results }) => ({
      charge: results.charge.receipt,
      mail: results.mail.receipt,
      steps: results.s10 + 1,
    }),
  },
})

const write = (log: string, sent: Sent): void => appendFileSync(log, `${JSON.stringify(sent)}\n`)

/** Handlers that take a while, so that a kill finds some of them at work. */
export const outsideWorld = (log: string) => {
  const handle =
    (operationName: string) => (payload: { readonly order: number }, context: { readonly idempotencyKey: string }) =>
      Effect.as(
        Effect.delay(
          Effect.sync(() => write(log, { operation: operationName, key: context.idempotencyKey, payload })),
          "30 millis",
        ),
        { receipt: `${operationName}-${payload.order}` },
      )
  return Layer.mergeAll(Charge.toLayer(handle("payments.charge")), Mail.toLayer(handle("mail.send")))
}

export const expectedOutput = (of: number) => ({
  charge: `payments.charge-${of}`,
  mail: `mail.send-${of}`,
  steps: 10,
})
