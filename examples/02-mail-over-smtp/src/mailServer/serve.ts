/**
 * The mail server as a process of its own: `serve.ts <mail folder> <question file>`. It announces its addresses as one
 * line of JSON, and ends when whoever started it closes its standard input.
 */
import { startMailServer } from "./mailServer.js"

const [, , mailFolder, questionFile] = process.argv
if (mailFolder === undefined || questionFile === undefined) {
  console.error("usage: serve.ts <mail folder> <question file>")
  process.exit(2)
}

const { smtpPort, mailboxUrl } = await startMailServer({ mailFolder, questionFile })

// Without this, it would outlive a demo that was stopped with Ctrl-C.
process.stdin.once("end", () => process.exit(0)).resume()
process.stdout.write(`${JSON.stringify({ smtpPort, mailboxUrl })}\n`)
