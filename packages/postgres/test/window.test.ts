/** The window of a run over a schema, with processes that are killed. */
import { PostgresDriver } from "@cairn/postgres"
import { Effect } from "effect"
import { windowsOfKilledWorkers } from "../../sql/test/support/window.js"
import { freshSchema, useDatabase } from "./internal/database.js"

const database = useDatabase()

windowsOfKilledWorkers(
  Effect.gen(function* () {
    const schema = yield* freshSchema(database)
    const driver = yield* PostgresDriver.make({ url: database.url, schema, maxConnections: 2 })
    return { driver, script: new URL("children/carries.ts", import.meta.url), args: [database.url, schema] }
  }),
)
