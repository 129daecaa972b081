/** A file is opened: checks, connection, pragmas, tables; and closed when the scope does. */
import { StoreError } from "@cairn/core"
import { migrate, storeError, type Database } from "@cairn/sql"
import type { Connection } from "@effect/sql/SqlConnection"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { openFile } from "./fileConnection.js"
import { checkFileSystem, isInMemory } from "./fileSystem.js"
import { warnOfRuntime } from "./runtimeCheck.js"
import { makeSqliteDatabase, untilFree } from "./sqliteDatabase.js"
import { sqliteDialect } from "./sqliteDialect.js"

/**
 * How a file is opened.
 *
 * *Shape.* `filename`: a path without NUL, or `:memory:` for a database of this process alone, gone with it. `synchronous`: `full`
 * (the default) returns from a commit when the disk has it; `normal` is faster, and a power failure (not a crash of the
 * process) may take the last commits back. `busyTimeoutMs` (5,000; from 0 to 2^31 - 1): how long a call waits for other writers before it
 * fails as `Busy`. `allowNetworkFileSystem` (false): opens a file on a network file system all the same. `migrate`
 * (true): creates and changes the tables; with false, tables of another version are an error.
 *
 * @category models
 * @since 0.1.0
 */
export interface SqliteStoreOptions {
  readonly filename: string
  readonly synchronous?: "full" | "normal"
  readonly busyTimeoutMs?: number
  readonly allowNetworkFileSystem?: boolean
  readonly migrate?: boolean
}

const defaultBusyTimeoutMs = 5_000

const refused = (problem: string): StoreError =>
  new StoreError({ reason: "Unknown", operation: "read the options of the SQLite store", problem })

/** Callers without types may give anything: a deadline that is none would never pass, and SQLite reads a name up to a NUL. */
const checkOptions = ({ busyTimeoutMs = 0, filename }: SqliteStoreOptions): Effect.Effect<void, StoreError> => {
  if (typeof filename !== "string" || filename === "" || filename.includes("\0")) {
    return refused(`'filename' is ${JSON.stringify(filename)}, it has to be a path without NUL, or ':memory:'`)
  }
  return Number.isSafeInteger(busyTimeoutMs) && busyTimeoutMs >= 0 && busyTimeoutMs <= 2 ** 31 - 1
    ? Effect.void
    : refused(`'busyTimeoutMs' is ${String(busyTimeoutMs)}, it has to be a whole number from 0 to 2147483647`)
}

// A log that once grew is cut back to this size when it is reset: else the largest burst stays on disk for ever.
const journalSizeLimitBytes = 64 * 1024 * 1024

interface Pragma {
  readonly name: string
  readonly value: string
  /** What the pragma must read after it was set. */
  readonly expected: string | number
}

const pragmas = (options: SqliteStoreOptions): ReadonlyArray<Pragma> => [
  // First: until it is set, better-sqlite3 waits up to five seconds inside SQLite, and the event loop with it.
  { name: "busy_timeout", value: "0", expected: 0 },
  {
    name: "journal_mode",
    value: "wal",
    // A database in memory has no log.
    expected: isInMemory(options.filename) ? "memory" : "wal",
  },
  // A reopened file in WAL mode runs with `normal`, whatever it was opened with before.
  options.synchronous === "normal"
    ? { name: "synchronous", value: "normal", expected: 1 }
    : { name: "synchronous", value: "full", expected: 2 },
  { name: "foreign_keys", value: "on", expected: 1 },
  { name: "journal_size_limit", value: String(journalSizeLimitBytes), expected: journalSizeLimitBytes },
]

const send = (connection: Connection, operation: string, text: string) =>
  Effect.mapError(connection.executeUnprepared(text, [], undefined), (error) =>
    storeError(sqliteDialect, operation, error),
  )

const setPragma = (
  connection: Connection,
  options: SqliteStoreOptions,
  { expected, name, value }: Pragma,
): Effect.Effect<void, StoreError> => {
  const operation = `open '${options.filename}'`
  const once = Effect.gen(function* () {
    yield* send(connection, operation, `pragma ${name} = ${value}`)
    const rows = yield* send(connection, operation, `pragma ${name}`)
    // The column is not always named like the pragma (`busy_timeout` gives `timeout`).
    const stands: unknown = Object.values((rows[0] ?? {}) as object)[0]
    if (stands !== expected) {
      return yield* new StoreError({
        reason: "Unavailable",
        operation,
        problem: `SQLite keeps ${name} at ${String(stands)} and does not take ${value}; its file system may not allow it`,
      })
    }
  })
  // Processes that open an empty file at once get in each other's way while the log is switched on.
  return untilFree(options.busyTimeoutMs ?? defaultBusyTimeoutMs, "usual", once)
}

/** Brings the log into the file. Whoever opens it next does the same, so that nothing is lost where it fails. */
const checkpoint = (connection: Connection): Effect.Effect<void> =>
  Effect.ignore(send(connection, "close", "pragma wal_checkpoint(truncate)"))

/** Opens a file for as long as the scope lives. */
export const openDatabase = (
  options: SqliteStoreOptions,
): Effect.Effect<{ readonly connection: Connection; readonly database: Database }, StoreError, Scope.Scope> =>
  Effect.gen(function* () {
    yield* checkOptions(options)
    yield* warnOfRuntime
    yield* checkFileSystem(options.filename, options.allowNetworkFileSystem ?? false)
    const connection = yield* Effect.mapError(openFile(options.filename), (error) =>
      storeError(sqliteDialect, `open '${options.filename}'`, error),
    )
    for (const pragma of pragmas(options)) yield* setPragma(connection, options, pragma)
    const database = makeSqliteDatabase(connection, { busyTimeoutMs: options.busyTimeoutMs ?? defaultBusyTimeoutMs })
    yield* migrate(sqliteDialect, database, { apply: options.migrate ?? true })
    yield* Effect.addFinalizer(() => checkpoint(connection))
    return { connection, database }
  })
