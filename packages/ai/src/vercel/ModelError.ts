/** Why a call of a model has failed. */
import * as Data from "effect/Data"
import { DownloadError, LoadAPIKeyError, LoadSettingError, UnsupportedFunctionalityError } from "ai"
import {
  answered,
  badAnswer,
  causesOf,
  notSent,
  unanswered,
  type Failed,
  type Headers,
  type Verdict,
} from "../internal/verdict.js"

/**
 * A call of a model has failed. What the model has said and the step's schema refuses is no failure of the call.
 *
 * *Shape.* `reason`: `RateLimited` (429); `Unavailable` (408, 409, 5xx, or trouble that the provider reports amid its answer);
 * `Refused` (any other 4xx: key, model, prompt); `Unreachable` (no answer, or a connection that broke); `BadAnswer` (an answer that
 * is not what the provider's client expects, or ends without having ended); `NotSent` (the client itself would not send it).
 * `status` is null where there was none. `retryAfterMs` is what the provider has asked for, 0 for nothing. `isFree`: the call is
 * known to have cost nothing; if not, the cost of a failed call is what its answer said, or unknown.
 *
 * *Errors.* `Refused` and `NotSent` are not retryable, the others are: a step's `retry` reads `isRetryable` and `retryAfterMs`.
 *
 * @category errors
 * @since 0.1.0
 */
export class ModelError extends Data.TaggedError("ModelError")<{
  readonly reason: Failed
  readonly model: string
  readonly problem: string
  readonly status: number | null
  readonly isRetryable: boolean
  readonly retryAfterMs: number
  readonly isFree: boolean
  readonly cause: unknown
}> {
  override get message() {
    const status = this.status === null ? "" : ` (status ${this.status})`
    return `Model '${this.model}', ${this.reason}${status}: ${this.problem}`
  }
}

/** What a stream gave as an error of its own, or a way of failing that the SDK has no error for. */
export class Broken extends Error {
  override readonly name = "Broken"
  constructor(
    readonly reason: "Unavailable" | "BadAnswer",
    problem: string,
    override readonly cause?: unknown,
  ) {
    super(problem)
  }
}

/** No request was made of it: settings are missing, or the provider's client lacks what was asked for. */
const isUnsendable = (thrown: unknown): boolean =>
  LoadAPIKeyError.isInstance(thrown) ||
  LoadSettingError.isInstance(thrown) ||
  UnsupportedFunctionalityError.isInstance(thrown)

/** Read by shape: errors of providers come from several copies of several packages. */
const verdictOf = (thrown: unknown, asked: boolean, now: Date): Verdict & { readonly status: number | null } => {
  // What the prompt names is fetched before the model is asked.
  if (DownloadError.isInstance(thrown)) return { ...unanswered(thrown), isFree: !asked, status: null }
  if (!asked || isUnsendable(thrown)) return { ...notSent, status: null }
  if (thrown instanceof Broken) return { ...badAnswer, reason: thrown.reason, status: null }
  const causes = causesOf(thrown)
  const withStatus = causes.find(({ statusCode }) => typeof statusCode === "number")
  const status = (withStatus?.["statusCode"] as number | undefined) ?? null
  if (status !== null && status >= 400)
    return { ...answered(status, (withStatus!["responseHeaders"] ?? {}) as Headers, now), status }
  // The SDK's own complaints are about an answer; anything else came from below it, amid an answer perhaps.
  const isOfAnswer = causes.some(({ name }) => typeof name === "string" && answerErrors.has(name))
  return { ...(isOfAnswer ? badAnswer : unanswered(thrown)), status }
}

const answerErrors = new Set([
  "AI_JSONParseError",
  "AI_TypeValidationError",
  "AI_InvalidResponseDataError",
  "AI_EmptyResponseBodyError",
  "AI_NoContentGeneratedError",
  "AI_NoOutputGeneratedError",
  "AI_ToolChoiceViolationError",
])

/** What had come to pass when something was thrown. */
export interface Progress {
  readonly wasAsked: () => boolean
  readonly hasBegun: () => boolean
}

export const modelError = (model: string, thrown: unknown, { hasBegun, wasAsked }: Progress, now: Date): ModelError => {
  const problem = thrown instanceof Error && thrown.message !== "" ? thrown.message : String(thrown)
  const verdict = verdictOf(thrown, wasAsked(), now)
  return new ModelError({ model, problem, cause: thrown, ...verdict, isFree: verdict.isFree && !hasBegun() })
}
