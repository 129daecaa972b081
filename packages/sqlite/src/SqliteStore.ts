/** The store in a SQLite file. */
import { contextFromDriver, type CheckpointStore, type StoreError, type StoreWithTransactions } from "@cairn/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { SqliteStoreOptions } from "./internal/openDatabase.js"
import { SqliteDriver } from "./SqliteDriver.js"

/**
 * Keeps runs in a SQLite file, which several processes of one machine may open at once.
 *
 * @example
 * ```ts
 * import { SqliteStore } from "@cairn/sqlite"
 *
 * const store = SqliteStore.layer({ filename: "runs.sqlite" })
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const SqliteStore = {
  /** *Errors.* Those of opening, see `SqliteDriver.make`. */
  layer: (options: SqliteStoreOptions): Layer.Layer<CheckpointStore | StoreWithTransactions, StoreError> =>
    Layer.scopedContext(Effect.map(SqliteDriver.make(options), contextFromDriver)),
}
