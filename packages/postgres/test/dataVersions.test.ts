/** Data versions over a Postgres schema, with a pool of one connection: a look never waits for itself. */
import { PostgresDriver } from "@cairn/postgres"
import { Effect } from "effect"
import { dataVersions } from "../../sql/test/support/dataVersions.js"
import { freshSchema, query, useDatabase } from "./internal/database.js"

const database = useDatabase()

dataVersions(
  "Postgres",
  Effect.gen(function* () {
    const schema = yield* freshSchema(database)
    const driver = yield* PostgresDriver.make({ url: database.url, schema, maxConnections: 1 })
    const stock = `${schema}.stock`
    const run = (text: string) => query(database, text)
    yield* run(
      `create table ${stock} (sku text primary key, amount bigint, note text, seen timestamptz, picture bytea)`,
    )
    yield* run(`insert into ${stock} values ('a1', 5, null, '2026-01-01', '\\x00ff'), ('a2', 7, '', null, null)`)
    yield* run(`insert into ${stock} (sku, amount) values ('b1', 1)`)
    return { driver, stock, parameter: "$1", run, snapshot: /^\d+:\d+:/ }
  }),
)
