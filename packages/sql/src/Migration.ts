/**
 * The tables come to be and change in numbered migrations.
 *
 * - A migration and the row that says so are one transaction: a version is never recorded without its tables, nor tables
 *   without their version.
 * - Any number of processes may start at once: each asks again for the version inside its transaction.
 * - Where the tables are of the current version, only a query is sent: a role without the right to create tables starts.
 * - Tables of a later version are refused: older code does not guess what newer code has written.
 */
import { StoreError } from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Database, Session } from "./Database.js"
import type { Dialect } from "./Dialect.js"
import { createIndexes } from "./indexes.js"
import { attempt, computed, readRow } from "./readRow.js"
import { textOf } from "./Statement.js"
import {
  attemptTable,
  callTable,
  createTable,
  effectTable,
  migrationTable,
  names,
  rateTable,
  runTable,
  scheduleTable,
  signalTable,
  spendTable,
  stepTable,
  storeTable,
  waitTable,
  workerTable,
} from "./tables.js"
import { createViews } from "./views.js"

interface NumberedMigration {
  readonly version: number
  readonly name: string
  readonly statements: (dialect: Dialect) => ReadonlyArray<string>
}

/** A released migration is never edited: what changes is a new one at the end. */
const migrations: ReadonlyArray<NumberedMigration> = [
  {
    version: 1,
    name: "first tables",
    statements: (dialect) => [
      ...dialect.beforeTables,
      ...[
        migrationTable,
        runTable,
        stepTable,
        effectTable,
        attemptTable,
        signalTable,
        waitTable,
        workerTable,
        rateTable,
        scheduleTable,
        callTable,
        spendTable,
        storeTable,
      ].map((table) => createTable(dialect, table)),
      `insert into ${dialect.table("store")} (store_id) values (${dialect.newId})`,
      ...createIndexes(dialect),
      ...createViews(dialect),
    ],
  },
]

/**
 * The version of the tables that this code reads and writes.
 *
 * @category schema
 * @since 0.1.0
 */
export const schemaVersion = migrations.length

const operation = "migrate"

const unparameterised = (text: string) => ({ text, params: [] })

const recordText = (dialect: Dialect) =>
  textOf(
    dialect,
    (place) =>
      `insert into ${dialect.table("migration")} (${names(migrationTable.columns)}) values (${place()}, ${place()}, ${dialect.now})`,
  )

const versionText = (dialect: Dialect) =>
  `select coalesce(max(version), 0) as "version" from ${dialect.table("migration")}`

/** The version that stands in the database; 0 where there are no tables. */
const standingVersion = (dialect: Dialect, run: Session["run"]): Effect.Effect<number, StoreError> =>
  Effect.gen(function* () {
    const tables = yield* run(unparameterised(dialect.migrationTableExists))
    if (tables.length === 0) return 0
    const [row] = yield* run(unparameterised(versionText(dialect)))
    return yield* attempt(
      () => readRow<{ readonly version: number }>(operation, [computed("version")], row ?? {}).version,
    )
  })

const apply = (dialect: Dialect, session: Session, migration: NumberedMigration): Effect.Effect<void, StoreError> =>
  Effect.gen(function* () {
    if (dialect.migrationLock !== null) yield* session.run(unparameterised(dialect.migrationLock))
    // Another process may have been first: what counts is what stands now that this transaction has its turn.
    if ((yield* standingVersion(dialect, session.run)) >= migration.version) return
    for (const statement of migration.statements(dialect)) yield* session.run(unparameterised(statement))
    yield* session.run({ text: recordText(dialect), params: [migration.version, migration.name] })
  })

const wrongVersion = (found: number, problem: string): StoreError =>
  new StoreError({
    reason: "SchemaVersion",
    operation,
    problem: `the tables are of version ${found}, this code needs version ${schemaVersion}; ${problem}`,
  })

/**
 * Brings the tables to the version of this code.
 *
 * *Shape.* With `apply: false` nothing is created: tables of another version are an error that says so.
 *
 * *Errors.* `SchemaVersion` where the tables are of a later version, or of an earlier one and `apply` is false.
 * Everything else as the database gives it; no failure is taken for "another process migrates".
 *
 * @category schema
 * @since 0.1.0
 */
export const migrate = (
  dialect: Dialect,
  database: Database,
  options: { readonly apply: boolean } = { apply: true },
): Effect.Effect<void, StoreError> =>
  Effect.gen(function* () {
    const found = yield* standingVersion(dialect, (statement) => database.query(operation, statement))
    if (found > schemaVersion) {
      return yield* wrongVersion(found, "update the package in this process; older code must not write newer tables")
    }
    if (found === schemaVersion) return
    if (!options.apply) {
      return yield* wrongVersion(found, `to create them, ${dialect.howToMigrate}`)
    }
    for (const migration of migrations.slice(found)) {
      yield* database.transaction(operation, "usual", (session) => apply(dialect, session, migration))
    }
  })

/**
 * The migrations as a script, for those who let no application create tables.
 *
 * *Shape.* One transaction a migration, after the version `from`.
 *
 * @category schema
 * @since 0.1.0
 */
export const migrationScript = (dialect: Dialect, from = 0): string =>
  migrations
    .slice(from)
    .map(({ name, statements, version }) => {
      const record = `insert into ${dialect.table("migration")} (${names(migrationTable.columns)}) values (${version}, '${name}', ${dialect.now})`
      return ["begin", ...statements(dialect), record, "commit"].map((statement) => `${statement};`).join("\n")
    })
    .join("\n\n")
