/**
 * What `mail.send` does: one SMTP transaction; and how it is found out afterwards whether it has happened: one look into
 * the mailbox.
 *
 * The handler sorts what comes back into Cairn's three endings: a success; a failure after which nothing has happened
 * (declared, or `NotPerformed`); anything else dies, and means that nobody knows.
 */
import { NotPerformed, type Checked, type HandlerContext } from "@cairn/core"
import { Effect, Schema } from "effect"
import { domain, mailerFor, type MailServerAddress } from "./mailer.js"
import { messageIdOf } from "./messageId.js"
import type { Letter } from "./order.js"
import { MailRefused, SendMail } from "./workflow.js"

/** Who watches the handlers. */
export interface Watch {
  readonly sent?: (order: string, reply: string) => void
  readonly asked?: (order: string, found: boolean) => void
}

/** What is needed of what Cairn tells a handler. */
type Told = Pick<HandlerContext, "idempotencyKey" | "signal">

/** What nodemailer's errors say of themselves. */
interface SmtpError {
  readonly message: string
  readonly code?: string
  readonly originalCode?: string
  readonly response?: string
  readonly responseCode?: number
}

/** Before a connection stands there is nobody who could have taken a message. */
const neverSent = ({ code, originalCode }: SmtpError): boolean => code === "EDNS" || originalCode === "ECONNREFUSED"

/**
 * Whether the server, or nodemailer before it sent anything, has said what becomes of the mail: as an answer to the
 * envelope (`EENVELOPE`) or to the message (`EMESSAGE`). A 421 after the message says nothing of it: a server that shuts
 * down says it to everybody, also while it is storing a message.
 */
const isDecided = ({ code, responseCode }: SmtpError): boolean =>
  code === "EENVELOPE" || (code === "EMESSAGE" && responseCode !== 421)

const isTemporary = ({ responseCode = 0 }: SmtpError): boolean => responseCode >= 400 && responseCode < 500

const endingOf = (error: SmtpError): Effect.Effect<never, NotPerformed | MailRefused> => {
  if (neverSent(error)) return Effect.fail(new NotPerformed({ problem: error.message, cause: error }))
  if (!isDecided(error)) return Effect.die(error)
  // RFC 5321, 4.2.5: after a 4xx or a 5xx the server has not taken the message over, be it the last reply or an earlier one.
  const reply = error.response ?? error.message
  return isTemporary(error)
    ? Effect.fail(new NotPerformed({ problem: `the mail server answered ${reply}`, cause: error }))
    : Effect.fail(new MailRefused({ reply }))
}

/** Names of the stored messages. An answer of another shape is no "not there". */
const Found = Schema.Array(Schema.String)

const lookUp = async (mailboxUrl: string, messageId: string, signal: AbortSignal): Promise<boolean> => {
  const url = new URL(mailboxUrl)
  url.searchParams.set("message-id", messageId)
  const response = await fetch(url, { signal })
  if (!response.ok) throw new Error(`the mailbox answered ${response.status}`)
  return Schema.decodeUnknownSync(Found)(await response.json()).length > 0
}

/** The send and the question, for one mail server. */
export const mailing = (address: MailServerAddress, { sent, asked }: Watch = {}) => {
  const deliver = mailerFor(address)
  return {
    send: (letter: Letter, { idempotencyKey, signal }: Told) => {
      const messageId = messageIdOf(idempotencyKey, domain)
      return Effect.tryPromise({
        try: () => deliver(letter, messageId, signal),
        catch: (thrown) => thrown as SmtpError,
      }).pipe(
        Effect.catchAll(endingOf),
        Effect.map((reply) => {
          sent?.(letter.order, reply)
          return { messageId }
        }),
      )
    },
    check: async (
      letter: Letter,
      { idempotencyKey, signal }: Told,
    ): Promise<Checked<{ readonly messageId: string }>> => {
      const messageId = messageIdOf(idempotencyKey, domain)
      const found = await lookUp(address.mailboxUrl, messageId, signal)
      asked?.(letter.order, found)
      return found ? { happened: true, result: { messageId } } : { happened: false }
    },
  }
}

export const mailHandler = (address: MailServerAddress, watch?: Watch) => {
  const { send, check } = mailing(address, watch)
  return SendMail.toLayer(send, { check })
}
