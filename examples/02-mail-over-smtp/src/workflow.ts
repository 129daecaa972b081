/** The workflow: read an order, write the letter, send it. */
import { Effects, OnUnknown, Operation, Output, Workflow } from "@cairn/core"
import { Schema } from "effect"
import { Letter, letterFor, Order } from "./order.js"
import { Orders } from "./orders.js"
import { operationTimeoutMs } from "./timing.js"

/** The server has refused the mail for good: no such mailbox, not from you, not this text. */
export class MailRefused extends Schema.TaggedError<MailRefused>()("MailRefused", { reply: Schema.String }) {
  readonly isRetryable = false
  override get message() {
    return `The mail was refused: ${this.reply}`
  }
}

export const SendMail = Operation.make("mail.send", {
  payload: Letter,
  // Whoever asks the mailbox can tell it as well as whoever has sent the mail.
  success: Schema.Struct({ messageId: Schema.String }),
  failure: MailRefused,
  // SMTP knows no keys: a message sent twice is two messages. But the mailbox can be asked.
  onUnknown: OnUnknown.checkFirst({ maxSends: 10 }),
  timeout: operationTimeoutMs,
})

export const confirmation = Workflow.make("confirmation", { version: 1, input: Schema.String })
  .step("order", { effects: [Effects.read(Orders)], output: Order, retry: { times: 2 } }, function* ({ input }) {
    const orders = yield* Orders
    return Output.unvalidated(yield* orders.read(input))
  })
  .step("letter", { effects: [], output: Letter }, ({ results }) => letterFor(results.order))
  .perform("mail", SendMail, {
    payload: ({ results }) => results.letter,
    retry: { times: 5 },
  })
  .output(Schema.String, ({ results }) => results.mail.messageId)
  .compile()
