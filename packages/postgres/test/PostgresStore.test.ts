/** The laws, over a schema that two pools have open. */
import { storeConformance } from "@cairn/conformance"
import { PostgresDriver } from "@cairn/postgres"
import { Effect } from "effect"
import { openDatabase } from "../src/internal/openDatabase.js"
import { makePostgresDatabase } from "../src/internal/postgresDatabase.js"
import { driverOver } from "../src/PostgresDriver.js"
import { freshSchema, query, useDatabase } from "./internal/database.js"
import { makeFaultyClient } from "./internal/faultyClient.js"

const database = useDatabase()

storeConformance("postgres", {
  features: ["second", "ownClock", "failAfter", "unsafeInteger", "unreadable", "wakeUps", "transactions"],
  open: Effect.gen(function* () {
    const schema = yield* freshSchema(database)
    const options = { url: database.url, schema, maxConnections: 4 }
    const open = yield* openDatabase(options)
    const faulty = makeFaultyClient(open.client)
    yield* query(database, `create table ${schema}.ledger (name text primary key)`)
    // Without another try: what the kit cuts off has to stay cut off.
    const once = makePostgresDatabase(faulty.client, open.dialect, { ...open.options, retryMs: 0 })
    return {
      driver: faulty.disarmedByCalls(yield* driverOver(open.dialect, once, open.options)),
      second: yield* PostgresDriver.make(options),
      ledger: {
        insert: (access, name) => access.query(`insert into ${schema}.ledger (name) values ($1)`, [name]),
        names: Effect.map(query(database, `select name from ${schema}.ledger`), (rows) =>
          rows.map((row) => String(row["name"])),
        ),
      },
      failAfter: (statements) => Effect.sync(() => faulty.arm(statements)),
      plantUnsafeInteger: (namespace, runId) =>
        query(database, `update ${schema}.run set version = 9007199254740993 where namespace = $1 and run_id = $2`, [
          namespace,
          runId,
        ]),
      makeUnreadable: Effect.forEach(["run", "step", "effect", "attempt", "signal", "wait", "worker"], (table) =>
        query(database, `alter table ${schema}.${table} rename to ${table}_gone`),
      ),
    }
  }),
})
