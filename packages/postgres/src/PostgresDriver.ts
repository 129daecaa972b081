/** The checkpoint driver over a Postgres database. */
import type { CheckpointDriver, StoreError } from "@cairn/core"
import { SqlDriver, type Database, type Dialect } from "@cairn/sql"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { PostgresStoreOptions, ReadOptions } from "./internal/connectionOptions.js"
import { wakeChannel } from "./internal/identifiers.js"
import { bringTables, connect } from "./internal/openDatabase.js"
import { keepListening } from "./internal/wakeUps.js"

type Hearing = Required<Pick<CheckpointDriver, "onWakeUp" | "onReached">>

/** Hears what other processes send; null where it may not. */
const listen = ({
  listener,
  probeMs,
  schema,
}: Pick<ReadOptions, "listener" | "probeMs" | "schema">): Effect.Effect<Hearing | null, never, Scope.Scope> =>
  Effect.gen(function* () {
    if (listener === null) return null
    const woken: Array<() => void> = []
    const reached: Array<(workerId: string) => void> = []
    yield* keepListening({ client: listener, channel: wakeChannel(schema), probeMs }, (workerId) => {
      if (workerId === null) for (const listener of woken) listener()
      else for (const listener of reached) listener(workerId)
    })
    return {
      onWakeUp: (listener) => void woken.push(listener),
      onReached: (listener) => void reached.push(listener),
    }
  })

const driverOf = (dialect: Dialect, database: Database, hearing: Hearing | null): CheckpointDriver => {
  const driver = SqlDriver.make(dialect, database, {
    name: "postgres",
    transactions: true,
    notify: hearing !== null,
    multiProcess: true,
    rowSecurity: false,
  })
  return { ...driver, ...hearing }
}

/** The driver over a database that is open; with `listener`, it hears what other processes send. */
export const driverOver = (
  dialect: Dialect,
  database: Database,
  options: Pick<ReadOptions, "listener" | "probeMs" | "schema">,
): Effect.Effect<CheckpointDriver, never, Scope.Scope> =>
  Effect.map(listen(options), (hearing) => driverOf(dialect, database, hearing))

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
      const open = yield* connect(options)
      // Side by side: a connection takes the server a while.
      const [hearing] = yield* Effect.zip(listen(open.options), bringTables(open), { concurrent: true })
      return driverOf(open.dialect, open.database, hearing)
    }),
}
