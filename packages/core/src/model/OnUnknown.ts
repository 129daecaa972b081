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
 * The policies that an operation may declare.
 *
 * @category models
 * @since 0.1.0
 */
export type OnUnknown = RetryWithKey
