import { everyStatement, migrationScript } from "@cairn/sql"
import { describe, expect, it } from "vitest"
import { inBatches, overRows } from "../src/Statement.js"
import { effectTable } from "../src/tables.js"
import { numberedDialect } from "./numberedDialect.js"

const columns = effectTable.columns.slice(0, 2)

describe("statements", () => {
  it.each(Object.entries(everyStatement(numberedDialect)))(
    "'%s' numbers its values in the order in which it binds them, and names no other table",
    (_, { params, text }) => {
      const positions = [...text.matchAll(/\$(\d+)/g)].map((match) => Number(match[1]))
      expect(positions).toEqual(params.map((_, index) => index + 1))
      const tables = [...text.matchAll(/\b(?:from|join|update|into) ([^\s(,)]+)/g)].map((match) => match[1]!)
      // The tables, what `with` names, and `do update set` and `for update of`.
      const known =
        /^("store"\."\w+"|given(_\w+)?|clock|counter|family|parent|old|wanted|asked|due|picked|held|started|crowded(_key)?|spent(_key)?|updated|unnest|set|of|skip)$/
      expect(tables.filter((table) => !known.test(table))).toEqual([])
    },
  )

  it("lock what they pick where the dialect can", () => {
    const all = everyStatement(numberedDialect)
    const locking = Object.keys(all).filter((name) => all[name]!.text.includes("for update skip locked"))
    expect(locking).toEqual(["pick due runs", "pick due runs among some", "pick due runs with limits"])
  })

  it("lock several runs in the order of their keys before one is written, and wake who sleeps elsewhere", () => {
    const all = everyStatement(numberedDialect)
    expect(all["commit several runs"]!.text).toMatch(
      /order by run\.namespace, run\.run_id for update of run\n\),\nupdated/,
    )
    expect(all["commit"]!.text).not.toContain("for update")
    expect(all["unpark"]!.text).toContain('wake() as "woken"')
  })

  it("never hold a value in their text", () => {
    const insert = overRows(numberedDialect, columns, (rows) => `insert ${rows}`)
    const hostile = "'; drop table run; --"
    const { params, text } = insert([[hostile, "r"]])
    expect(text).not.toContain("drop")
    expect(params).toEqual([hostile, "r"])
    expect(
      insert([
        [hostile, "r"],
        ["n", "s"],
      ]).params,
    ).toEqual([
      [hostile, "n"],
      ["r", "s"],
    ])
  })

  it("are the same text for the same number of rows", () => {
    let written = 0
    const insert = overRows(numberedDialect, columns, (rows) => `insert ${rows} ${++written}`)
    expect(insert([["n", "a"]]).text).toBe(insert([["n", "b"]]).text)
    expect(written).toBe(1)
  })
})

describe("batches", () => {
  const sizes = (dialect: typeof numberedDialect, count: number) =>
    inBatches(
      dialect,
      Array.from({ length: count }, (_, index) => index),
    ).map((batch) => batch.length)

  it("take all rows at once where the dialect names no sizes", () => {
    expect(sizes(numberedDialect, 1_000)).toEqual([1_000])
    expect(sizes(numberedDialect, 0)).toEqual([])
  })

  it("take the largest sizes first, in order and without a rest", () => {
    const sized = { ...numberedDialect, batchSizes: [32, 8, 1] }
    expect(sizes(sized, 75)).toEqual([32, 32, 8, 1, 1, 1])
    expect(sizes(sized, 1)).toEqual([1])
    expect(
      inBatches(
        sized,
        Array.from({ length: 41 }, (_, index) => index),
      ).flat(),
    ).toEqual(Array.from({ length: 41 }, (_, index) => index))
  })
})

describe("the printed migration", () => {
  it("is a transaction a version, with everything before the tables and the row that records it", () => {
    const lines = migrationScript(numberedDialect).split(";\n")
    expect(lines.slice(0, 2)).toEqual(["begin", 'create schema "store"'])
    expect(lines.filter((line) => line.startsWith("create table"))).toHaveLength(13)
    expect(lines.filter((line) => line.startsWith("create index"))).toHaveLength(18)
    expect(lines.at(-2)).toBe(
      `insert into "store"."migration" (version, name, applied_at) values (1, 'first tables', clock_ms())`,
    )
    expect(lines.at(-1)).toBe("commit;")
  })
})
