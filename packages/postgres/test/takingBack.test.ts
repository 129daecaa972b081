/** Compensation and cancels over a schema, with processes that are killed. */
import { PostgresDriver } from "@cairn/postgres"
import { Effect } from "effect"
import { takingBack } from "../../sql/test/support/takingBack.js"
import { freshSchema, useDatabase } from "./internal/database.js"

const database = useDatabase()

takingBack(
  Effect.gen(function* () {
    const schema = yield* freshSchema(database)
    const driver = yield* PostgresDriver.make({ url: database.url, schema, maxConnections: 2 })
    return { driver, script: new URL("children/takesBack.ts", import.meta.url), args: [database.url, schema] }
  }),
)
