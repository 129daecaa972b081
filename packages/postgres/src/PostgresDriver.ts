/** The checkpoint driver over a Postgres database. */
import type { CheckpointDriver, StoreError } from "@cairn/core"
import { SqlDriver, type Database, type Dialect } from "@cairn/sql"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { PostgresStoreOptions, ReadOptions } from "./internal/connectionOptions.js"
import { wakeChannel } from "./internal/identifiers.js"
import { bringTables, connect } from "./internal/openDatabase.js"
import { keepListening } from "./internal/wakeUps.js"

type OnWakeUp = NonNullable<CheckpointDriver["onWakeUp"]>

/** Hears what other processes send; null where it may not. */
const listen = ({
  listener,
  probeMs,
  schema,
}: Pick<ReadOptions, "listener" | "probeMs" | "schema">): Effect.Effect<OnWakeUp | null, never, Scope.Scope> =>
  Effect.gen(function* () {
    if (listener === null) return null
    const listeners: Array<() => void> = []
    yield* keepListening({ client: listener, channel: wakeChannel(schema), probeMs }, () => {
      for (const listener of listeners) listener()
    })
    return (listener) => void listeners.push(listener)
  })

const driverOf = (dialect: Dialect, database: Database, onWakeUp: OnWakeUp | null): CheckpointDriver => {
  const driver = SqlDriver.make(dialect, database, {
    name: "postgres",
    transactions: true,
    notify: onWakeUp !== null,
    multiProcess: true,
    rowSecurity: false,
  })
  return onWakeUp === null ? driver : { ...driver, onWakeUp }
}

/** The driver over a database that is open; with `listener`, it hears what other processes send. */
export const driverOver = (
  dialect: Dialect,
  database: Database,
  options: Pick<ReadOptions, "listener" | "probeMs" | "schema">,
): Effect.Effect<CheckpointDriver, never, Scope.Scope> =>
  Effect.map(listen(options), (onWakeUp) => driverOf(dialect, database, onWakeUp))

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
      const [onWakeUp] = yield* Effect.zip(listen(open.options), bringTables(open), { concurrent: true })
      return driverOf(open.dialect, open.database, onWakeUp)
    }),
}
