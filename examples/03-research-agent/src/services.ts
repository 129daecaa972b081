/** The model, the library and the CMS, over HTTP. Cairn and the plain retry ask them through the same functions. */
import { Live, NotPerformed, Usage, type Captured, type Prices, type UsageAmounts } from "@cairn/core"
import { Effect, Layer } from "effect"
import type { Notes } from "./notes.js"
import type { Said } from "./servers/model.js"
import { Library, Model, PublishPage, Unreachable } from "./workflow.js"

export interface Addresses {
  readonly model: string
  readonly library: string
  readonly cms: string
}

/** Who watches the calls: `asked` just before a request, `answered` when its answer has come and nobody has seen it. */
export type Watch = (call: string, when: "asked" | "answered") => void

const modelName = "scholar-1"

/** Dollars for a million tokens: what a worker reckons the model's usage by. */
export const prices: Prices = { [modelName]: { input: 3, output: 15 } }

const maxTokens = 500

/** An answer of the model: its words as they come, and when they are over what it has used. */
export interface Answering {
  readonly words: AsyncIterable<string>
  readonly usage: () => UsageAmounts | null
  /** The most that it can use: no token is shorter than a byte. */
  readonly atMost: UsageAmounts
}

const post = (body: object): RequestInit => ({ method: "POST", body: JSON.stringify(body) })

export const clients = ({ model, library, cms }: Addresses, watch: Watch = () => {}) => {
  const send = async (call: string, url: string, init: RequestInit = {}): Promise<Response> => {
    watch(call, "asked")
    const response = await fetch(url, init)
    if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`)
    return response
  }
  const request = async <A>(call: string, url: string, init?: RequestInit): Promise<A> => {
    const answer = (await (await send(call, url, init)).json()) as A
    watch(call, "answered")
    return answer
  }
  const ask = (call: string, url: string, prompt: object): Answering => {
    let usage: UsageAmounts | null = null
    const words = async function* () {
      const { body } = await send(call, url, post({ prompt, maxTokens }))
      let rest = ""
      for await (const bytes of body!.pipeThrough(new TextDecoderStream())) {
        const lines = (rest + bytes).split("\n")
        rest = lines.pop()!
        for (const line of lines) {
          const said = JSON.parse(line) as Said
          if ("usage" in said) usage = said.usage
          else yield said.text
        }
      }
      if (usage === null) throw new Error(`${url} broke off before the answer was whole`)
      watch(call, "answered")
    }
    const inputTokens = Buffer.byteLength(JSON.stringify(prompt))
    return { words: words(), usage: () => usage, atMost: { inputTokens, outputTokens: maxTokens } }
  }
  return {
    choose: (question: string, notes: Notes) =>
      ask(`choose ${notes.searched.length + notes.read.length}`, `${model}/choose`, { question, notes }),
    write: (question: string, sources: ReadonlyArray<string>) => ask("write", `${model}/write`, { question, sources }),
    search: (words: string) =>
      request<ReadonlyArray<string>>(`search ${words}`, `${library}/search?words=${encodeURIComponent(words)}`),
    read: (document: string) =>
      request<string>(`read ${document}`, `${library}/documents/${encodeURIComponent(document)}`),
    sources: (documents: ReadonlyArray<string>) => {
      const query = new URLSearchParams(documents.map((document): [string, string] => ["document", document]))
      return request<Captured<ReadonlyArray<string>, string>>("sources", `${library}/sources?${query}`)
    },
    publish: (article: object, headers: Record<string, string> = {}, signal: AbortSignal | null = null) =>
      request<{ readonly page: string }>("publish", `${cms}/pages`, { ...post(article), headers, signal }),
  }
}

const unreachable = (thrown: unknown) => new Unreachable({ problem: String(thrown) })

/** A read changes nothing: whatever goes wrong, it may be asked again. */
const reading = <A>(answer: () => Promise<A>) => Effect.tryPromise({ try: answer, catch: unreachable })

/** The same of an answer that is paid for. Whoever looks at the run reads along; what it has used is on the run's account. */
const asking = (answering: () => Answering) =>
  Effect.suspend(() => {
    const { words, usage, atMost } = answering()
    return Usage.call({ model: modelName, atMost, usage }, Effect.mapError(Live.text(words), unreachable))
  })

/** Nobody listened, so nobody did anything. Every other broken connection may have broken after the effect. */
const neverSent = (thrown: unknown): boolean =>
  (thrown as { cause?: { code?: unknown } } | null)?.cause?.code === "ECONNREFUSED"

export const services = (addresses: Addresses, watch?: Watch) => {
  const { choose, write, search, read, sources, publish } = clients(addresses, watch)
  return Layer.mergeAll(
    Layer.succeed(Model, {
      choose: (question, notes) => asking(() => choose(question, notes)),
      write: (question, texts) => asking(() => write(question, texts)),
    }),
    Layer.succeed(Library, {
      search: (words) => reading(() => search(words)),
      read: (document) => reading(() => read(document)),
      sources: (documents) => reading(() => sources(documents)),
    }),
    PublishPage.toLayer((article, { idempotencyKey, signal }) =>
      Effect.tryPromise({
        try: () => publish(article, { "idempotency-key": idempotencyKey }, signal),
        catch: (thrown) => thrown,
      }).pipe(
        Effect.catchAll(
          (thrown) =>
            neverSent(thrown)
              ? Effect.fail(new NotPerformed({ problem: "nobody listens at the CMS", cause: thrown }))
              : Effect.die(thrown), // The page may be there: it is asked for again, under the same key.
        ),
      ),
    ),
  )
}
