import { everyStatement } from "@cairn/sql"
import { describe, expect, it } from "@effect/vitest"
import { SqliteDriver } from "@cairn/sqlite"
import { Effect } from "effect"
import { existsSync } from "node:fs"
import { openDatabase } from "../src/internal/openDatabase.js"
import { query, useDatabase } from "./internal/database.js"

const snapshot = new URL("schema.snapshot.txt", import.meta.url).pathname
const database = useDatabase()

const open = Effect.suspend(() => openDatabase({ url: database.url, listen: false, maxConnections: 1 }))

interface ColumnRow {
  readonly table: string
  readonly column: string
  readonly type: string
  readonly collation: string | null
  readonly required: boolean
}

/** The columns of all tables, in their order. */
const columnsOf = Effect.promise(() =>
  database.query<ColumnRow>(`select c.relname as "table", a.attname as "column", format_type(a.atttypid, a.atttypmod) as "type",
  (select collname from pg_collation where oid = a.attcollation and a.attcollation <> 100) as "collation", a.attnotnull as "required"
from pg_attribute as a join pg_class as c on c.oid = a.attrelid join pg_namespace as n on n.oid = c.relnamespace
where n.nspname = 'cairn' and c.relkind = 'r' and a.attnum > 0 and not a.attisdropped order by c.relname, a.attnum`),
)

const indexesOf = Effect.promise(() =>
  database.query<{ readonly definition: string }>(
    `select indexdef as "definition" from pg_indexes where schemaname = 'cairn' order by tablename, indexname`,
  ),
)

describe("the schema", () => {
  it.scopedLive("is the one that is written down beside this test", () =>
    Effect.gen(function* () {
      expect(existsSync(snapshot)).toBe(true)
      yield* open
      const columns = yield* columnsOf
      const indexes = yield* indexesOf
      expect(new Set(columns.map(({ table }) => table)).size).toBe(13)
      expect(indexes).toHaveLength(32)
      const lines = [
        ...columns.map(({ collation, column, required, table, type }) =>
          [`${table}.${column}`, type, ...(collation === null ? [] : [`collate ${collation}`])]
            .concat(required ? ["not null"] : [])
            .join(" "),
        ),
        ...indexes.map(({ definition }) => definition),
      ]
      yield* Effect.promise(() => expect(`${lines.join("\n")}\n`).toMatchFileSnapshot(snapshot))
    }),
  )

  it.scopedLive("has the tables, columns, nullability and uniqueness of the one in SQLite", () =>
    Effect.gen(function* () {
      yield* open
      const ours = (yield* columnsOf).map(({ column, required, table }) => `${table}.${column}${required ? "!" : ""}`)
      const sqlite = tablesOf(SqliteDriver.migrationScript())
      const theirs = sqlite.flatMap(({ columns, table }) => columns.map((column) => `${table}.${column}`))
      expect(theirs.length).toBeGreaterThan(50)
      expect([...ours].sort()).toEqual([...theirs].sort())
      const keys = (yield* indexesOf).flatMap(({ definition }) => {
        const [, table, columns] =
          /^CREATE UNIQUE INDEX \w+ ON cairn\.(\w+) USING btree \((.+)\)$/.exec(definition) ?? []
        return table === undefined ? [] : [`${table} (${columns})`]
      })
      expect(keys.sort()).toEqual(sqlite.flatMap(({ keys, table }) => keys.map((key) => `${table} ${key}`)).sort())
    }),
  )
})

/** Reads the tables out of SQLite's script: one line a column, `!` for one that may not be null. */
const tablesOf = (script: string) =>
  [...script.matchAll(/create table cairn_(\w+) \(\n([^;]+?)\n\) strict/g)].map(([, table = "", body = ""]) => {
    const lines = body.split(",\n").map((line) => line.trim())
    const isKey = (line: string) => /^(primary key|unique) \(/.test(line)
    return {
      table,
      columns: lines
        .filter((line) => !isKey(line))
        .map((line) => `${line.split(" ")[0]}${line.endsWith(" not null") ? "!" : ""}`),
      keys: lines.filter(isKey).map((line) => line.replace(/^.+ (\(.+\))$/, "$1")),
    }
  })

interface Plan {
  readonly "Node Type": string
  readonly "Relation Name"?: string
  readonly "Index Name"?: string
  readonly "Index Cond"?: string
  readonly Plans?: ReadonlyArray<Plan>
}

const nodes = (plan: Plan): ReadonlyArray<Plan> => [plan, ...(plan.Plans ?? []).flatMap(nodes)]

/** Field case P073. */
describe("query plans", () => {
  const planOf = (text: string, params: ReadonlyArray<unknown>) =>
    Effect.promise(async () => {
      // Asked whether an index can be used, not whether it pays for tables without a row.
      await database.query("set enable_seqscan = off")
      const [row] = await database.query<{ "QUERY PLAN": readonly [{ readonly Plan: Plan }] }>(
        `explain (format json) ${text}`,
        params,
      )
      return nodes(row!["QUERY PLAN"][0].Plan)
    })

  it.scopedLive("every statement reaches every table through an index", () =>
    Effect.gen(function* () {
      const { dialect } = yield* open
      const statements = Object.entries(everyStatement(dialect))
      expect(statements.length).toBeGreaterThan(18)
      for (const [name, { params, text }] of statements) {
        const plan = yield* planOf(text, params)
        expect(
          plan.some((node) => node["Index Name"] !== undefined),
          `${name} uses no index`,
        ).toBe(true)
        expect(
          plan.filter((node) => node["Node Type"] === "Seq Scan").map((node) => node["Relation Name"]),
          name,
        ).toEqual([])
      }
    }),
  )

  it.scopedLive("runs of a status are listed beside any number that has completed", () =>
    Effect.gen(function* () {
      const { dialect } = yield* open
      yield* query(
        database,
        `insert into cairn.run (namespace, run_id, workflow, version, plan_hash, input, input_hash, status, seq, fence, priority, inbox, recoveries, interruptions, previous_until, created_at, updated_at)
select 'n', 'r' || i, 'w', 1, 'h', '1', 'h', 'completed', 1, 1, 0, 0, 0, 0, 0, i, i from generate_series(1, 10000) as i`,
      )
      yield* query(database, "analyze cairn.run")
      const statements = everyStatement(dialect)
      for (const [name, index] of [
        ["list the runs that are running", "run_uncompleted"],
        ["list the runs that have ended", "run_listed"],
      ] as const) {
        const plan = yield* planOf(statements[name]!.text, statements[name]!.params)
        expect(plan.map((node) => [node["Node Type"], node["Index Name"]])).toEqual([
          ["Limit", undefined],
          [expect.stringContaining("Index Scan"), index],
        ])
      }
    }),
  )

  it.scopedLive("the newest turn of many, and any page of them, is looked up in an index that gives the order", () =>
    Effect.gen(function* () {
      const { dialect } = yield* open
      yield* query(
        database,
        `insert into cairn.step (run_number, seq, attempts, duration_ms, committed_at, scope, path, effect, result)
select 1, i, 1, 1, 1, 'agent[', 'agent[' || i || ']', 'turn', '1'::json from generate_series(1, 10000) as i
union all
select 1, i, 1, 1, 1, 'agent[' || i || ']', 'agent[' || i || ']/think', 'none', '1'::json from generate_series(1, 10000) as i`,
      )
      yield* query(database, "analyze cairn.step")
      const statements = everyStatement(dialect)
      const of = (name: string) => planOf(statements[name]!.text, statements[name]!.params)
      for (const [name, from] of [
        ["load the newest turn", "scope = "],
        ["load a page of turns", "ROW(seq, path) > "],
      ] as const) {
        const plan = (yield* of(name)).filter((node) => node["Relation Name"] !== "run")
        expect(
          plan.map((node) => [node["Node Type"], node["Index Name"]]),
          name,
        ).toEqual([
          ["Limit", undefined],
          ["Index Scan", "step_many"],
        ])
        expect(plan[1]!["Index Cond"], name).toContain(from)
      }
      // A page of a history begins where it is told to: only the workflow's own steps are read besides, and sorted.
      const scans = (yield* of("load the steps of a history")).filter((node) => node["Index Name"] !== undefined)
      expect(scans.map((node) => [node["Index Name"], node["Index Cond"]])).toContainEqual([
        "step_history",
        expect.stringMatching(/seq > .*seq <= /),
      ])
      // One scope is one stretch of the key: a load does not touch the others.
      for (const name of ["load its steps", "load the steps of a turn", "load the steps of some turns"]) {
        const plan = yield* of(name)
        const scans = plan.filter((node) => node["Index Name"] !== undefined && node["Relation Name"] !== "run")
        expect(
          scans.map((node) => [node["Index Name"], node["Index Cond"]]),
          name,
        ).toEqual([["step_pkey", expect.stringContaining("scope = ")]])
      }
    }),
  )

  it.scopedLive("what is open is looked up by run and path, however many rows the run has", () =>
    Effect.gen(function* () {
      const { dialect } = yield* open
      yield* query(
        database,
        `insert into cairn.effect (namespace, run_id, path, generation, operation, idempotency_key, payload_hash, state, claim_token, sends, intent_at)
select 'n', 'r', 'p' || i, 0, 'o', 'k', 'h', 'intended', 't', 1, 1 from generate_series(1, 5000) as i`,
      )
      yield* query(
        database,
        `insert into cairn.attempt (namespace, run_id, path, attempt, seq, kind, ended_at, error)
select 'n', 'r', 'p' || i, 1, i, 'failed', 1, '{}' from generate_series(1, 5000) as i`,
      )
      for (const table of ["effect", "attempt"]) {
        for (const paths of ["a path", "some paths"]) {
          const { params, text } = everyStatement(dialect)[`load the ${table}s of ${paths}`]!
          const plan = yield* planOf(text, params)
          const scans = plan.filter((node) => node["Index Name"] !== undefined)
          expect(
            scans.map((node) => [node["Index Name"], node["Index Cond"]]),
            `${table}s of ${paths}`,
          ).toEqual([[`${table}_pkey`, expect.stringContaining("path = ")]])
        }
      }
    }),
  )

  it.scopedLive("a full scan would be noticed", () =>
    Effect.gen(function* () {
      yield* open
      const plan = yield* planOf("select * from cairn.run where cursor = $1", ["x"])
      expect(plan.map((node) => node["Node Type"])).toContain("Seq Scan")
    }),
  )
})
