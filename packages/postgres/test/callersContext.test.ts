/** Whose async context is seen by workflows over Postgres, whose answers come in over sockets that all callers share. */
import { PostgresDriver } from "@cairn/postgres"
import { Effect } from "effect"
import { callersContexts } from "../../sql/test/support/callersContext.js"
import { freshSchema, useDatabase } from "./internal/database.js"

const database = useDatabase()

callersContexts(
  "Postgres",
  Effect.flatMap(freshSchema(database), (schema) =>
    PostgresDriver.make({ url: database.url, schema, maxConnections: 4 }),
  ),
)
