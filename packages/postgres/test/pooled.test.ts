/** The laws through a transaction-mode pooler with two connections, under a pool of one, and under a schema of any name. */
import { storeConformance, type Feature } from "@cairn/conformance"
import { PostgresDriver, type PostgresStoreOptions } from "@cairn/postgres"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { afterAll, beforeAll } from "vitest"
import { openDatabase } from "../src/internal/openDatabase.js"
import { freshSchema, query, useDatabase } from "./internal/database.js"
import { pgBouncer } from "./internal/pgbouncer.js"
import { newRun } from "./internal/rows.js"

const database = useDatabase()
const scope = Effect.runSync(Scope.make())
let pooledUrl = ""

beforeAll(async () => {
  pooledUrl = await Effect.runPromise(Scope.extend(pgBouncer(database.url, 2), scope))
}, 180_000)

afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

const conformance = (name: string, options: () => PostgresStoreOptions, features: ReadonlyArray<Feature>) =>
  storeConformance(name, {
    features: ["second", "ownClock", "transactions", ...features],
    open: Effect.gen(function* () {
      const schema = yield* freshSchema(database)
      const ledger = `${schema}.ledger`
      yield* query(database, `create schema if not exists ${schema}`)
      yield* query(database, `create table ${ledger} (name text primary key)`)
      return {
        driver: yield* PostgresDriver.make(options()),
        second: yield* PostgresDriver.make(options()),
        ledger: {
          insert: (access, name) => access.query(`insert into ${ledger} (name) values ($1)`, [name]),
          names: Effect.map(query(database, `select name from ${ledger}`), (rows) =>
            rows.map((row) => String(row["name"])),
          ),
        },
      }
    }),
  })

conformance(
  "postgres through PgBouncer",
  () => ({ url: pooledUrl, schema: "pooled", listen: false, maxConnections: 8 }),
  [],
)

conformance(
  "postgres with a pool of one, in a schema of any name",
  () => ({ url: database.url, schema: 'my-App."x"', maxConnections: 1 }),
  ["wakeUps"],
)

describe("a transaction-mode pooler", () => {
  it.scopedLive("is one: more clients than it has connections work at once, and no session keeps a setting", () =>
    Effect.gen(function* () {
      const options = { url: pooledUrl, schema: "pooled", listen: false, maxConnections: 8, applicationName: "pooled" }
      const drivers = [yield* PostgresDriver.make(options), yield* PostgresDriver.make(options)]
      const creates = Array.from({ length: 100 }, (_, n) => drivers[n % 2]!.createRun(newRun(`run ${n}`)))
      const created = yield* Effect.all(creates, { concurrency: "unbounded" })
      expect(created.filter((result) => result.created)).toHaveLength(100)
      const [row] = yield* query(
        database,
        "select count(*)::int as n from pg_stat_activity where datname = current_database() and application_name <> 'cairn tests' and backend_type = 'client backend' and application_name = 'pooled'",
      )
      expect(row!["n"]).toBeLessThanOrEqual(2)
    }),
  )

  it.scopedLive("is heard around by a listening connection that goes to the server itself", () =>
    Effect.gen(function* () {
      const schema = "pooled"
      const hearer = yield* PostgresDriver.make({ url: pooledUrl, listenUrl: database.url, schema, maxConnections: 1 })
      const sender = yield* PostgresDriver.make({ url: pooledUrl, listen: false, schema, maxConnections: 1 })
      const woken = new Promise<string>((resolve) => hearer.onWakeUp!(() => resolve("woken")))
      yield* sender.createRun(newRun("heard"))
      expect(yield* Effect.promise(() => woken)).toBe("woken")
    }),
  )

  it.scopedLive("that knows no names has each statement sent in full from its first refusal on", () =>
    Effect.gen(function* () {
      const options = { url: pooledUrl, listen: false, schema: "pooled", maxConnections: 8 }
      const drivers = [yield* PostgresDriver.make(options), yield* PostgresDriver.make(options)]
      for (let round = 0; round < 20; round++) {
        const runs = Array.from({ length: 8 }, (_, n) => newRun(`named ${round} ${n}`))
        const made = yield* Effect.forEach(runs, (run, n) => drivers[n % 2]!.createRun(run), {
          concurrency: "unbounded",
        })
        expect(made.every(({ created }) => created)).toBe(true)
        const found = yield* Effect.forEach(runs, (run, n) => drivers[n % 2]!.findRun(run.namespace, run.runId), {
          concurrency: "unbounded",
        })
        expect(found.every((row) => row !== null)).toBe(true)
      }
    }),
  )

  it.scopedLive("is not there: statements are parsed once a connection", () =>
    Effect.gen(function* () {
      const schema = yield* freshSchema(database)
      const { database: direct } = yield* openDatabase({
        url: database.url,
        schema,
        listen: false,
        maxConnections: 1,
      })
      const text = "select $1::int as n"
      for (const n of [1, 2, 3]) expect(yield* direct.query("test", { text, params: [n] })).toEqual([{ n: String(n) }])
      const names = yield* direct.query("test", {
        text: "select (generic_plans + custom_plans)::int as used from pg_prepared_statements where statement = 'select $1::int as n'",
        params: [],
      })
      expect(names).toEqual([{ used: 3 }])
    }),
  )
})
