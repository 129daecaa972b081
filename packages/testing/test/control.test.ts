/** Whatever combinators a workflow is made of, it comes to what it must come to, at whatever point its workers are struck. */
import { SqliteStore } from "@cairn/sqlite"
import { Effect, FastCheck as fc } from "effect"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { makeLedger } from "../scripts/subjects.js"
import { controlWorkflows, expectNoBreach, type GeneratedControl, type Invariant, type Report } from "../src/index.js"
import { journey } from "./support/journey.js"

/** What the generated workflows were made of. */
class Seen {
  schedules = 0
  workflows = 0
  parked = 0
  readonly kinds = new Set<string>()
  readonly policies = new Set<string>()
  readonly points = new Set<string>()

  add({ pieces }: GeneratedControl, { parked, rows, schedules }: Report): void {
    this.workflows++
    this.schedules += schedules
    this.parked += parked
    for (const [, kind] of JSON.stringify(pieces).matchAll(/"kind":"(\w+)"/g)) this.kinds.add(kind!)
    for (const [, policy] of JSON.stringify(pieces).matchAll(/"policy":"(\w+)"/g)) this.policies.add(policy!)
    for (const { point, policy } of rows) this.points.add(`${policy} ${point}`)
  }
}

const kinds = [
  ...["act", "boom", "branch", "child", "exit", "forEach", "loop", "match"],
  ...["parallel", "read", "review", "signal", "sleep", "step"],
]

it("a workflow of all combinators can be struck at every point of each", async () => {
  const report = await expectNoBreach(journey, { input: 3 as never, maxSchedules: 260, seed: 5 })
  expect(report.schedules).toBe(260)
  const rows = new Set(report.rows.map(({ policy }) => policy))
  expect([...rows].sort()).toEqual(
    ["checkFirst", "child", "no operation", "retryWithKey", "steering", "wait", "worker"].sort(),
  )
}, 120_000)

describe("generated workflows of all combinators", () => {
  // Shallow ones are struck at most of their points, deep ones at some.
  for (const [depth, workflows, schedules, seed] of [
    [1, 30, 25, 30_401],
    [2, 40, 20, 30_402],
    [3, 40, 13, 30_403],
  ] as const) {
    it(`that stand ${depth} deep come to what they must come to`, async () => {
      const seen = new Seen()
      await fc.assert(
        fc.asyncProperty(controlWorkflows({ depth }), async (generated) => {
          expect(generated.workflow.diagnostics).toEqual([])
          const options = { ...generated.options, maxSchedules: schedules, seed }
          seen.add(generated, await expectNoBreach(generated.workflow, options as never))
        }),
        {
          numRuns: workflows,
          seed,
          endOnFailure: false,
          interruptAfterTimeLimit: 240_000,
          markInterruptAsFailure: true,
        },
      )
      // One without anything to be struck at is run once.
      expect(seen.schedules).toBeGreaterThan(workflows * schedules * 0.9)
      expect([...seen.kinds].sort()).toEqual(kinds)
      expect([...seen.policies].sort()).toEqual(["checkFirst", "recordFirst", "retryWithKey", "review"])
      expect(seen.parked).toBeGreaterThan(0)
    }, 300_000)
  }

  it("do so in a SQLite file", async () => {
    const seen = new Seen()
    const directory = await mkdtemp(join(tmpdir(), "cairn-testing-"))
    try {
      const store = SqliteStore.layer({ filename: join(directory, "runs.sqlite"), synchronous: "normal" })
      await makeLedger(store)
      const generated = controlWorkflows({
        ...{ clock: "real", depth: 2, maxPieces: 3 },
        book: ({ query, run, step }) => query(`insert into ledger (run, step) values (?, ?)`, [run, step]),
      })
      const once: Invariant = ({ namespace, query }) =>
        Effect.map(
          query("select step, count(*) as times from ledger where run = ? group by step", [namespace]),
          (rows) =>
            rows.filter(({ times }) => times !== 1).map(({ step, times }) => `'${step}' was booked ${times} times`),
        )
      await fc.assert(
        fc.asyncProperty(generated, async (made) => {
          const { invariant, ...options } = made.options
          const both: Invariant = (run) =>
            Effect.map(once(run) as Effect.Effect<ReadonlyArray<string>, Error>, (problems) => [
              ...problems,
              ...(invariant(run) as ReadonlyArray<string>),
            ])
          const limits = { ...options, invariant: both, store, maxSchedules: 7, concurrency: 7 }
          seen.add(made, await expectNoBreach(made.workflow, limits as never))
        }),
        { numRuns: 16, seed: 30_404, endOnFailure: true },
      )
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
    expect(seen.schedules).toBeGreaterThanOrEqual(100)
    expect(seen.kinds.has("transaction")).toBe(true)
  }, 300_000)
})
