/** A failure that says when a retry can succeed. */
import * as Data from "effect/Data"
import type * as Duration from "effect/Duration"
import { durationMs } from "./OnUnknown.js"

/** Delays of `Retry-After` are whole seconds, and nothing else. */
const seconds = /^\d+$/

/** One of the three forms of an HTTP date; they all begin with the name of the day. */
const day = /^(mon|tue|wed|thu|fri|sat|sun)/i

/**
 * The other side asks to be called again later: a step that fails with it is retried, as often as its `retry` allows, and not
 * before `after` has passed.
 *
 * *Shape.* `after` is a floor: the step's own delay counts where it is longer, and jitter comes on top of either. A delay over a
 * second is durable. An `after` that is no duration is none.
 *
 * *Errors.* Retryable. In the handler of an operation fail with `NotPerformed({ problem, retryAfterMs })`, which also says that
 * nothing was done.
 *
 * @example
 * ```ts
 * import { RetryLater } from "@cairn/core"
 *
 * const now = new Date("2026-03-01T12:00:00Z")
 * RetryLater.fromHeader("120", now).retryAfterMs
 * // => 120000
 * RetryLater.fromHeader("Sun, 01 Mar 2026 12:00:05 GMT", now).retryAfterMs
 * // => 5000
 * ```
 *
 * @category errors
 * @since 0.1.0
 */
export class RetryLater extends Data.TaggedError("RetryLater")<{
  readonly problem: string
  readonly after: Duration.DurationInput
}> {
  readonly isRetryable = true

  /** In milliseconds; what the runtime reads. */
  get retryAfterMs(): number {
    const ms = durationMs(this.after)
    return ms > 0 ? ms : 0
  }

  override get message() {
    return `To be tried again later: ${this.problem}`
  }

  /**
   * From an HTTP `Retry-After` header: seconds, or a date.
   *
   * *Shape.* A header that is absent, says something else, or names a time that has passed asks for no delay: the step's own
   * counts.
   */
  static fromHeader(
    value: string | null | undefined,
    now: Date,
    problem = "the other side asked to be called later",
  ): RetryLater {
    const text = value?.trim() ?? ""
    const at = day.test(text) ? Date.parse(text) : Number.NaN
    const after = seconds.test(text) ? Number(text) * 1_000 : Math.max(0, at - now.getTime() || 0)
    return new RetryLater({ problem, after })
  }
}
