/** What tells stores with transactions from those without, at type level and among services. */
import * as Context from "effect/Context"
import type { needsTransactions } from "./DiagnosticCode.js"

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
 * The tag under which a store says so, beside `CheckpointStore`. It is asked for by workflows, and holds no more than the
 * store's name.
 *
 * @category services
 * @since 0.1.0
 */
export const StoreWithTransactions = Context.GenericTag<StoreWithTransactions, { readonly name: string }>(
  "@cairn/core/StoreWithTransactions",
)
