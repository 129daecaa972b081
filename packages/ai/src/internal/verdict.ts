/** What is known of a call that failed: whether another may succeed, when, and whether this one was billed. */
import { RetryLater } from "@cairn/core"

/** How a call failed, for people and for `Effect.catchIf`. */
export type Failed = "RateLimited" | "Unavailable" | "Refused" | "Unreachable" | "BadAnswer" | "NotSent"

export interface Verdict {
  readonly reason: Failed
  readonly isRetryable: boolean
  /** Known to have cost nothing; otherwise that is unknown. */
  readonly isFree: boolean
  /** 0 where the provider asks for no delay. */
  readonly retryAfterMs: number
}

/** Names of headers are lower-case. */
export type Headers = Readonly<Record<string, string | undefined>>

/** The provider's own header in milliseconds is the finer one; `Retry-After` is in seconds, or a date. */
const retryAfterMs = (headers: Headers, now: Date): number => {
  const ms = Number.parseFloat(headers["retry-after-ms"] ?? "")
  return ms >= 0 && Number.isFinite(ms)
    ? Math.ceil(ms)
    : RetryLater.fromHeader(headers["retry-after"], now).retryAfterMs
}

/** The answer said that there is none: its status says why. */
export const answered = (status: number, headers: Headers, now: Date): Verdict => {
  const asked = { retryAfterMs: retryAfterMs(headers, now) }
  if (status === 429) return { reason: "RateLimited", isRetryable: true, isFree: true, ...asked }
  // A timeout or conflict, or trouble of the provider's own: the model may have worked before it.
  if (status === 408 || status === 409 || status >= 500)
    return { reason: "Unavailable", isRetryable: true, isFree: false, ...asked }
  if (status >= 400) return { reason: "Refused", isRetryable: false, isFree: true, retryAfterMs: 0 }
  return badAnswer
}

/** It was answered, and billed, and nothing can be made of the answer. */
export const badAnswer: Verdict = { reason: "BadAnswer", isRetryable: true, isFree: false, retryAfterMs: 0 }

/** It never left: nothing changes before the caller does. */
export const notSent: Verdict = { reason: "NotSent", isRetryable: false, isFree: true, retryAfterMs: 0 }

/** No connection came about, so nothing was sent on it. */
const unconnected = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"])

/** Longest chain of causes looked at: one that goes in circles ends here, too. */
const maxCauses = 8

/** What is thrown, and what caused it. */
export const causesOf = (error: unknown): ReadonlyArray<Readonly<Record<string, unknown>>> => {
  const found: Array<Readonly<Record<string, unknown>>> = []
  for (let at = error; typeof at === "object" && at !== null && found.length < maxCauses;) {
    const each = at as Readonly<Record<string, unknown>>
    found.push(each)
    at = each["cause"]
  }
  return found
}

/** There was no answer, or no whole one. */
export const unanswered = (error: unknown): Verdict => ({
  reason: "Unreachable",
  isRetryable: true,
  isFree: causesOf(error).some(({ code }) => typeof code === "string" && unconnected.has(code)),
  retryAfterMs: 0,
})
