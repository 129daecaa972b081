/** Idempotency keys on their way to a provider. */
import { fingerprint } from "../model/Ids.js"

/** Shortest key that may be asked for, in characters: 128 bits of a hash. */
const leastLength = 32

/**
 * What `headers` may be told.
 *
 * *Shape.* `name`: the header; `Idempotency-Key` unless given. `maxLength`: the provider's limit, in characters; 255
 * unless given, which every key fits.
 *
 * @category options
 * @since 0.1.0
 */
export interface IdempotencyHeaderOptions {
  readonly name?: string
  readonly maxLength?: number
}

/**
 * Brings an operation's key into the form that a provider takes.
 *
 * @category providers
 * @since 0.1.0
 */
export const Idempotency = {
  /**
   * The headers of a request that carries the key.
   *
   * @example
   * ```ts
   * import { Idempotency } from "@cairn/core"
   *
   * Idempotency.headers("default/order-1/charge#0")
   * // => { "Idempotency-Key": "default/order-1/charge#0" }
   * Idempotency.headers("default/order-1/charge#0", { name: "PayPal-Request-Id" })
   * // => { "PayPal-Request-Id": "default/order-1/charge#0" }
   * ```
   */
  headers: (idempotencyKey: string, options: IdempotencyHeaderOptions = {}): Readonly<Record<string, string>> => ({
    [options.name ?? "Idempotency-Key"]: Idempotency.fit(idempotencyKey, options.maxLength ?? 255),
  }),
  /**
   * The key as it is where it fits, else the beginning of its SHA-256: the same for the same key, wherever it is made.
   *
   * *Shape.* `maxLength` from 32 up; a shorter hash could stand for two keys.
   *
   * *Errors.* Throws a `RangeError` for a smaller limit.
   *
   * @example
   * ```ts
   * import { Idempotency } from "@cairn/core"
   *
   * Idempotency.fit("default/order-1/charge#0", 45)
   * // => "default/order-1/charge#0"
   * Idempotency.fit(`default/${"order".repeat(20)}/charge#0`, 45).length
   * // => 45
   * ```
   */
  fit: (idempotencyKey: string, maxLength: number): string => {
    if (!(maxLength >= leastLength)) throw new RangeError(`maxLength must be at least ${leastLength}, got ${maxLength}`)
    return idempotencyKey.length <= maxLength ? idempotencyKey : fingerprint(idempotencyKey).slice(0, maxLength)
  },
} as const
