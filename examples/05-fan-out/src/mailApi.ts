/**
 * A mail API as a process of its own: `mailApi.ts <log file>`. It announces its address as one line of JSON, and ends when
 * whoever started it closes its standard input.
 *
 * It honours `Idempotency-Key`: the same key with the same mail is answered as the first time, and nothing is sent; with
 * another mail it is refused.
 */
import { closeSync, fsyncSync, openSync, writeSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"

export interface MailEntry {
  /** `known`: the first answer was given again. */
  readonly event: "sent" | "refused" | "known" | "keyReused"
  readonly key: string
  readonly to: string
}

interface Answer {
  readonly status: number
  readonly body: object
}

/** About what a provider takes to answer. */
const answerMs = 20

const logFile = process.argv[2]
if (logFile === undefined) {
  console.error("usage: mailApi.ts <log file>")
  process.exit(2)
}
const descriptor = openSync(logFile, "a")
// Synced before anybody is answered: what the log says has happened, and what has happened it says.
const log = (entry: MailEntry): void => {
  writeSync(descriptor, `${JSON.stringify(entry)}\n`)
  fsyncSync(descriptor)
}

const answers = new Map<string, { readonly mail: string; readonly answer: Answer }>()
let sent = 0

const send = (key: string, mail: string): Answer => {
  const { to } = JSON.parse(mail) as { readonly to: string }
  const earlier = answers.get(key)
  if (earlier !== undefined) {
    const isSame = earlier.mail === mail
    log({ event: isSame ? "known" : "keyReused", key, to })
    return isSame ? earlier.answer : { status: 422, body: { problem: "This key was used with another mail." } }
  }
  const isGone = to.endsWith("@gone.example")
  const answer: Answer = isGone
    ? { status: 550, body: { problem: `There is no ${to}.` } }
    : { status: 202, body: { mail: `mail-${++sent}` } }
  log({ event: isGone ? "refused" : "sent", key, to })
  answers.set(key, { mail, answer })
  return answer
}

const server = createServer((request, response) => {
  const chunks: Array<Buffer> = []
  request
    .on("data", (chunk: Buffer) => chunks.push(chunk))
    .on("end", () => {
      const { status, body } = send(String(request.headers["idempotency-key"]), Buffer.concat(chunks).toString("utf8"))
      setTimeout(() => response.writeHead(status).end(JSON.stringify(body)), answerMs)
    })
})

await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
process.stdin
  // Without this, it would outlive a demo that was stopped with Ctrl-C.
  .once("end", () => {
    closeSync(descriptor)
    process.exit(0)
  })
  .resume()
process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })}\n`)
