/** A provider on this machine: it speaks the wire formats, does what it is told to, and keeps its own book of what it has billed. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { wires, type Said, type Wire } from "./wire.js"

/** What the next request comes to. */
export type Reply =
  | (Partial<Said> & { readonly kind: "answer" })
  | {
      readonly kind: "status"
      readonly status: number
      readonly headers?: Readonly<Record<string, string>>
      readonly problem?: string
    }
  /** An answer of which the text is no JSON; of a stream, its second half is missing. */
  | { readonly kind: "malformed" }
  /** An answer that stops in its midst: with the connection, or as if it were whole. */
  | { readonly kind: "breaks"; readonly how: "reset" | "end" }
  /** Nothing, for as long as the client waits. */
  | { readonly kind: "hangs" }

export interface Asked {
  readonly path: string
  readonly body: Readonly<Record<string, unknown>>
  readonly at: number
  /** What the prompt says, in whichever format. */
  readonly text: string
}

/** One line of the provider's book. */
export interface Billed {
  readonly model: string
  readonly inputTokens: number
  readonly cachedInputTokens: number
  readonly outputTokens: number
}

export interface Provider {
  readonly url: string
  /** In this order; a request past the last is answered with status 500. */
  readonly willReply: (...replies: ReadonlyArray<Reply>) => void
  readonly asked: ReadonlyArray<Asked>
  readonly billed: ReadonlyArray<Billed>
  /** Resolves when that many requests have come. */
  readonly asksReached: (count: number) => Promise<void>
  /** Resolves when a client has given up a request that hangs. */
  readonly abandoned: Promise<void>
  readonly close: () => Promise<void>
}

const readBody = async (request: IncomingMessage): Promise<Readonly<Record<string, unknown>>> => {
  let text = ""
  for await (const chunk of request.setEncoding("utf8")) text += chunk
  return JSON.parse(text)
}

const eventText = ([name, data]: readonly [string | null, unknown]): string =>
  `${name === null ? "" : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`

const defaults: Said = {
  text: "Two words.",
  inputTokens: 20,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 5,
  isCut: false,
}

type Body = Asked["body"]

const toolOf = (body: Body): string | null => {
  const choice = body["tool_choice"] as { readonly type?: string; readonly name?: string } | undefined
  return choice?.type === "tool" ? (choice.name ?? null) : null
}

const send = (response: ServerResponse, wire: Wire, body: Body, reply: Reply): void => {
  const model = String(body["model"])
  const said: Said = { ...defaults, ...(reply.kind === "answer" ? reply : {}) }
  if (reply.kind === "status") {
    response.writeHead(reply.status, { "content-type": "application/json", ...reply.headers })
    response.end(JSON.stringify(wire.error(reply.problem ?? "no")))
    return
  }
  const breaks = reply.kind === "breaks" ? reply.how : null
  const stop = (): void => {
    if (breaks === "reset") response.socket?.resetAndDestroy()
    else response.end()
  }
  if (body["stream"] === true) {
    response.writeHead(200, { "content-type": "text/event-stream" })
    const events = wire.events(model, said).map(eventText)
    if (reply.kind === "answer") {
      const last = wire === wires["/chat/completions"] ? "data: [DONE]\n\n" : ""
      response.end(events.join("") + last)
    } else {
      // A word of the text has come: one event of each format's beginning, and one of the text.
      const begun = events.slice(0, events.findIndex((event) => event.includes("Two ")) + 1).join("")
      response.write(begun + (reply.kind === "malformed" ? 'data: {"type": "resp\n\n' : ""), () => setImmediate(stop))
    }
    return
  }
  const text = JSON.stringify(wire.whole(model, said, toolOf(body)))
  if (reply.kind === "answer") {
    response.writeHead(200, { "content-type": "application/json" })
    response.end(text)
  } else {
    const half = text.slice(0, text.length / 2)
    // Told longer than it is, it breaks off; told right, it is no JSON.
    const length = reply.kind === "malformed" || breaks === "end" ? half.length : text.length
    response.writeHead(200, { "content-type": "application/json", "content-length": length })
    response.write(half, () => setImmediate(stop))
  }
}

export const startProvider = async (): Promise<Provider> => {
  const asked: Array<Asked> = []
  const billed: Array<Billed> = []
  const replies: Array<Reply> = []
  let waiting: Array<readonly [count: number, resolve: () => void]> = []
  let abandon = (): void => {}
  const abandoned = new Promise<void>((resolve) => (abandon = resolve))
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await readBody(request)
    const { pathname } = new URL(request.url ?? "/", "http://localhost")
    const path = Object.keys(wires).find((end) => pathname.endsWith(end))
    const model = String(body["model"])
    const prompt = body["messages"] ?? body["input"]
    asked.push({ path: request.url ?? "", body, at: performance.now(), text: JSON.stringify(prompt) })
    waiting = waiting.filter(([count, resolve]) => (count > asked.length ? true : (resolve(), false)))
    const reply: Reply = replies.shift() ?? { kind: "status", status: 500, problem: "nothing more to say" }
    // Work is billed, also where its result does not arrive.
    if (reply.kind !== "status") {
      const { inputTokens, cachedInputTokens, outputTokens } = { ...defaults, ...reply }
      billed.push({ model, inputTokens, cachedInputTokens, outputTokens })
    }
    if (reply.kind === "hangs") response.once("close", abandon)
    else send(response, wires[path ?? ""]!, body, reply)
  }
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      response.writeHead(599).end(String(error))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    willReply: (...next) => replies.push(...next),
    asked,
    billed,
    asksReached: (count) =>
      asked.length >= count ? Promise.resolve() : new Promise((resolve) => waiting.push([count, resolve])),
    abandoned,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
