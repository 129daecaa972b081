/** The laws, over a file, of a driver whose commits go through the write-behind buffer. */
import { storeConformance } from "@cairn/conformance"
import { SqliteDriver } from "@cairn/sqlite"
import { Effect } from "effect"
import { buffered, fileLog } from "../../conformance/test/writeBehind.js"
import { openWithClient } from "./internal/openWithClient.js"
import { makeSqliteDatabase } from "../src/internal/sqliteDatabase.js"
import { driverOver } from "../src/SqliteDriver.js"
import { makeFaultyConnection } from "./internal/faultyConnection.js"
import { temporaryFile } from "./internal/temporaryFile.js"

for (const [what, logged] of [
  ["write-behind", false],
  ["write-behind and a local log", true],
] as const) {
  storeConformance(`sqlite behind ${what}`, {
    features: ["second", "ownClock", "failAfter", "transactions"],
    open: Effect.gen(function* () {
      const filename = yield* temporaryFile
      const { client, connection } = yield* openWithClient({ filename })
      const faulty = makeFaultyConnection(connection)
      yield* client.unsafe("create table ledger (name text primary key) strict")
      const driver = faulty.disarmedByCalls(
        driverOver(makeSqliteDatabase(faulty.connection, { busyTimeoutMs: 5_000 }), filename),
      )
      return {
        driver: yield* logged ? buffered(driver, fileLog(`${filename}.log`)) : buffered(driver),
        second: yield* SqliteDriver.make({ filename }),
        failAfter: (statements) => Effect.sync(() => faulty.arm(statements)),
        ledger: {
          insert: (access, name) => access.query("insert into ledger (name) values (?)", [name]),
          names: Effect.map(client.unsafe<{ readonly name: string }>("select name from ledger"), (rows) =>
            rows.map((row) => row.name),
          ),
        },
      }
    }),
  })
}
