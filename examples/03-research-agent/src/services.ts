/** The model, the library and the CMS, over HTTP. Cairn and the plain retry ask them through the same functions. */
import { NotPerformed } from "@cairn/core"
import { Effect, Layer } from "effect"
import { Library, Model, PublishPage, Unreachable, type Notes } from "./workflow.js"

export interface Addresses {
  readonly model: string
  readonly library: string
  readonly cms: string
}

/** Who watches the calls: `asked` just before a request, `answered` when its answer has come and nobody has seen it. */
export type Watch = (call: string, when: "asked" | "answered") => void

export const clients = ({ model, library, cms }: Addresses, watch: Watch = () => {}) => {
  const request = async (call: string, url: string, init: RequestInit = {}): Promise<unknown> => {
    watch(call, "asked")
    const response = await fetch(url, init)
    if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`)
    const answer = (await response.json()) as unknown
    watch(call, "answered")
    return answer
  }
  const post = (body: object): RequestInit => ({ method: "POST", body: JSON.stringify(body) })
  return {
    choose: (question: string, notes: Notes) =>
      request(`choose ${notes.searched.length + notes.read.length}`, `${model}/choose`, post({ question, notes })),
    write: (question: string, notes: Notes) => request("write", `${model}/write`, post({ question, notes })),
    search: (words: string) => request(`search ${words}`, `${library}/search?words=${encodeURIComponent(words)}`),
    read: (document: string) => request(`read ${document}`, `${library}/documents/${encodeURIComponent(document)}`),
    publish: (article: object, headers: Record<string, string> = {}, signal: AbortSignal | null = null) =>
      request("publish", `${cms}/pages`, { ...post(article), headers, signal }) as Promise<{ readonly page: string }>,
  }
}

/** A read changes nothing: whatever goes wrong, it may be asked again. */
const reading = (answer: () => Promise<unknown>) =>
  Effect.tryPromise({ try: answer, catch: (thrown) => new Unreachable({ problem: String(thrown) }) })

/** Nobody listened, so nobody did anything. Every other broken connection may have broken after the effect. */
const neverSent = (thrown: unknown): boolean =>
  (thrown as { cause?: { code?: unknown } } | null)?.cause?.code === "ECONNREFUSED"

export const services = (addresses: Addresses, watch?: Watch) => {
  const { choose, write, search, read, publish } = clients(addresses, watch)
  return Layer.mergeAll(
    Layer.succeed(Model, {
      choose: (question, notes) => reading(() => choose(question, notes)),
      write: (question, notes) => reading(() => write(question, notes)),
    }),
    Layer.succeed(Library, {
      search: (words) => reading(() => search(words)),
      read: (document) => reading(() => read(document)),
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
