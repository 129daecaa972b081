/** Short waits of runs over Postgres, while this process's wall clock does as it likes. */
import { PostgresDriver } from "@cairn/postgres"
import { Effect } from "effect"
import { wallClocks } from "../../sql/test/support/wallClock.js"
import { freshSchema, useDatabase } from "./internal/database.js"

const database = useDatabase()

wallClocks(
  "Postgres",
  Effect.flatMap(freshSchema(database), (schema) =>
    PostgresDriver.make({ url: database.url, schema, maxConnections: 2 }),
  ),
)
