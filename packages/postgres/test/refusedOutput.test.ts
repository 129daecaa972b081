/** One run of many whose output Postgres refuses: it is nested more deeply than a server reads. */
import { PostgresDriver } from "@cairn/postgres"
import { Effect } from "effect"
import { refusesOneOutput } from "../../sql/test/support/refusedOutput.js"
import { freshSchema, query, useDatabase } from "./internal/database.js"

const database = useDatabase()

const nested = (levels: number): unknown => {
  let value: unknown = "deep"
  for (let level = 0; level < levels; level++) value = [value]
  return value
}

refusesOneOutput(
  "Postgres",
  Effect.gen(function* () {
    const schema = yield* freshSchema(database)
    yield* query(database, `alter database ${database.name} set max_stack_depth = '100kB'`)
    const driver = yield* PostgresDriver.make({ url: database.url, schema, maxConnections: 4 })
    return { driver, refused: nested(2_000) }
  }),
)
