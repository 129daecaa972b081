/** A mail provider: it delivers messages. */
import type { Endpoint } from "./idempotentApi.js"

export interface MailRequest {
  readonly to: string
  readonly subject: string
  readonly body: string
  /** What it is about; the provider keeps it beside the message. */
  readonly invoice: string
}

export interface Mail extends MailRequest {
  readonly id: string
}

const isMailRequest = (body: unknown): body is MailRequest => {
  const fields = Object(body) as Partial<Record<keyof MailRequest, unknown>>
  return (
    typeof fields.to === "string" &&
    fields.to.includes("@") &&
    typeof fields.subject === "string" &&
    typeof fields.body === "string" &&
    typeof fields.invoice === "string"
  )
}

export const mail: Endpoint<MailRequest, Mail> = {
  name: "mail",
  path: "/mails",
  parse: (body) => (isMailRequest(body) ? body : null),
  perform: (payload, count) => {
    const delivered = { id: `msg_${String(count + 1).padStart(4, "0")}`, ...payload }
    return { answer: { status: 202, body: { id: delivered.id } }, done: delivered }
  },
}
