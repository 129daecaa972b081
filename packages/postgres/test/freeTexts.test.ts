/** Texts that people choose, over a schema. */
import { PostgresDriver } from "@cairn/postgres"
import { Effect } from "effect"
import { keepsFreeTexts } from "../../sql/test/support/freeTexts.js"
import { freshSchema, useDatabase } from "./internal/database.js"

const database = useDatabase()

keepsFreeTexts(
  "Postgres",
  Effect.flatMap(freshSchema(database), (schema) =>
    PostgresDriver.make({ url: database.url, schema, maxConnections: 4 }),
  ),
)
