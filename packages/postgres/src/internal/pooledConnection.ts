/**
 * Connections of a pool, as `@effect/sql` speaks of them, over `pg`.
 *
 * The client of `@effect/sql-pg` holds the same, and with it streams, cursors and builders of statements: some eighty modules that
 * a process would load before its first step, and that only the body of a transaction step asks for.
 *
 * Nothing here is interrupted in the middle: those who hold a connection see to that (G1).
 */
import type { Connection } from "@effect/sql/SqlConnection"
import { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Pool, PoolClient, QueryArrayConfig, QueryConfig, QueryResult } from "pg"

/** What a text gives that holds several statements: `pg` knows that, its types do not. */
type Results = QueryResult | ReadonlyArray<QueryResult>

type Params = ReadonlyArray<unknown>
type Rows = Effect.Effect<ReadonlyArray<any>, SqlError>

const rowsOf = (results: Results): ReadonlyArray<any> =>
  Array.isArray(results) ? results.map(({ rows }) => rows) : (results as QueryResult).rows

/** A connection that somebody holds. */
export class PooledConnection implements Connection {
  constructor(readonly pg: PoolClient) {}

  execute(text: string, params: Params, transform: Parameters<Connection["execute"]>[2]): Rows {
    const rows = Effect.map(this.query({ text, values: [...params] }), rowsOf)
    return transform === undefined ? rows : Effect.map(rows, transform)
  }

  executeUnprepared(text: string, params: Params, transform: Parameters<Connection["execute"]>[2]): Rows {
    return this.execute(text, params, transform)
  }

  executeRaw(text: string, params: Params): Effect.Effect<unknown, SqlError> {
    return this.query({ text, values: [...params] })
  }

  executeValues(text: string, params: Params): Rows {
    return Effect.map(this.query({ text, values: [...params], rowMode: "array" }), rowsOf)
  }

  /** A step reads all rows at once. */
  executeStream(): Effect.Effect<never> {
    return Effect.dieMessage("this connection gives no streams")
  }

  private query(of: QueryConfig | QueryArrayConfig): Effect.Effect<Results, SqlError> {
    return Effect.async((resume) => {
      this.pg.query(of as QueryConfig, (cause: Error | null, results: Results) =>
        resume(
          cause === null || cause === undefined
            ? Effect.succeed(results)
            : Effect.fail(new SqlError({ cause, message: "Failed to execute statement" })),
        ),
      )
    })
  }
}

/** A connection that somebody holds, until it is given back. */
export interface Taken {
  readonly connection: Connection
  readonly giveBack: () => void
}

/** Where connections come from: `taken` is told one, or why there is none. */
export interface Pooled {
  readonly take: (taken: (cause: unknown, it: Taken | null) => void) => void
}

/** Connections of a pool. One that has broken meanwhile is not given back. */
export const pooled = (pool: Pool): Pooled => ({
  take: (taken) =>
    pool.connect((cause, pg, release) => {
      if (pg === undefined) return taken(cause, null)
      let broken: Error | undefined
      const onError = (error: Error) => {
        broken = error
      }
      pg.on("error", onError)
      const giveBack = () => {
        pg.off("error", onError)
        release(broken)
      }
      taken(null, { connection: new PooledConnection(pg), giveBack })
    }),
})

/** Takes a connection for as long as the scope lives. */
export const reserving = ({ take }: Pooled): Effect.Effect<Connection, SqlError, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.async<Taken, SqlError>((resume) =>
        take((cause, it) =>
          resume(
            it === null
              ? Effect.fail(new SqlError({ cause, message: "Failed to acquire connection" }))
              : Effect.succeed(it),
          ),
        ),
      ),
      ({ giveBack }) => Effect.sync(giveBack),
    ),
    ({ connection }) => connection,
  )
