/** A pool is opened: first connection, checks, tables; and closed when the scope does. */
import { StoreError } from "@cairn/core"
import { migrate, type Database, type Dialect } from "@cairn/sql"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Pool } from "pg"
import { readOptions, type PostgresStoreOptions, type ReadOptions } from "./connectionOptions.js"
import { pooled, type Pooled } from "./pooledConnection.js"
import { makePostgresDatabase } from "./postgresDatabase.js"
import { postgresDialect } from "./postgresDialect.js"
import { makeSockets } from "./sockets.js"

// Idle connections beyond this are closed: a worker that waits holds few.
const idleTimeoutMillis = 30_000

const makePool = ({ client, maxConnections }: ReadOptions): Effect.Effect<Pool, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const sockets = makeSockets()
      const pool = new Pool({ ...client, stream: sockets.stream, max: maxConnections, idleTimeoutMillis })
      // An idle connection that breaks: the pool has let go of it already, and the next call opens another one. Without
      // a listener the event would end the process.
      pool.on("error", () => undefined)
      return { pool, sockets }
    }),
    // Who uses the store has waited for it before; what is still checked out then belongs to calls that were interrupted.
    ({ pool, sockets }) => sockets.ending(() => pool.end()),
  ).pipe(Effect.map(({ pool }) => pool))

/** The first answer of the server: at once or not at all, so that a wrong host does not look like a slow one. */
export const firstAnswer = ({ client, dialect, options }: OpenDatabase): Effect.Effect<void, StoreError> => {
  const database = makePostgresDatabase(client, dialect, { ...options, retryMs: 0 })
  const operation = `connect to Postgres at ${options.place}`
  const text = `select pg_catalog.current_setting('server_encoding') as "encoding"`
  return Effect.flatMap(database.query(operation, { text, params: [] }), ([row]) =>
    row?.["encoding"] === "UTF8"
      ? Effect.void
      : Effect.fail(
          new StoreError({
            reason: "Unknown",
            operation,
            problem: `its encoding is ${String(row?.["encoding"])}; text is kept unit for unit only in a database of encoding UTF8`,
          }),
        ),
  )
}

/** A database, for as long as its pool is open. `connections`: all of the pool, and those that wait for one. */
export interface OpenDatabase {
  readonly client: Pooled
  readonly database: Database
  readonly dialect: Dialect
  readonly options: ReadOptions
  readonly connections: () => { readonly open: number; readonly idle: number; readonly waiting: number }
}

/** Opens a pool for as long as the scope lives. It asks the server nothing yet. */
export const openPool = (options: ReadOptions): Effect.Effect<OpenDatabase, never, Scope.Scope> =>
  Effect.map(makePool(options), (pool) => {
    const dialect = postgresDialect(options.schema, options.lockMs)
    const client = pooled(pool)
    return {
      client,
      database: makePostgresDatabase(client, dialect, options),
      dialect,
      options,
      connections: () => ({ open: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount }),
    }
  })

/** Brings the tables to the version of this code. */
export const bringTables = ({ client, dialect, options }: OpenDatabase): Effect.Effect<void, StoreError> => {
  // Those who start together wait for each other longer than a call usually does.
  const patient = { ...options, lockMs: options.statementMs, retryMs: options.statementMs }
  return migrate(dialect, makePostgresDatabase(client, dialect, patient), { apply: options.migrate })
}

/** Opens a pool on tables of this version. */
export const openDatabase = (given: PostgresStoreOptions): Effect.Effect<OpenDatabase, StoreError, Scope.Scope> =>
  readOptions(given).pipe(Effect.flatMap(openPool), Effect.tap(firstAnswer), Effect.tap(bringTables))
