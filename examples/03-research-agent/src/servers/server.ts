/** What the three servers are: a function from a request to an answer, with a log. */

export interface Asked {
  readonly url: URL
  readonly body: unknown
  /** The `Idempotency-Key`. */
  readonly key: string | null
  readonly log: (entry: object) => void
}

export interface Answered {
  readonly status: number
  readonly body: unknown
  /** How long it takes. */
  readonly afterMs: number
}

export type Api = (asked: Asked) => Answered

export const notFound: Answered = { status: 404, body: { problem: "There is no such thing here." }, afterMs: 0 }
