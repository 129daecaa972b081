/** Any workflow of these parts keeps its promises at any crash point. */
import { FastCheck as fc } from "effect"
import { expect, it } from "vitest"
import { expectNoBreach, workflows } from "../src/index.js"

it("no generated workflow breaks a promise, whatever befalls its workers", async () => {
  let schedules = 0
  await fc.assert(
    fc.asyncProperty(workflows(), async ({ workflow, input, simulate }) => {
      expect(workflow.diagnostics).toEqual([])
      const report = await expectNoBreach(workflow, { input, simulate, maxSchedules: 60 })
      schedules += report.schedules
    }),
    { numRuns: 25, seed: 20_301, endOnFailure: false },
  )
  expect(schedules).toBeGreaterThan(1_000)
}, 180_000)
