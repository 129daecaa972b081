/** The checkpoint driver over a Postgres database. */
import type { CheckpointDriver, StoreError } from "@cairn/core"
import { SqlDriver, type Database, type Dialect } from "@cairn/sql"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { readOptions, type PostgresStoreOptions, type ReadOptions } from "./internal/connectionOptions.js"
import { wakeChannel } from "./internal/identifiers.js"
import { bringTables, firstAnswer, openPool } from "./internal/openDatabase.js"
import { keepListening } from "./internal/wakeUps.js"

type Hearing = Required<Pick<CheckpointDriver, "onWakeUp" | "onReached">>

/** Hears what other processes send; null where it may not. */
const listen = (
  { listener, probeMs, schema }: Pick<ReadOptions, "listener" | "probeMs" | "schema">,
  opened: Effect.Effect<void>,
): Effect.Effect<Hearing | null, never, Scope.Scope> =>
  Effect.gen(function* () {
    if (listener === null) return null
    const woken: Array<() => void> = []
    const reached: Array<(workerId: string) => void> = []
    yield* keepListening({ client: listener, channel: wakeChannel(schema), probeMs, opened }, (workerId) => {
      if (workerId === null) for (const listener of woken) listener()
      else for (const listener of reached) listener(workerId)
    })
    return {
      onWakeUp: (listener) => void woken.push(listener),
      onReached: (listener) => void reached.push(listener),
    }
  })

const driverOf = (
  { database, dialect }: { readonly database: Database; readonly dialect: Dialect },
  notify: boolean,
): CheckpointDriver =>
  SqlDriver.make(dialect, database, {
    name: "postgres",
    transactions: true,
    notify,
    multiProcess: true,
    rowSecurity: false,
  })

/** The driver over a database that is open; with `listener`, it hears what other processes send. */
export const driverOver = (
  dialect: Dialect,
  database: Database,
  options: Pick<ReadOptions, "listener" | "probeMs" | "schema">,
): Effect.Effect<CheckpointDriver, never, Scope.Scope> =>
  Effect.map(listen(options, Effect.void), (hearing) => ({
    ...driverOf({ database, dialect }, hearing !== null),
    ...hearing,
  }))

/**
 * The driver of a Postgres database, for those who build a store of their own or prove its laws. Workflows use
 * `PostgresStore`.
 *
 * @category drivers
 * @since 0.1.0
 */
export const PostgresDriver = {
  /**
   * Connects, creates the tables where there are none, and disconnects with the scope.
   *
   * *Errors.* `Unavailable` where the server cannot be reached; `Permission` where the role may not log in, or may not
   * create missing tables (the message says which SQL to run); `SchemaVersion` where the tables are of another version;
   * `Unknown` where the options cannot be used.
   *
   * *Laws.* D1 to D42.
   */
  make: (options: PostgresStoreOptions): Effect.Effect<CheckpointDriver, StoreError, Scope.Scope> =>
    Effect.gen(function* () {
      const read = yield* readOptions(options)
      const open = yield* openPool(read)
      const answered = yield* Deferred.make<void>()
      const ready = firstAnswer(open).pipe(
        Effect.zipRight(Deferred.succeed(answered, undefined)),
        Effect.zipRight(bringTables(open)),
      )
      // Side by side: a connection takes the server a while. Where there is no server, that is said once.
      const [, hearing, driver] = yield* Effect.all(
        [ready, listen(read, Deferred.await(answered)), Effect.sync(() => driverOf(open, read.listener !== null))],
        { concurrency: "unbounded" },
      )
      return { ...driver, ...hearing }
    }),
}
