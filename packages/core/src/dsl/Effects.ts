/**
 * What a step declares that it touches. A step lists its effects; the compiler counts them, the runtime acts on them.
 */
import type * as Context from "effect/Context"
import type { needsTransactions } from "../model/DiagnosticCode.js"
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
 * What a transaction step asks of the store. Only stores with transactions provide it. The message is a type parameter,
 * because compilers print those: `StoreWithTransactions<"CRN106: ..">` is what a missing store is called.
 *
 * @category models
 * @since 0.1.0
 */
export interface StoreWithTransactions<Remedy extends string = needsTransactions> {
  readonly _transactions: Remedy
}

/**
 * Anything that may stand in a step's `effects`.
 *
 * @category models
 * @since 0.1.0
 */
export type AnyEffect = AnyOperation | Read<any> | Local<any> | Transaction

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
  /** Statements in the transaction that commits this step: exactly once. */
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
