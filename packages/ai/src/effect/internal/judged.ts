/** Errors of Effect's models, with what a step's `retry` and the cost of the call need to know of them. */
import * as AiError from "@effect/ai/AiError"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { answered, badAnswer, notSent, unanswered, type Headers, type Verdict } from "../../internal/verdict.js"

const verdictOf = (error: AiError.AiError, now: Date): Verdict => {
  switch (error._tag) {
    case "HttpRequestError":
      // Not a transport's fault: the request could not be made.
      return error.reason === "Transport" ? unanswered(error) : notSent
    case "HttpResponseError":
      return answered(error.response.status, error.response.headers as Headers, now)
    case "MalformedInput":
      return notSent
    case "MalformedOutput":
      return badAnswer
    case "UnknownError":
      return unanswered(error)
  }
}

/** Known to have cost nothing. */
export const isFree = (error: unknown): boolean => AiError.isAiError(error) && verdictOf(error, new Date(0)).isFree

/** The service's own errors go on, and say `isRetryable` and `retryAfterMs` besides: its type has no room for errors of ours. */
export const judging = <A, E, R>(call: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.catchAll(call, (error) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      if (!AiError.isAiError(error)) return Effect.fail(error)
      const { isRetryable, retryAfterMs } = verdictOf(error, new Date(now))
      return Effect.fail(Object.assign(error, { isRetryable, retryAfterMs }))
    }),
  )
