/** Live output over HTTP: a browser that loses its connection and comes back makes the same text of it (field case P149). */
import { Schema } from "effect"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { afterEach, describe, expect, it } from "vitest"
import { Cairn, Events, MemoryStore, Workflow, type CairnClient } from "../../src/index.js"

/** What an `EventSource` would give, frame by frame; comments are frames as well. */
async function* framesOf(url: string, signal: AbortSignal, headers: Record<string, string> = {}) {
  const answer = await fetch(url, { signal, headers })
  let text = ""
  const decoder = new TextDecoder()
  for await (const bytes of answer.body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(bytes, { stream: true })
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      yield text.slice(0, end)
      text = text.slice(end + 2)
    }
  }
}

const dataOf = (frame: string) => JSON.parse(/^data: (.*)$/m.exec(frame)?.[1] ?? "null") as any

/** A page that shows the text of a step. */
class Page {
  text = ""
  comments = 0
  readonly tags: Array<string> = []

  show(frame: string): void {
    if (frame.startsWith(":")) return void this.comments++
    const data = dataOf(frame)
    this.tags.push(data._tag)
    if (data._tag === "Began" || data._tag === "Discarded") this.text = ""
    if (data._tag === "Chunk") this.text += data.chunk
  }
}

let server: Server | null = null
let cairn: CairnClient | null = null

afterEach(async () => {
  server?.closeAllConnections()
  server?.close()
  await cairn?.close()
})

/** The page of a run, served beside its worker: durable events and live output, each on a connection of its own. */
const serve = async (workflow: any, keepAlive = "15 seconds") => {
  const client = (cairn = await Cairn.open({ store: MemoryStore.layer, workflows: [workflow] } as any))
  const made = (server = createServer((request, response) => {
    const of = { runId: "r", fromSeq: Events.fromLastEventId(request.headers["last-event-id"]) }
    const events = request.url === "/live" ? client.live(workflow, of) : client.events(workflow, of)
    response.writeHead(200, { "content-type": "text/event-stream" })
    pipeline(Readable.from(Events.toServerSentEvents(events, { keepAlive: keepAlive as never })), response).catch(() =>
      response.destroy(),
    )
  }))
  await new Promise<void>((resolve) => made.listen(0, "127.0.0.1", resolve))
  return { client, url: `http://127.0.0.1:${(made.address() as AddressInfo).port}` }
}

const gate = () => {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => (open = resolve))
  return { open: () => open(), opened }
}

/** A step that emits five chunks and fails, then succeeds; each attempt waits at a gate after its third chunk. */
const retried = (gates: ReadonlyArray<ReturnType<typeof gate>>) => {
  let attempts = 0
  return (Workflow.make as any)("tell", { version: 1, input: Schema.Null })
    .step("tell", { effects: [], output: Schema.String, retry: { times: 1, delay: 1 } }, async ({ emit }: any) => {
      const attempt = attempts++
      let text = ""
      for (let n = 0; n < 5; n++) {
        emit(`${attempt}.${n} `)
        text += `${attempt}.${n} `
        if (n === 2) await gates[attempt]!.opened
      }
      if (attempt === 0) throw new Error("the stream broke off")
      return text
    })
    .output(Schema.String, ({ results }: any) => results.tell)
    .compile()
}

describe("live output to a browser", () => {
  it("that comes back in the middle of an attempt shows the text that is committed, and hears of that once", async () => {
    const gates = [gate(), gate()]
    const { client, url } = await serve(retried(gates))
    const handle = await client.start(retried(gates), null as never, { runId: "r" })
    const page = new Page()
    /** One connection, which is lost once the page shows that; null: it ends with the run. */
    const connected = async (until: string | null, onText: Readonly<Record<string, () => void>> = {}) => {
      const connection = new AbortController()
      for await (const frame of framesOf(`${url}/live`, connection.signal)) {
        page.show(frame)
        onText[page.text]?.()
        if (page.text === until) break
      }
      connection.abort()
    }
    await connected("0.0 0.1 ")
    // What it has seen comes again, from the beginning; then that attempt fails, and another begins.
    await connected("1.0 ", { "0.0 0.1 0.2 ": gates[0]!.open })
    expect(page.tags.slice(3)).toEqual([...["Began", ...Array(5).fill("Chunk")], "Discarded", "Began", "Chunk"])
    await connected(null, { "1.0 1.1 1.2 ": gates[1]!.open })
    expect(page.text).toBe(await handle.result())
    expect(page.tags.slice(12)).toEqual([...["Began", ...Array(5).fill("Chunk")], "Committed"])
    // The durable events tell the same output, whoever has seen what.
    const durable: Array<any> = []
    for await (const frame of framesOf(`${url}/events`, AbortSignal.timeout(30_000))) durable.push(dataOf(frame))
    expect(durable.find(({ _tag }) => _tag === "StepCompleted").result).toBe(page.text)
  })

  it("is kept alive while nothing is emitted, and ends with the run", async () => {
    const waits = gate()
    const workflow = (Workflow.make as any)("tell", { version: 1, input: Schema.Null })
      .step("tell", { effects: [], output: Schema.String }, async ({ emit }: any) => {
        emit("a")
        await waits.opened
        emit("b")
        return "ab"
      })
      .compile()
    const { client, url } = await serve(workflow, "5 millis")
    await client.start(workflow, null as never, { runId: "r" })
    const page = new Page()
    for await (const frame of framesOf(`${url}/live`, AbortSignal.timeout(30_000))) {
      page.show(frame)
      if (page.comments === 3) waits.open()
    }
    expect(page.text).toBe("ab")
    expect(page.comments).toBeGreaterThanOrEqual(3)
    expect(page.tags.at(-1)).toBe("Committed")
  })
})
