/** What a run has paid over a schema, with processes that are killed. */
import { PostgresDriver } from "@cairn/postgres"
import { Effect } from "effect"
import { paidByKilledWorkers } from "../../sql/test/support/paid.js"
import { freshSchema, useDatabase } from "./internal/database.js"

const database = useDatabase()

paidByKilledWorkers(
  Effect.gen(function* () {
    const schema = yield* freshSchema(database)
    const driver = yield* PostgresDriver.make({ url: database.url, schema, maxConnections: 2 })
    return { driver, script: new URL("children/pays.ts", import.meta.url), args: [database.url, schema] }
  }),
)
