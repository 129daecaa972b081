/**
 * A server of this example as a process of its own: `serve.ts model|library|cms <log file>`. It announces its address as one
 * line of JSON, and ends when whoever started it closes its standard input.
 */
import { appendFileSync } from "node:fs"
import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { cms } from "./cms.js"
import { library } from "./library.js"
import { model } from "./model.js"
import type { Answered, Api } from "./server.js"

const apis: Readonly<Record<string, Api>> = { model, library, cms }

const [, , name = "", logFile = ""] = process.argv
const api = apis[name]
if (api === undefined || logFile === "") {
  console.error("usage: serve.ts model|library|cms <log file>")
  process.exit(2)
}

// Synced before anybody is answered: what the log says has happened, and what has happened it says.
const log = (entry: object): void => appendFileSync(logFile, `${JSON.stringify(entry)}\n`, { flush: true })

const send = async (response: ServerResponse, answered: Answered): Promise<void> => {
  response.writeHead(answered.status, { "content-type": "application/json" })
  if ("lines" in answered) {
    for (const line of answered.lines) {
      await sleep(answered.eachAfterMs)
      response.write(`${JSON.stringify(line)}\n`)
    }
    response.end()
  } else {
    await sleep(answered.afterMs)
    response.end(JSON.stringify(answered.body))
  }
}

const server = createServer((request, response) => {
  const chunks: Array<Buffer> = []
  request
    .on("data", (chunk: Buffer) => chunks.push(chunk))
    .on("end", () => {
      const text = Buffer.concat(chunks).toString("utf8")
      const key = request.headers["idempotency-key"]
      const url = new URL(request.url ?? "/", "http://localhost")
      const body = text === "" ? null : (JSON.parse(text) as unknown)
      void send(response, api({ url, body, key: typeof key === "string" ? key : null, log }))
    })
})

await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
// Without this, it would outlive a demo that was stopped with Ctrl-C.
process.stdin.once("end", () => process.exit(0)).resume()
process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })}\n`)
