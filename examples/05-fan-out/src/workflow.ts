/** A newsletter: one mail for each recipient, twenty at a time, and a list of those who could not be reached. */
import { OnUnknown, Operation, Workflow } from "@cairn/core"
import { Schema } from "effect"

/** A worker that is killed keeps its runs for this long. Short, so that the demo is. */
export const leaseMs = 2_000

/** How long the mail API may take: an outcome that nobody knows is looked into after this. */
const mailTimeoutMs = 2_000

export const concurrency = 20

export const Recipient = Schema.Struct({ id: Schema.String, address: Schema.String })

/** The mail API takes no mail to this address, now or later. Nothing was sent. */
export class AddressRefused extends Schema.TaggedError<AddressRefused>()("AddressRefused", { address: Schema.String }) {
  readonly isRetryable = false
  override get message() {
    return `No mail is taken for ${this.address}.`
  }
}

export const SendMail = Operation.make("mail.send", {
  payload: Schema.Struct({ to: Schema.String, subject: Schema.String }),
  success: Schema.Struct({ mail: Schema.String }),
  failure: AddressRefused,
  // The mail API honours keys, and each item has its own: `default/newsletter/mails[r-0042]/send#0`.
  onUnknown: OnUnknown.retryWithKey({ keyWindow: "24 hours" }),
  timeout: mailTimeoutMs,
})

export const newsletter = Workflow.make("newsletter", {
  version: 1,
  input: Schema.Struct({ subject: Schema.String, recipients: Schema.Array(Recipient) }),
})
  .forEach(
    "mails",
    {
      items: ({ input }) => input.recipients,
      key: (recipient) => recipient.id,
      concurrency,
      // One who cannot be reached keeps nobody else from their mail.
      onFailure: "collect",
    },
    (flow) =>
      flow.perform("send", SendMail, {
        payload: ({ input, item }) => ({ to: item.address, subject: input.subject }),
        // Where the API was not reached, that is. A refused address says itself that it is not to be tried again.
        retry: { times: 5 },
      }),
  )
  .step("unreachable", { effects: [], output: Schema.Array(Schema.String) }, async ({ results }) => {
    const addresses: Array<string> = []
    // A page of items at a time: this is never all of them.
    for await (const item of results.mails) if (!item.ok) addresses.push(item.error.failure?.address ?? item.key)
    return addresses.sort()
  })
  .output(Schema.Struct({ sent: Schema.Int, unreachable: Schema.Array(Schema.String) }), ({ results }) => ({
    sent: results.mails.succeeded,
    unreachable: results.unreachable,
  }))
  .compile()
