/** The checkpoint driver over a SQLite file. */
import type { CheckpointDriver, StoreError } from "@cairn/core"
import { SqlDriver, migrationScript, type Database } from "@cairn/sql"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { isInMemory } from "./internal/fileSystem.js"
import { openDatabase, type SqliteStoreOptions } from "./internal/openDatabase.js"
import { sqliteDialect } from "./internal/sqliteDialect.js"

/** The driver over a database that is open. */
export const driverOver = (database: Database, filename: string): CheckpointDriver =>
  SqlDriver.make(sqliteDialect, database, {
    name: "sqlite",
    transactions: true,
    notify: false,
    multiProcess: !isInMemory(filename),
    rowSecurity: false,
  })

/**
 * The driver of a SQLite file, for those who build a store of their own or prove its laws. Workflows use `SqliteStore`.
 *
 * @category drivers
 * @since 0.1.0
 */
export const SqliteDriver = {
  /**
   * Opens the file, creates the tables where there are none, and closes it with the scope.
   *
   * *Errors.* `Busy` where other processes kept it locked past the deadline; `SchemaVersion` where its tables are of a
   * later version; `Unavailable` where the directory is missing or on a network file system; `Corrupt` where the file is
   * no database; `Unknown` where an option is none.
   *
   * *Laws.* D1 to D42.
   */
  make: (options: SqliteStoreOptions): Effect.Effect<CheckpointDriver, StoreError, Scope.Scope> =>
    Effect.map(openDatabase(options), ({ database }) => driverOver(database, options.filename)),

  /** The statements that create the tables, for a file that the application itself may not change. */
  migrationScript: (): string => migrationScript(sqliteDialect),
}
