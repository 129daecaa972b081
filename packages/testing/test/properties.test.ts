/** Any workflow of these parts keeps its promises at any crash point. */
import { SqliteStore } from "@cairn/sqlite"
import { Effect, FastCheck as fc } from "effect"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "vitest"
import { makeLedger } from "../scripts/subjects.js"
import { expectNoBreach, workflows, type GeneratedWorkflow, type Invariant } from "../src/index.js"

/** What the generated workflows were made of. */
class Seen {
  schedules = 0
  readonly kinds = new Set<string>()
  readonly policies = new Set<string>()

  add({ parts }: GeneratedWorkflow, schedules: number): void {
    this.schedules += schedules
    for (const part of parts) {
      this.kinds.add(part.kind)
      if ("policy" in part) this.policies.add(part.policy)
      if (part.kind === "choice") this.policies.add(part.tells ? part.tell : part.act)
    }
  }
}

it("no generated workflow breaks a promise, whatever befalls its workers", async () => {
  const seen = new Seen()
  await fc.assert(
    fc.asyncProperty(workflows(), async (generated) => {
      const { workflow, input, simulate } = generated
      expect(workflow.diagnostics).toEqual([])
      const report = await expectNoBreach(workflow, { input, simulate, maxSchedules: 60 })
      seen.add(generated, report.schedules)
    }),
    { numRuns: 25, seed: 20_301, endOnFailure: false },
  )
  expect(seen.schedules).toBeGreaterThan(1_000)
  expect([...seen.kinds].sort()).toEqual(["choice", "perform", "step", "stepWithOperation"])
  expect([...seen.policies].sort()).toEqual(["checkFirst", "recordFirst", "retryWithKey", "review"])
}, 180_000)

it("nor does one that writes in transactions of a SQLite file", async () => {
  const seen = new Seen()
  const directory = await mkdtemp(join(tmpdir(), "cairn-testing-"))
  try {
    const store = SqliteStore.layer({ filename: join(directory, "runs.sqlite"), synchronous: "normal" })
    await makeLedger(store)
    const generated = workflows({
      ...{ clock: "real", maxSteps: 3 },
      book: ({ query, run, step }) => query(`insert into ledger (run, step) values (?, '${step}')`, [run]),
    }).filter(({ parts }) => parts.some(({ kind }) => kind === "transaction"))
    const once: Invariant = ({ namespace, query, status }) =>
      Effect.map(
        query("select step, count(*) as times from ledger where run = ? group by step", [namespace]),
        (rows) => {
          if (status === "completed" && rows.length === 0) return ["nothing was booked"]
          return rows.filter(({ times }) => times !== 1).map(({ step, times }) => `'${step}' was booked ${times} times`)
        },
      )
    await fc.assert(
      fc.asyncProperty(generated, async (made) => {
        const { workflow, input, simulate } = made
        const limits = { maxSchedules: 16, invariant: once, store }
        seen.add(made, (await expectNoBreach(workflow, { input, simulate, ...limits })).schedules)
      }),
      { numRuns: 4, seed: 20_302, endOnFailure: true },
    )
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
  expect(seen.schedules).toBe(64)
}, 180_000)
