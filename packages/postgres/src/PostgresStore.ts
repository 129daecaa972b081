/** The store in a Postgres database. */
import { contextFromDriver, type CheckpointStore, type StoreError, type StoreWithTransactions } from "@cairn/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { PostgresStoreOptions } from "./internal/connectionOptions.js"
import { PostgresDriver } from "./PostgresDriver.js"

/**
 * Keeps runs in a Postgres database, which any number of workers on any number of machines share.
 *
 * @example
 * ```ts
 * import { PostgresStore } from "@cairn/postgres"
 * import { Redacted } from "effect"
 *
 * const url = Redacted.make(process.env["DATABASE_URL"] ?? "postgres://localhost/app")
 * const store = PostgresStore.layer({ url })
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const PostgresStore = {
  /** *Errors.* Those of opening, see `PostgresDriver.make`. */
  layer: (options: PostgresStoreOptions): Layer.Layer<CheckpointStore | StoreWithTransactions, StoreError> =>
    Layer.scopedContext(Effect.map(PostgresDriver.make(options), contextFromDriver)),
}
