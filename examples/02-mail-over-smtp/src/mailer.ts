/** Sends a letter over SMTP, for Cairn and the plain retry alike. */
import { createTransport } from "nodemailer"
import type { Letter } from "./order.js"

/** The shop's own domain, on the right side of its Message-IDs. */
export const domain = "bookshop.example"

export interface MailServerAddress {
  readonly smtpPort: number
  /** Where its mailbox can be asked. */
  readonly mailboxUrl: string
}

/** Resolves with the server's reply once it has taken the message over. An aborted signal breaks the connection. */
export type Send = (letter: Letter, messageId: string, signal?: AbortSignal) => Promise<string>

export const mailerFor = ({ smtpPort }: Pick<MailServerAddress, "smtpPort">): Send => {
  // A connection for each mail: a pooled one would hold messages back, and send them when nobody expects it any more.
  const transport = createTransport({ host: "127.0.0.1", port: smtpPort, ignoreTLS: true })
  return async ({ to, subject, text }, messageId, signal) => {
    const message = { from: `orders@${domain}`, to, subject, text, messageId }
    const { response } = await transport.sendMail(signal === undefined ? message : { ...message, signal })
    return response
  }
}
