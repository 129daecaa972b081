/**
 * An HTTP API that honours `Idempotency-Key`, the way payment providers do:
 *
 * - **K1** The first request with a key is performed, and its answer is kept under the key. A refusal by the business
 *   (a declined card) is an answer too.
 * - **K2** The same key with the same payload gets the kept answer, with `Idempotent-Replayed: true`, and nothing happens.
 * - **K3** The same key with another payload is refused: 422.
 * - **K4** The same key while its first request is being performed is refused: 409.
 * - **K5** A request without a key is performed, every time.
 * - **K6** Effect and kept answer are one entry of the durable log: a crash of the provider keeps both or neither.
 * - **K7** A key is forgotten after 24 hours.
 */
import { createHash } from "node:crypto"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { openJournal } from "./journal.js"

/** What the provider does, without the protocol around it. */
export interface Endpoint<Payload, Done> {
  readonly name: string
  readonly path: string
  /** Null where the payload makes no sense. */
  readonly parse: (body: unknown) => Payload | null
  /** `done` is what happened in the world; null where the business refused. `count` is how often it was done before. */
  readonly perform: (payload: Payload, count: number) => { readonly answer: Answer; readonly done: Done | null }
}

export interface Answer {
  readonly status: number
  readonly body: unknown
}

/** One line of a provider's log. `request` numbers the requests from 1, across restarts. */
export type Entry<Done> =
  | { readonly entry: "received"; readonly request: number; readonly at: number; readonly key: string | null }
  | {
      readonly entry: "performed"
      readonly request: number
      readonly at: number
      readonly key: string | null
      readonly fingerprint: string
      readonly answer: Answer
      readonly done: Done | null
    }
  | { readonly entry: "replayed"; readonly request: number; readonly key: string }
  | { readonly entry: "refused"; readonly request: number; readonly key: string | null; readonly status: number }

export interface ApiOptions {
  readonly logFile: string
  /** Runs before the effect: how long the provider takes. */
  readonly work?: () => Promise<void>
  /** Milliseconds since 1970. */
  readonly now?: () => number
}

export interface RunningApi {
  readonly url: string
  readonly close: () => Promise<void>
}

const keyWindowMs = 24 * 60 * 60 * 1000
const maxKeyLength = 255

/** The same payload has one fingerprint, in whatever order its fields are written. */
const fingerprintOf = (value: unknown): string => createHash("sha256").update(canonical(value)).digest("hex")

const canonical = (value: unknown): string =>
  value !== null && typeof value === "object"
    ? Array.isArray(value)
      ? `[${value.map(canonical).join(",")}]`
      : `{${Object.entries(value)
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`)
          .join(",")}}`
    : JSON.stringify(value)

const readBody = async (request: IncomingMessage): Promise<unknown> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  try {
    return JSON.parse(Buffer.concat(chunks).toString("utf8")) as unknown
  } catch {
    return undefined // `parse` refuses it like any other payload that makes no sense
  }
}

const send = (response: ServerResponse, answer: Answer, headers: Record<string, string> = {}): void => {
  response.writeHead(answer.status, { "content-type": "application/json", ...headers })
  response.end(JSON.stringify(answer.body))
}

const problem = (status: number, code: string, message: string): Answer => ({
  status,
  body: { error: { code, message } },
})

/** Decides and performs; the HTTP around it is in `startApi`. */
const makeApi = <Payload, Done>(endpoint: Endpoint<Payload, Done>, options: ApiOptions) => {
  const journal = openJournal<Entry<Done>>(options.logFile)
  const now = options.now ?? Date.now
  const kept = new Map<string, { readonly fingerprint: string; readonly answer: Answer; readonly at: number }>()
  const inFlight = new Map<string, string>()
  let requests = 0
  let performed = 0

  const remember = (entry: Entry<Done>): void => {
    if (entry.entry === "received") requests = entry.request
    if (entry.entry !== "performed") return
    if (entry.done !== null) performed += 1
    if (entry.key !== null) kept.set(entry.key, entry)
  }
  for (const entry of journal.read()) remember(entry)

  const write = (entry: Entry<Done>): void => {
    journal.append(entry)
    remember(entry)
  }

  const handle = async (key: string | null, body: unknown): Promise<{ answer: Answer; replayed: boolean }> => {
    const request = requests + 1
    write({ entry: "received", request, at: now(), key })
    const refuse = (status: number, code: string, message: string) => {
      write({ entry: "refused", request, key, status })
      return { answer: problem(status, code, message), replayed: false }
    }

    if (key !== null && (key === "" || key.length > maxKeyLength))
      return refuse(400, "invalid_key", `An Idempotency-Key has 1 to ${maxKeyLength} characters.`)
    const payload = endpoint.parse(body)
    if (payload === null) return refuse(400, "invalid_request", `This is no payload for ${endpoint.path}.`)
    const fingerprint = fingerprintOf(body)

    if (key !== null) {
      const earlier = kept.get(key)
      const answered = earlier !== undefined && now() - earlier.at < keyWindowMs ? earlier : null // K7
      const first = answered?.fingerprint ?? inFlight.get(key)
      if (first !== undefined && first !== fingerprint)
        return refuse(422, "key_reused", "This Idempotency-Key was used with another payload.") // K3
      if (answered !== null) {
        write({ entry: "replayed", request, key })
        return { answer: answered.answer, replayed: true } // K2
      }
      if (first !== undefined) return refuse(409, "key_in_use", "The first request with this key is not answered yet.") // K4
      inFlight.set(key, fingerprint)
    }

    try {
      await options.work?.()
      const { answer, done } = endpoint.perform(payload, performed)
      write({ entry: "performed", request, at: now(), key, fingerprint, answer, done }) // K1, K6
      return { answer, replayed: false }
    } finally {
      if (key !== null) inFlight.delete(key)
    }
  }

  return { handle, journal }
}

/** Starts the API on a free port of this machine. */
export const startApi = async <Payload, Done>(
  endpoint: Endpoint<Payload, Done>,
  options: ApiOptions,
): Promise<RunningApi> => {
  const api = makeApi(endpoint, options)

  const server: Server = createServer((request, response) => {
    const route = `${request.method} ${request.url}`
    if (route === "GET /log") return send(response, { status: 200, body: api.journal.read() })
    if (route !== `POST ${endpoint.path}`) return send(response, problem(404, "not_found", `There is no ${route}.`))
    const header = request.headers["idempotency-key"]
    const key = typeof header === "string" ? header : null
    readBody(request)
      .then((body) => api.handle(key, body))
      .then(({ answer, replayed }) => send(response, answer, replayed ? { "idempotent-replayed": "true" } : {}))
      // The client sees a lost connection: it cannot know what happened, and that is the truth.
      .catch((thrown: unknown) => response.destroy(thrown instanceof Error ? thrown : new Error(String(thrown))))
  })

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => {
          api.journal.close()
          resolve()
        })
      }),
  }
}
