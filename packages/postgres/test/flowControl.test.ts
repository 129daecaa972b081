/** Limits and schedules over one schema that four workers reach through pools of their own. */
import { PostgresDriver } from "@cairn/postgres"
import { Effect } from "effect"
import { flowControl } from "../../sql/test/support/flowControl.js"
import { freshSchema, useDatabase } from "./internal/database.js"

const database = useDatabase()

flowControl("Postgres", (count) =>
  Effect.gen(function* () {
    const schema = yield* freshSchema(database)
    return yield* Effect.forEach(Array.from({ length: count }), () =>
      PostgresDriver.make({ url: database.url, schema, maxConnections: 2 }),
    )
  }),
)
