/** What people do with runs, over a Postgres schema. */
import { PostgresDriver } from "@cairn/postgres"
import { Effect } from "effect"
import { lifecycle } from "../../sql/test/support/lifecycle.js"
import { freshSchema, useDatabase } from "./internal/database.js"

const database = useDatabase()

lifecycle(
  "Postgres",
  Effect.gen(function* () {
    const schema = yield* freshSchema(database)
    const options = { url: database.url, schema, maxConnections: 2 }
    return { driver: yield* PostgresDriver.make(options), second: yield* PostgresDriver.make(options) }
  }),
)
