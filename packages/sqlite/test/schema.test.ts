import { everyStatement } from "@cairn/sql"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync } from "node:fs"
import { openWithClient } from "./internal/openWithClient.js"
import { sqliteDialect } from "../src/internal/sqliteDialect.js"

const snapshot = new URL("schema.snapshot.sql", import.meta.url).pathname

describe("the schema", () => {
  it.scopedLive("is the one that is written down beside this test", () =>
    Effect.gen(function* () {
      expect(existsSync(snapshot)).toBe(true)
      const { client } = yield* openWithClient({ filename: ":memory:" })
      const objects = yield* client.unsafe<{ readonly sql: string }>(
        "select sql from sqlite_master where sql is not null order by type desc, name",
      )
      expect(objects).toHaveLength(32)
      const text = objects.map(({ sql }) => `${sql};\n`).join("\n")
      yield* Effect.promise(() => expect(text).toMatchFileSnapshot(snapshot))
    }),
  )
})

// The names of the tables and of every alias that the statements give them.
const scanOfTable =
  /^SCAN (?:cairn_\w+|run|step|record|effect|attempt|signal|wait|owner|claimer|paid|later|spend|cost)\b/

/** Field case P073. */
describe("query plans", () => {
  it.scopedLive("every statement reaches every table through an index", () =>
    Effect.gen(function* () {
      const { client } = yield* openWithClient({ filename: ":memory:" })
      for (const [name, { params, text }] of Object.entries(everyStatement(sqliteDialect))) {
        const plan = yield* client.unsafe<{ readonly detail: string }>(`explain query plan ${text}`, params)
        const details = plan.map(({ detail }) => detail)
        expect(
          details.some((detail) => detail.startsWith("SEARCH ")),
          `${name} searches nothing`,
        ).toBe(true)
        expect(
          details.filter((detail) => scanOfTable.test(detail)),
          name,
        ).toEqual([])
      }
    }),
  )

  it.scopedLive("the look for due runs walks one index for each way to be due", () =>
    Effect.gen(function* () {
      const { client } = yield* openWithClient({ filename: ":memory:" })
      const { params, text } = everyStatement(sqliteDialect)["look for due runs"]!
      const plan = yield* client.unsafe<{ readonly detail: string }>(`explain query plan ${text}`, params)
      const details = plan.map(({ detail }) => detail)
      for (const index of ["cairn_run_pending", "cairn_run_timed", "cairn_run_timed_prior", "cairn_run_running"]) {
        expect(
          details.some((detail) => detail.includes(`INDEX ${index} (`)),
          index,
        ).toBe(true)
      }
      // Sorted are only the few with a priority, what was abandoned, and in the end what the walks have found.
      expect(details.filter((detail) => detail.includes("ORDER BY"))).toHaveLength(3)
    }),
  )

  it.scopedLive("what is open is looked up by run and path, however many rows the run has", () =>
    Effect.gen(function* () {
      const { client } = yield* openWithClient({ filename: ":memory:" })
      const rows = "with recursive n (i) as (select 1 union all select i + 1 from n where i < 5000)"
      yield* client.unsafe(`${rows} insert into cairn_effect
        select 'n', 'r', 'p' || i, 0, 'o', 'k', 'h', 'intended', 't', 1, 1, null, null, null from n`)
      yield* client.unsafe(`${rows} insert into cairn_attempt
        select 'n', 'r', 'p' || i, 1, i, 'failed', null, 1, '{}', null from n`)
      yield* client.unsafe("analyze")
      for (const table of ["effect", "attempt"]) {
        for (const paths of ["a path", "some paths"]) {
          const { params, text } = everyStatement(sqliteDialect)[`load the ${table}s of ${paths}`]!
          const plan = yield* client.unsafe<{ readonly detail: string }>(`explain query plan ${text}`, params)
          const details = plan.map(({ detail }) => detail)
          const key = `sqlite_autoindex_cairn_${table}_1 (namespace=? AND run_id=? AND path=?)`
          expect(details).toContain(`SEARCH record USING INDEX ${key}`)
          // The key gives the order of D11: nothing is sorted.
          expect(details.filter((detail) => detail.includes("ORDER BY"))).toEqual([])
        }
      }
      const { params, text } = everyStatement(sqliteDialect)["load the attempts of a history"]!
      const plan = yield* client.unsafe<{ readonly detail: string }>(`explain query plan ${text}`, params)
      const stretch = "cairn_attempt_history (namespace=? AND run_id=? AND seq>? AND seq<?)"
      expect(plan.map(({ detail }) => detail)).toEqual([`SEARCH attempt USING INDEX ${stretch}`])
    }),
  )

  it.scopedLive("runs of a status are listed beside any number that has completed", () =>
    Effect.gen(function* () {
      const { client } = yield* openWithClient({ filename: ":memory:" })
      const planOf = (name: string) => {
        const { params, text } = everyStatement(sqliteDialect)[name]!
        return Effect.map(client.unsafe<{ readonly detail: string }>(`explain query plan ${text}`, params), (plan) =>
          plan.map(({ detail }) => detail),
        )
      }
      // In the order of the list: nothing is sorted.
      const walk = (index: string) => [expect.stringContaining(`SEARCH cairn_run USING INDEX ${index} (namespace=?`)]
      expect(yield* planOf("list the runs that are running")).toEqual(walk("cairn_run_uncompleted"))
      expect(yield* planOf("list a page of runs")).toEqual(walk("cairn_run_uncompleted"))
      expect(yield* planOf("list the runs that have ended")).toEqual(walk("cairn_run_listed"))
      expect(yield* planOf("list the newest runs")).toEqual(walk("cairn_run_listed"))
    }),
  )

  it.scopedLive("the newest turn of many, and any page of them, is looked up in an index that gives the order", () =>
    Effect.gen(function* () {
      const { client } = yield* openWithClient({ filename: ":memory:" })
      const turns = "with recursive n (i) as (select 1 union all select i + 1 from n where i < 10000)"
      yield* client.unsafe(`${turns} insert into cairn_step
        select 1, i, 1, 1, 1, 'agent[', 'agent[' || i || ']', 'turn', null, '1' from n`)
      yield* client.unsafe(`${turns} insert into cairn_step
        select 1, i, 1, 1, 1, 'agent[' || i || ']', 'agent[' || i || ']/think', 'none', null, '1' from n`)
      yield* client.unsafe("analyze")
      const planOf = (name: string) => {
        const { params, text } = everyStatement(sqliteDialect)[name]!
        return Effect.map(client.unsafe<{ readonly detail: string }>(`explain query plan ${text}`, params), (plan) =>
          plan.map(({ detail }) => detail),
        )
      }
      const run = "SEARCH keyed USING COVERING INDEX sqlite_autoindex_cairn_run_1 (namespace=? AND run_id=?)"
      const many = "SEARCH step USING INDEX cairn_step_many (run_number=? AND scope=?"
      expect(yield* planOf("load the newest turn")).toEqual([`${many} AND seq>?)`, "SCALAR SUBQUERY 1", run])
      expect(yield* planOf("load a page of turns")).toEqual([`${many} AND (seq,path)>(?,?))`, "SCALAR SUBQUERY 1", run])
      // A page of a history begins where it is told to: only the workflow's own steps are read besides, and sorted.
      const after = "SEARCH step USING INDEX cairn_step_history (run_number=? AND seq>? AND seq<?)"
      expect(yield* planOf("load the steps of a history")).toContain(after)
      // One scope is one stretch of the key: a load does not touch the others.
      const one = "SEARCH step USING INDEX sqlite_autoindex_cairn_step_1 (run_number=? AND scope=?)"
      for (const name of ["load its steps", "load the steps of a turn", "load the steps of some turns"]) {
        expect(yield* planOf(name)).toContain(one)
      }
    }),
  )

  it.scopedLive("a full scan would be noticed", () =>
    Effect.gen(function* () {
      const { client } = yield* openWithClient({ filename: ":memory:" })
      const [row] = yield* client.unsafe<{ readonly detail: string }>(
        "explain query plan select * from cairn_run as run where run.cursor = 'x'",
      )
      expect(row!.detail).toMatch(scanOfTable)
    }),
  )
})
