/** The laws, over a file that two connections have open. */
import { storeConformance } from "@cairn/conformance"
import { SqliteDriver } from "@cairn/sqlite"
import { Effect } from "effect"
import { openWithClient } from "./internal/openWithClient.js"
import { makeSqliteDatabase } from "../src/internal/sqliteDatabase.js"
import { driverOver } from "../src/SqliteDriver.js"
import { makeFaultyConnection } from "./internal/faultyConnection.js"
import { temporaryFile } from "./internal/temporaryFile.js"

storeConformance("sqlite", {
  features: ["second", "ownClock", "failAfter", "unsafeInteger", "unreadable", "transactions"],
  open: Effect.gen(function* () {
    const filename = yield* temporaryFile
    const { client, connection } = yield* openWithClient({ filename })
    const faulty = makeFaultyConnection(connection)
    yield* client.unsafe("create table ledger (name text primary key) strict")
    const database = makeSqliteDatabase(faulty.connection, { busyTimeoutMs: 5_000 })
    return {
      driver: faulty.disarmedByCalls(driverOver(database, filename)),
      second: yield* SqliteDriver.make({ filename }),
      ledger: {
        insert: (access, name) => access.query("insert into ledger (name) values (?)", [name]),
        names: Effect.map(client.unsafe<{ readonly name: string }>("select name from ledger"), (rows) =>
          rows.map((row) => row.name),
        ),
      },
      failAfter: (statements) => Effect.sync(() => faulty.arm(statements)),
      plantUnsafeInteger: (namespace, runId) =>
        client.unsafe("update cairn_run set version = 9007199254740993 where namespace = ? and run_id = ?", [
          namespace,
          runId,
        ]),
      makeUnreadable: Effect.forEach(["run", "step", "effect", "attempt", "signal", "wait", "worker"], (table) =>
        client.unsafe(`alter table cairn_${table} rename to cairn_${table}_gone`),
      ),
    }
  }),
})
