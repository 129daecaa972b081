/** What the three servers are: a function from a request to an answer, with a log. */

export interface Asked {
  readonly url: URL
  readonly body: unknown
  /** The `Idempotency-Key`. */
  readonly key: string | null
  readonly log: (entry: object) => void
}

/** JSON after some time; or line by line, each JSON, as a model's words come. */
export type Answered =
  | { readonly status: number; readonly body: unknown; readonly afterMs: number }
  | { readonly status: number; readonly lines: ReadonlyArray<object>; readonly eachAfterMs: number }

export type Api = (asked: Asked) => Answered

export const notFound: Answered = { status: 404, body: { problem: "There is no such thing here." }, afterMs: 0 }
