/** What resolves an operation whose outcome is unknown: after a crash, a timeout, a lost connection. */
import * as Duration from "effect/Duration"
import type { CheckFirst, RecordFirst, RetryWithKey, Review } from "../model/OnUnknown.js"

/** How often an operation is sent, or its provider asked, before a person is. */
const defaultMaxSends = 10

/**
 * Limits of a policy that can do without.
 *
 * *Shape.* `keyWindow`: past it, counted from the first intent, nothing is sent any more and the run is parked; no limit
 * unless given. `maxSends`: 10 unless given.
 *
 * @category options
 * @since 0.1.0
 */
export interface OnUnknownLimits {
  readonly keyWindow?: Duration.DurationInput
  readonly maxSends?: number
}

/** Callers without types may give anything; `compile` then names the option. */
const limits = (options: OnUnknownLimits | undefined) => ({
  keyWindowMs: options?.keyWindow === undefined ? null : durationMs(options.keyWindow),
  maxSends: options?.maxSends ?? defaultMaxSends,
})

/**
 * Declares what resolves an unknown outcome.
 *
 * @example
 * ```ts
 * import { OnUnknown } from "@cairn/core"
 *
 * OnUnknown.retryWithKey({ keyWindow: "24 hours" })
 * // => { policy: "retryWithKey", keyWindowMs: 86400000, maxSends: 10 }
 * OnUnknown.checkFirst()
 * // => { policy: "checkFirst", keyWindowMs: null, maxSends: 10 }
 * OnUnknown.review()
 * // => { policy: "review" }
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const OnUnknown = {
  /**
   * Sends again with the same key and payload: once, as far as the provider honours the key. Past `keyWindow`, or after
   * `maxSends` sends (10 unless said otherwise), the run is parked for a person.
   */
  retryWithKey: (options: {
    readonly keyWindow: Duration.DurationInput
    readonly maxSends?: number
  }): RetryWithKey => ({
    policy: "retryWithKey",
    // Callers without types may leave the options out; `compile` then names the option.
    keyWindowMs: durationMs(options?.keyWindow),
    maxSends: options?.maxSends ?? defaultMaxSends,
  }),
  /**
   * Asks the provider whether it happened, by the `check` that `toLayer` then takes, and performs only if not. A check
   * that fails or does not answer in time is asked again, with growing delays. Sends and checks count together: after
   * `maxSends` of them, or past `keyWindow`, the run is parked for a person.
   */
  checkFirst: (options?: OnUnknownLimits): CheckFirst => ({ policy: "checkFirst", ...limits(options) }),
  /**
   * Records the outcome in the store right after the effect, before anything else is done; performs again, under the same
   * key, only where that record is missing. This narrows the window in which a crash doubles the effect, and does not
   * close it: for providers without keys that cannot be asked either, and effects that may happen twice.
   */
  recordFirst: (options?: OnUnknownLimits): RecordFirst => ({ policy: "recordFirst", ...limits(options) }),
  /**
   * Performs at most once: an unknown outcome parks the run until a person says by `Cairn.answer` that it happened, and
   * with which result, or that it did not.
   */
  review: (): Review => ({ policy: "review" }),
} as const

/** Milliseconds, rounded up so that nothing is ever early; NaN where the input is no duration (`compile` refuses it). */
export const durationMs = (input: Duration.DurationInput): number => {
  if (typeof input === "number") return Math.ceil(input)
  try {
    return Math.ceil(Duration.toMillis(input))
  } catch {
    return Number.NaN
  }
}
