/** What a commit alone costs the server: no entry in an index but the step's own, and no planning once it has been planned. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { openDatabase } from "../src/internal/openDatabase.js"
import { driverOver } from "../src/PostgresDriver.js"
import { freshSchema, useDatabase } from "./internal/database.js"
import { claimOf, leaseOf, newRun, ownedRuns, stepCommit } from "./internal/rows.js"

const database = useDatabase()

const commits = 20

const open = Effect.gen(function* () {
  const schema = yield* freshSchema(database)
  const opened = yield* openDatabase({ url: database.url, schema, listen: false, maxConnections: 1 })
  const ask = (text: string) => opened.database.query("test", { text, params: [] })
  return { schema, ask, driver: yield* driverOver(opened.dialect, opened.database, opened.options) }
})

describe("a commit of a running run", () => {
  it.scopedLive("enters its new version in no index: nothing that it writes stands in one", () =>
    Effect.gen(function* () {
      const { ask, driver, schema } = yield* open
      const [lease] = yield* ownedRuns(driver, "worker", ["a"])
      const updates = Effect.gen(function* () {
        yield* ask("select pg_stat_force_next_flush()")
        const [row] = yield* ask(
          `select n_tup_upd::int as "all", n_tup_hot_upd::int as "hot" from pg_stat_user_tables where relid = '${schema}.run'::regclass`,
        )
        return row as { readonly all: number; readonly hot: number }
      })
      const before = yield* updates
      for (let base = 0; base < commits; base++) yield* driver.commit([stepCommit(lease!, base)])
      const after = yield* updates
      expect([after.all - before.all, after.hot - before.hot]).toEqual([commits, commits])
      // The claim before has changed what the indexes of claims hold: a count that counts everything would show nothing.
      expect(before).toEqual({ all: 1, hot: 0 })
    }),
  )

  it.scopedLive("leaves room for it: so do those of many runs in one flush", () =>
    Effect.gen(function* () {
      const { ask, schema } = yield* open
      const [row] = yield* ask(`select reloptions as "options" from pg_class where oid = '${schema}.run'::regclass`)
      expect(row!["options"]).toEqual(["fillfactor=95"])
    }),
  )
})

describe("statements of a single run", () => {
  it.scopedLive("are planned five times a connection, and then no more: their plan is that of one row", () =>
    Effect.gen(function* () {
      const { ask, driver } = yield* open
      yield* driver.beat("worker", 600_000)
      for (let n = 0; n < commits; n++) {
        yield* driver.createRun(newRun(`run ${n}`))
        const [run] = yield* driver.claim(claimOf("worker"))
        yield* driver.commit([stepCommit(leaseOf(run!), 0)])
        yield* driver.findRuns([{ namespace: "test", runId: `run ${n}` }])
      }
      const rows = yield* ask(
        `select left(regexp_replace(statement, '\\s+', ' ', 'g'), 200) as "statement", custom_plans::int as "custom" from pg_prepared_statements where generic_plans + custom_plans >= ${commits}`,
      )
      // The start, the look, the pick, the workers' locks, the claim, the commit, the look-up.
      expect(rows).toHaveLength(7)
      for (const { custom, statement } of rows) expect(custom, String(statement)).toBeLessThanOrEqual(5)
    }),
  )
})
