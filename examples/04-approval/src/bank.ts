/**
 * A bank as a process of its own: `bank.ts <log file>`. It announces its address as one line of JSON, and ends when whoever
 * started it closes its standard input.
 *
 * It honours `Idempotency-Key`: the same key with the same transfer is answered as the first time, and nothing is paid; with
 * another transfer it is refused.
 */
import { appendFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"

export interface BankEntry {
  readonly event: "paid" | "known" | "refused"
  readonly key: string
  readonly to: string
}

const logFile = process.argv[2]
if (logFile === undefined) {
  console.error("usage: bank.ts <log file>")
  process.exit(2)
}
// Synced before anybody is answered: what the log says has happened, and what has happened it says.
const log = (entry: BankEntry): void => appendFileSync(logFile, `${JSON.stringify(entry)}\n`, { flush: true })

const transfers = new Map<string, { readonly asked: string; readonly transfer: string }>()

const payOut = (key: string, asked: string): { readonly status: number; readonly body: object } => {
  const { to } = JSON.parse(asked) as { readonly to: string }
  const earlier = transfers.get(key)
  if (earlier !== undefined && earlier.asked !== asked) {
    log({ event: "refused", key, to })
    return { status: 422, body: { problem: "This key was used with another transfer." } }
  }
  const transfer = earlier?.transfer ?? `transfer-${transfers.size + 1}`
  log({ event: earlier === undefined ? "paid" : "known", key, to })
  transfers.set(key, { asked, transfer })
  return { status: 201, body: { transfer } }
}

const server = createServer((request, response) => {
  const chunks: Array<Buffer> = []
  request
    .on("data", (chunk: Buffer) => chunks.push(chunk))
    .on("end", () => {
      const { status, body } = payOut(
        String(request.headers["idempotency-key"]),
        Buffer.concat(chunks).toString("utf8"),
      )
      response.writeHead(status).end(JSON.stringify(body))
    })
})

await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
// Without this, it would outlive a demo that was stopped with Ctrl-C.
process.stdin.once("end", () => process.exit(0)).resume()
process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })}\n`)
