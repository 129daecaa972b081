/** What another process sends to a run that is under way, over a Postgres schema: told of it, or not. */
import { PostgresDriver } from "@cairn/postgres"
import { Effect } from "effect"
import { arrivals } from "../../sql/test/support/arrivals.js"
import { freshSchema, useDatabase } from "./internal/database.js"

const database = useDatabase()

const opened = (listen: boolean) =>
  Effect.gen(function* () {
    const schema = yield* freshSchema(database)
    const options = { url: database.url, schema, maxConnections: 2, listen }
    return { driver: yield* PostgresDriver.make(options), second: yield* PostgresDriver.make(options) }
  })

arrivals("Postgres", opened(true))
arrivals("Postgres without wake-ups", opened(false))
