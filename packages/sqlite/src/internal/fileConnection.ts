/**
 * The connection to a file, as `@effect/sql` speaks of one, over better-sqlite3.
 *
 * The client of `@effect/sql-sqlite-node` holds the same, and with it streams and builders of statements: some eighty modules that
 * a process would load before its first step, and that only the body of a transaction step asks for.
 */
import type { Connection } from "@effect/sql/SqlConnection"
import { SqlError } from "@effect/sql/SqlError"
import Sqlite from "better-sqlite3"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"

// More than the driver has texts for; none of those is prepared twice.
const maxPrepared = 500

/** The tag of `@effect/sql/SqlClient`, which a tag is by its key: an application may ask for bigints. */
class SafeIntegers extends Context.Reference<SafeIntegers>()("@effect/sql/SqlClient/SafeIntegers", {
  defaultValue: () => false,
}) {}

type Rows = ReadonlyArray<any>

/** What `executeRaw` gives for a statement without rows is what better-sqlite3 gives for it. */
const rowsOf = (statement: Sqlite.Statement, params: ReadonlyArray<unknown>, isRaw: boolean): Rows => {
  if (statement.reader) return statement.all(...params)
  const result = statement.run(...params)
  return isRaw ? (result as unknown as Rows) : []
}

const valuesOf = (statement: Sqlite.Statement, params: ReadonlyArray<unknown>): Rows => {
  if (!statement.reader) return rowsOf(statement, params, false)
  try {
    return statement.raw(true).all(...params)
  } finally {
    statement.raw(false)
  }
}

/** The prepared statements of a connection. A text that could not be prepared is tried again each time. */
const preparing = (database: Sqlite.Database) => {
  const prepared = new Map<string, Sqlite.Statement>()
  return (text: string): Sqlite.Statement => {
    const known = prepared.get(text)
    if (known !== undefined) return known
    const statement = database.prepare(text)
    // The oldest: steps may spell values into their texts, and each of those comes once.
    if (prepared.size >= maxPrepared) prepared.delete(prepared.keys().next().value!)
    prepared.set(text, statement)
    return statement
  }
}

const connectionTo = (database: Sqlite.Database): Connection => {
  const prepare = preparing(database)
  const run = (statementOf: () => Sqlite.Statement, use: (statement: Sqlite.Statement) => Rows) =>
    Effect.withFiberRuntime((fiber: Fiber.RuntimeFiber<Rows, SqlError>): Effect.Effect<Rows, SqlError> => {
      try {
        return Effect.succeed(use(statementOf().safeIntegers(Context.get(fiber.currentContext, SafeIntegers))))
      } catch (cause) {
        return Effect.fail(new SqlError({ cause, message: "Failed to execute statement" }))
      }
    })
  const transformed = (rows: Effect.Effect<Rows, SqlError>, transform: Parameters<Connection["execute"]>[2]) =>
    transform === undefined ? rows : Effect.map(rows, transform)
  return {
    execute: (text, params, transform) =>
      transformed(
        run(
          () => prepare(text),
          (statement) => rowsOf(statement, params, false),
        ),
        transform,
      ),
    executeRaw: (text, params) =>
      run(
        () => prepare(text),
        (statement) => rowsOf(statement, params, true),
      ),
    executeValues: (text, params) =>
      run(
        () => prepare(text),
        (statement) => valuesOf(statement, params),
      ),
    executeUnprepared: (text, params, transform) =>
      transformed(
        run(
          () => database.prepare(text),
          (statement) => rowsOf(statement, params, false),
        ),
        transform,
      ),
    // A step reads all rows at once.
    executeStream: () => Effect.dieMessage("this connection gives no streams"),
  }
}

/** Opens the file for as long as the scope lives. */
export const openFile = (filename: string): Effect.Effect<Connection, SqlError, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.try({
        try: () => new Sqlite(filename),
        catch: (cause) => new SqlError({ cause, message: "Failed to open the file" }),
      }),
      (database) => Effect.sync(() => database.close()),
    ),
    connectionTo,
  )
