/** The laws, over a schema that two pools have open, of a driver whose commits go through the write-behind buffer. */
import { storeConformance } from "@cairn/conformance"
import { PostgresDriver } from "@cairn/postgres"
import { Effect } from "effect"
import { join } from "node:path"
import { buffered, fileLog } from "../../conformance/test/writeBehind.js"
import { openDatabase } from "../src/internal/openDatabase.js"
import { makePostgresDatabase } from "../src/internal/postgresDatabase.js"
import { driverOver } from "../src/PostgresDriver.js"
import { freshSchema, query, useDatabase } from "./internal/database.js"
import { makeFaultyClient } from "./internal/faultyClient.js"
import { temporaryDirectory } from "../../sqlite/test/internal/temporaryFile.js"

const database = useDatabase()

for (const [what, logged] of [
  ["write-behind", false],
  ["write-behind and a local log", true],
] as const) {
  storeConformance(`postgres behind ${what}`, {
    features: ["second", "ownClock", "failAfter", "wakeUps", "transactions"],
    open: Effect.gen(function* () {
      const schema = yield* freshSchema(database)
      const options = { url: database.url, schema, maxConnections: 4 }
      const open = yield* openDatabase(options)
      const faulty = makeFaultyClient(open.client)
      yield* query(database, `create table ${schema}.ledger (name text primary key)`)
      const once = makePostgresDatabase(faulty.client, open.dialect, { ...open.options, retryMs: 0 })
      const driver = faulty.disarmedByCalls(yield* driverOver(open.dialect, once, open.options))
      return {
        driver: yield* logged
          ? buffered(driver, fileLog(join(yield* temporaryDirectory, "commits.log")))
          : buffered(driver),
        second: yield* PostgresDriver.make(options),
        failAfter: (statements) => Effect.sync(() => faulty.arm(statements)),
        ledger: {
          insert: (access, name) => access.query(`insert into ${schema}.ledger (name) values ($1)`, [name]),
          names: Effect.map(query(database, `select name from ${schema}.ledger`), (rows) =>
            rows.map((row) => String(row["name"])),
          ),
        },
      }
    }),
  })
}
