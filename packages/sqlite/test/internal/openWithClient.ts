/** A file that is open, with a client of `@effect/sql` on the driver's own connection: for what a test does beside the driver. */
import * as Reactivity from "@effect/experimental/Reactivity"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Statement from "@effect/sql/Statement"
import { Effect } from "effect"
import { openDatabase, type SqliteStoreOptions } from "../../src/internal/openDatabase.js"

export const openWithClient = (options: SqliteStoreOptions) =>
  Effect.gen(function* () {
    const { connection, database } = yield* openDatabase(options)
    const acquirer = Effect.succeed(connection)
    const compiler = Statement.makeCompilerSqlite()
    const client = yield* SqlClient.make({ acquirer, compiler, spanAttributes: [] })
    return { client, connection, database }
  }).pipe(Effect.provide(Reactivity.layer))
