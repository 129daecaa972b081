/** The same on databases, where the clock is real and nobody can be hurried: a sample. */
import { makeTestDatabase } from "@cairn/postgres-server"
import { PostgresStore } from "@cairn/postgres"
import { SqliteStore } from "@cairn/sqlite"
import { Redacted } from "effect"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "vitest"
import { expectNoBreach, type ReportRow } from "../src/index.js"
import { booking, makeLedger } from "../scripts/subjects.js"
import { declining, invoice, model, undone } from "./support/workflows.js"

const rowOf = ({ point, mostEffects, breaches }: ReportRow) => [point, mostEffects, breaches]

/** One row a step, wherever it was struck. */
const bookedRows = [
  ["afterGate", 1, 0],
  ["beforeCommit", 1, 0],
  ["afterCommit", 1, 0],
]

it("keeps its promises on a SQLite file", async () => {
  const directory = await mkdtemp(join(tmpdir(), "cairn-testing-"))
  try {
    const store = SqliteStore.layer({ filename: join(directory, "runs.sqlite"), synchronous: "normal" })
    const paid = await expectNoBreach(invoice, { input: "ada", services: model, store, maxSchedules: 60 })
    const tookBack = await expectNoBreach(undone, { input: null, handlers: declining, store, maxSchedules: 30 })
    expect(paid.store).toBe("sqlite")
    expect(paid.schedules + tookBack.schedules).toBe(90)
    await makeLedger(store)
    const { workflow, options } = booking("?")
    const booked = await expectNoBreach(workflow, { ...options, store, maxSchedules: 40 })
    expect(booked.rows.filter(({ policy }) => policy === "transaction").map(rowOf)).toEqual(bookedRows)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}, 300_000)

it("keeps its promises on Postgres", async () => {
  const database = await makeTestDatabase()
  try {
    const store = PostgresStore.layer({ url: Redacted.make(database.url) })
    const report = await expectNoBreach(invoice, { input: "ada", services: model, store, maxSchedules: 25 })
    expect(report.store).toBe("postgres")
    expect(report.schedules).toBe(25)
    await makeLedger(store)
    const { workflow, options } = booking("$1")
    const booked = await expectNoBreach(workflow, { ...options, store, maxSchedules: 35 })
    expect(booked.rows.filter(({ policy }) => policy === "transaction").map(rowOf)).toEqual(bookedRows)
  } finally {
    await database.drop()
  }
}, 300_000)
