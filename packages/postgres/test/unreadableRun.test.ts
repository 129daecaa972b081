/** A run whose row Postgres gives back as what no number can hold. */
import { PostgresDriver } from "@cairn/postgres"
import { Effect } from "effect"
import { stopsNoNeighbour } from "../../sql/test/support/unreadableRun.js"
import { freshSchema, query, useDatabase } from "./internal/database.js"

const database = useDatabase()

stopsNoNeighbour(
  "Postgres",
  Effect.gen(function* () {
    const schema = yield* freshSchema(database)
    const driver = yield* PostgresDriver.make({ url: database.url, schema, maxConnections: 4 })
    return {
      driver,
      set: (runId, to) => query(database, `update "${schema}".run set ${to} where run_id = $1`, [runId]),
      setSchedule: (id, to) => query(database, `update "${schema}".schedule set ${to} where schedule_id = $1`, [id]),
    }
  }),
)
