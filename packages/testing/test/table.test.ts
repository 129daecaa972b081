/** The published table is what the generator writes: the same head and rows, and no breach. */
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { expect, it } from "vitest"
import { memorySample, page, runSample } from "../scripts/publish.js"

const published = readFile(join(import.meta.dirname, "../../../docs/guarantees.md"), "utf8")

/** Everything but the numbers, which follow from the size of the sample. */
const shape = (text: string): ReadonlyArray<string> =>
  text.split("\n").map((line) =>
    line
      .replaceAll(/\d[\d,]*/g, "n")
      .replaceAll(/ +/g, " ")
      .replaceAll(/-+/g, "-"),
  )

/** The page up to the second store: its text, and the rows of the memory store. */
const upToSqlite = (lines: ReadonlyArray<string>): ReadonlyArray<string> => {
  const end = lines.findIndex((line) => line.startsWith("## SQLite"))
  return end === -1 ? lines : lines.slice(0, end)
}

it("the published page has the shape that the generator gives it", async () => {
  // Most single troubles of every subject: each row of the table.
  const reports = await runSample(memorySample(110), 1)
  const generated = page(1, [{ store: "memory", reports }])
  expect(
    upToSqlite(shape(await published))
      .join("\n")
      .trim(),
  ).toBe(shape(generated).join("\n").trim())
}, 180_000)

it("the published page tells of ten thousand schedules, three stores and no breach", async () => {
  const heads = [...(await published).matchAll(/^## (\w+): (\d+) schedules, (\d+) breaches$/gm)]
  expect(heads.map(([, store, , breaches]) => [store, breaches])).toEqual([
    ["memory", "0"],
    ["SQLite", "0"],
    ["Postgres", "0"],
  ])
  expect(Number(heads[0]![2])).toBeGreaterThanOrEqual(10_000)
})

it("the published page tells of transaction steps where there are transactions: one row, whatever happened", async () => {
  const [, memory, sqlite, postgres] = (await published).split(/^## /m)
  const rowsOf = (section: string) =>
    section
      .split("\n")
      .filter((line) => line.startsWith("| transaction"))
      .map((line) => line.split("|").map((cell) => cell.trim()))
      .map(([, , point, , , , mostEffects, , breaches]) => [point, mostEffects, breaches])
  expect(rowsOf(memory!)).toEqual([])
  for (const section of [sqlite!, postgres!]) {
    expect(rowsOf(section)).toEqual([
      ["afterGate", "1", "0"],
      ["beforeCommit", "1", "0"],
      ["afterCommit", "1", "0"],
    ])
  }
})
