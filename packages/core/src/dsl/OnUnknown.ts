/** What resolves an operation whose outcome is unknown: after a crash, a timeout, a lost connection. */
import * as Duration from "effect/Duration"
import type { RetryWithKey } from "../model/OnUnknown.js"

/**
 * Declares what resolves an unknown outcome.
 *
 * @example
 * ```ts
 * import { OnUnknown } from "@cairn/core"
 *
 * OnUnknown.retryWithKey({ keyWindow: "24 hours" })
 * // => { policy: "retryWithKey", keyWindowMs: 86400000, maxSends: 10 }
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
    maxSends: options?.maxSends ?? 10,
  }),
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
