/**
 * What a step declares that it touches. A step lists its effects; the compiler counts them, the runtime acts on them.
 */
import type * as Context from "effect/Context"
import type { AnyDataVersion } from "./DataVersion.js"
import type { AnyOperation } from "./Operation.js"

/**
 * A service that a step only reads from, model calls included. A step may declare any number of reads.
 *
 * @category models
 * @since 0.1.0
 */
export interface Read<Id> {
  readonly kind: "read"
  readonly name: string
  readonly _id?: Id
}

/**
 * A service that touches nothing outside: configuration, clock, formatters.
 *
 * @category models
 * @since 0.1.0
 */
export interface Local<Id> {
  readonly kind: "local"
  readonly name: string
  readonly _id?: Id
}

/**
 * Writes to the store's own database, in the transaction that commits the step. It counts as the step's one effect.
 *
 * @category models
 * @since 0.1.0
 */
export interface Transaction {
  readonly kind: "transaction"
  readonly name: "transaction"
}

/**
 * What `SqlClient` of `@effect/sql` looks like: a transaction step is given it, and nothing more special (clients of one
 * database carry their `config`). By shape, because this package does without `@effect/sql`.
 */
export interface StepSqlClient {
  readonly safe: any
  readonly withTransaction: any
  readonly withoutTransforms: any
  readonly reserve: any
  readonly reactive: any
  readonly config?: never
}

/**
 * Anything that may stand in a step's `effects`.
 *
 * @category models
 * @since 0.1.0
 */
export type AnyEffect = AnyOperation | AnyDataVersion | Read<any> | Local<any> | Transaction

/**
 * Declares the effects of a step, operations aside.
 *
 * @example
 * ```ts
 * import { Effects } from "@cairn/core"
 *
 * Effects.read("openai").kind
 * // => "read"
 * Effects.transaction.name
 * // => "transaction"
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export interface EffectsConstructors {
  /** A service that the step only reads from: by its tag, or by name alone where the client is a plain closure. */
  read<Id, Service>(tag: Context.Tag<Id, Service>): Read<Id>
  read(name: string): Read<never>
  /** A service that touches nothing outside. */
  local<Id, Service>(tag: Context.Tag<Id, Service>): Local<Id>
  /**
   * Statements in the transaction that commits this step: exactly once. The step's function finds the store's `SqlClient`
   * (of `@effect/sql`), or `query` in promise style; the tables stand in the store's own database.
   *
   * *Shape.* Its `timeout` is at most a third of the worker's lease, and by default that or ten seconds, whichever is less:
   * the store's connection is held for so long.
   */
  readonly transaction: Transaction
}

export const Effects: EffectsConstructors = {
  read: (of: string | Context.Tag<any, any>): Read<never> => ({
    kind: "read",
    // Callers without types may give anything; `compile` refuses an effect without a name.
    name: typeof of === "string" ? of : of?.key,
  }),
  local: (tag) => ({ kind: "local", name: tag?.key }),
  transaction: { kind: "transaction", name: "transaction" },
}
