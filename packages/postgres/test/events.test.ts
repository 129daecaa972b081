/** Events of a run over a schema, with processes that are killed. */
import { PostgresDriver } from "@cairn/postgres"
import { Effect } from "effect"
import { followedRuns } from "../../sql/test/support/followed.js"
import { freshSchema, useDatabase } from "./internal/database.js"

const database = useDatabase()

followedRuns(
  Effect.gen(function* () {
    const schema = yield* freshSchema(database)
    const driver = yield* PostgresDriver.make({ url: database.url, schema, maxConnections: 2 })
    return { driver, script: new URL("children/followed.ts", import.meta.url), args: [database.url, schema] }
  }),
)
