/**
 * A provider as a process of its own: `serve.ts payments <log file>` or `serve.ts mail <log file>`. It announces its
 * address as one line of JSON, and ends when whoever started it closes its standard input.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { startApi, type RunningApi } from "./idempotentApi.js"
import { mail } from "./mail.js"
import { payments } from "./payments.js"

/** About what a provider takes to answer. */
const answerMs = 80

const [, , name, logFile] = process.argv
if ((name !== "payments" && name !== "mail") || logFile === undefined) {
  console.error("usage: serve.ts payments|mail <log file>")
  process.exit(2)
}

const options = { logFile, work: () => sleep(answerMs) }
const api: RunningApi = await (name === "payments" ? startApi(payments, options) : startApi(mail, options))

// Without this, a provider would outlive a demo that was stopped with Ctrl-C.
process.stdin.once("end", () => process.exit(0)).resume()
process.stdout.write(`${JSON.stringify({ ready: name, url: api.url })}\n`)
