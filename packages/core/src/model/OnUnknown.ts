/** The policies that resolve an operation whose outcome is unknown, as data. */

/**
 * Performs again with the same key and the same payload, while the provider still honours the key.
 *
 * *Shape.* `keyWindowMs`: how long the provider remembers a key, from the first intent. `maxSends`: how often it is sent
 * in all before a person is asked.
 *
 * @category models
 * @since 0.1.0
 */
export interface RetryWithKey {
  readonly policy: "retryWithKey"
  readonly keyWindowMs: number
  readonly maxSends: number
}

/**
 * Asks the provider whether it happened, by the `check` of the operation's handler, and performs only if not.
 *
 * *Shape.* `keyWindowMs`: how long the provider can be asked, from the first intent; null for always. `maxSends`: how
 * often it is sent or asked about before a person is asked.
 *
 * @category models
 * @since 0.1.0
 */
export interface CheckFirst {
  readonly policy: "checkFirst"
  readonly keyWindowMs: number | null
  readonly maxSends: number
}

/**
 * Records the outcome right after the effect, before anything else, and performs again only where that record is missing.
 *
 * *Shape.* `keyWindowMs`: past it, from the first intent, nothing is sent again; null for no limit.
 *
 * @category models
 * @since 0.1.0
 */
export interface RecordFirst {
  readonly policy: "recordFirst"
  readonly keyWindowMs: number | null
  readonly maxSends: number
}

/**
 * Never performs again: a person says whether it happened.
 *
 * @category models
 * @since 0.1.0
 */
export interface Review {
  readonly policy: "review"
}

/**
 * The policies that an operation may declare.
 *
 * @category models
 * @since 0.1.0
 */
export type OnUnknown = RetryWithKey | CheckFirst | RecordFirst | Review

/** The names of the policies. */
export type PolicyName = OnUnknown["policy"]
