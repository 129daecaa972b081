/** Sleeps and deadlines of months, over a Postgres schema. */
import { PostgresDriver } from "@cairn/postgres"
import { Effect } from "effect"
import { sleeps } from "../../sql/test/support/sleeping.js"
import { freshSchema, query, useDatabase } from "./internal/database.js"

const database = useDatabase()

sleeps(
  "Postgres",
  Effect.gen(function* () {
    const schema = yield* freshSchema(database)
    const driver = yield* PostgresDriver.make({ url: database.url, schema })
    const pass = (ms: number) =>
      Effect.forEach(
        ["wait", "run"],
        (table) => query(database, `update ${schema}.${table} set wake_at = wake_at - $1`, [ms]),
        { discard: true },
      )
    return { driver, pass }
  }),
)
