/**
 * A mail server: SMTP to bring messages, HTTP to ask which ones it has. It knows no idempotency keys, and takes a message
 * as often as it is brought, whatever its Message-ID: that is what SMTP servers do.
 *
 * - **S1** It says 250 only when the message is on disk and can be found.
 * - **S2** It says 451 when it could not store it, and does not have it: the message is the sender's still.
 * - **S3** Every question is in the log before it is answered.
 */
import { once } from "node:events"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import type { Readable } from "node:stream"
import { buffer } from "node:stream/consumers"
import { callbackify } from "node:util"
import { SMTPServer } from "smtp-server"
import type { MailServerAddress } from "../mailer.js"
import { appendTo } from "./journal.js"
import { openMaildir, type Maildir } from "./maildir.js"

/** One question to the mailbox, with how many such messages it had. */
export interface Question {
  readonly messageId: string
  readonly found: number
}

export interface MailServerOptions {
  readonly mailFolder: string
  readonly questionFile: string
}

export interface RunningMailServer extends MailServerAddress {
  readonly close: () => Promise<void>
}

const notStored = (cause: unknown): Error =>
  Object.assign(new Error("Requested action aborted: the message could not be stored", { cause }), {
    responseCode: 451,
  })

const smtpFor = (maildir: Maildir): SMTPServer => {
  const store = callbackify(async (message: Readable) => maildir.store(await buffer(message)))
  return new SMTPServer({
    disabledCommands: ["AUTH", "STARTTLS"],
    disableReverseLookup: true,
    onData: (stream, _session, callback) =>
      store(
        stream,
        (problem, name) =>
          problem === null
            ? callback(null, `stored as ${name}`) // S1
            : callback(notStored(problem)), // S2
      ),
  })
}

/** `GET /messages?message-id=<...>` answers with the names of the messages that have it. */
const mailboxFor = (maildir: Maildir, questionFile: string): Server =>
  createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://mailbox")
    const messageId = searchParams.get("message-id")
    const answer = (status: number, body: unknown) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body))
    if (request.method !== "GET" || pathname !== "/messages" || messageId === null) return answer(404, null)
    maildir.messages().then(
      (messages) => {
        const found = messages.filter((message) => message.messageId === messageId)
        appendTo(questionFile, { messageId, found: found.length } satisfies Question) // S3
        answer(
          200,
          found.map(({ name }) => name),
        )
      },
      () => answer(500, null),
    )
  })

export const startMailServer = async ({ mailFolder, questionFile }: MailServerOptions): Promise<RunningMailServer> => {
  const maildir = openMaildir(mailFolder)
  const smtp = smtpFor(maildir)
  // A client that dies takes its connection along; the server lives on.
  smtp.on("error", () => undefined)
  const mailbox = mailboxFor(maildir, questionFile)
  const listening = [once(smtp.listen(0, "127.0.0.1"), "listening"), once(mailbox.listen(0, "127.0.0.1"), "listening")]
  await Promise.all(listening)
  return {
    smtpPort: (smtp.server.address() as AddressInfo).port,
    mailboxUrl: `http://127.0.0.1:${(mailbox.address() as AddressInfo).port}/messages`,
    close: async () => {
      mailbox.closeAllConnections()
      await Promise.all([
        new Promise<void>((resolve) => mailbox.close(() => resolve())),
        new Promise<void>((resolve) => smtp.close(resolve)),
      ])
    },
  }
}
