/** The workflow: read an invoice, charge the card on file, mail the receipt. */
import { Effects, OnUnknown, Operation, Output, Usage, Workflow } from "@cairn/core"
import { Schema } from "effect"
import { Extractor } from "./extract.js"
import { Invoice } from "./invoice.js"
import { chargeFor, receiptFor } from "./payloads.js"
import { operationTimeoutMs } from "./timing.js"

/** An invoice as it comes in, with what is on file for its recipient. */
export const InvoiceRequest = Schema.Struct({ text: Schema.String, card: Schema.String, email: Schema.String })
export type InvoiceRequest = typeof InvoiceRequest.Type

/** Both providers of this example keep a key for a day. */
const onUnknown = OnUnknown.retryWithKey({ keyWindow: "24 hours" })

/** The bank said no. Asking again would not change its mind. */
export class CardDeclined extends Schema.TaggedError<CardDeclined>()("CardDeclined", {
  code: Schema.String,
  message: Schema.String,
}) {
  readonly isRetryable = false
}

export const ChargeCard = Operation.make("payments.charge", {
  payload: Schema.Struct({
    card: Schema.String,
    amountCents: Schema.Int,
    currency: Schema.String,
    invoice: Schema.String,
  }),
  success: Schema.Struct({ id: Schema.String }),
  failure: CardDeclined,
  onUnknown,
  timeout: operationTimeoutMs,
})

export const SendEmail = Operation.make("mail.send", {
  payload: Schema.Struct({ to: Schema.String, subject: Schema.String, body: Schema.String, invoice: Schema.String }),
  success: Schema.Struct({ id: Schema.String }),
  onUnknown,
  timeout: operationTimeoutMs,
})

/** What whoever started the run is given. */
export const Paid = Schema.Struct({ invoice: Schema.String, charge: Schema.String, mail: Schema.String })

export const invoice = Workflow.make("invoice", {
  version: 1,
  input: InvoiceRequest,
  // A run that would spend more on its model is parked before the call.
  budget: { run: Usage.dollars(1) },
})
  .step(
    "extract",
    {
      effects: [Effects.read(Extractor)],
      output: Invoice,
      retry: { times: 2 },
      onInvalid: { retries: 2, then: "review" },
    },
    function* ({ input }) {
      const extractor = yield* Extractor
      return Output.unvalidated(yield* extractor.extract(input.text))
    },
  )
  .perform("charge", ChargeCard, {
    payload: ({ input, results }) => chargeFor(input.card, results.extract),
    retry: { times: 5 },
  })
  .perform("email", SendEmail, {
    payload: ({ input, results }) => receiptFor(input.email, results.extract, results.charge.id),
    retry: { times: 5 },
  })
  .output(Paid, ({ results }) => ({
    invoice: results.extract.number,
    charge: results.charge.id,
    mail: results.email.id,
  }))
  .compile()
