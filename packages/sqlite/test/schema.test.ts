import { everyStatement } from "@cairn/sql"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync } from "node:fs"
import { openDatabase } from "../src/internal/openDatabase.js"
import { sqliteDialect } from "../src/internal/sqliteDialect.js"

const snapshot = new URL("schema.snapshot.sql", import.meta.url).pathname

describe("the schema", () => {
  it.scopedLive("is the one that is written down beside this test", () =>
    Effect.gen(function* () {
      expect(existsSync(snapshot)).toBe(true)
      const { client } = yield* openDatabase({ filename: ":memory:" })
      const objects = yield* client.unsafe<{ readonly sql: string }>(
        "select sql from sqlite_master where sql is not null order by type desc, name",
      )
      expect(objects).toHaveLength(10)
      const text = objects.map(({ sql }) => `${sql};\n`).join("\n")
      yield* Effect.promise(() => expect(text).toMatchFileSnapshot(snapshot))
    }),
  )
})

// The names of the tables and of every alias that the statements give them.
const scanOfTable = /^SCAN (?:cairn_\w+|run|step|record|effect|owner|claimer)\b/

describe("query plans", () => {
  it.scopedLive("every statement reaches every table through an index", () =>
    Effect.gen(function* () {
      const { client } = yield* openDatabase({ filename: ":memory:" })
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
      const { client } = yield* openDatabase({ filename: ":memory:" })
      const { params, text } = everyStatement(sqliteDialect)["look for due runs"]!
      const plan = yield* client.unsafe<{ readonly detail: string }>(`explain query plan ${text}`, params)
      const details = plan.map(({ detail }) => detail)
      for (const index of ["cairn_run_pending", "cairn_run_timed", "cairn_run_running"]) {
        expect(
          details.some((detail) => detail.includes(`INDEX ${index} (`)),
          index,
        ).toBe(true)
      }
    }),
  )

  it.scopedLive("a full scan would be noticed", () =>
    Effect.gen(function* () {
      const { client } = yield* openDatabase({ filename: ":memory:" })
      const [row] = yield* client.unsafe<{ readonly detail: string }>(
        "explain query plan select * from cairn_run as run where run.cursor = 'x'",
      )
      expect(row!.detail).toMatch(scanOfTable)
    }),
  )
})
