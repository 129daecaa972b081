import { describe, expect, it } from "vitest"
import { beat, claim } from "../../src/store/internal/memoryClaims.js"
import { emptyData, find } from "../../src/store/internal/memoryData.js"
import { createRun } from "../../src/store/internal/memoryRuns.js"
import { newRun } from "./runs.js"

describe("the memory driver", () => {
  it("claims no run that is paused, whatever its status, until it is not (D7)", () => {
    const data = emptyData("id")
    const request = {
      namespace: newRun.namespace,
      workerId: "worker",
      claimToken: "token",
      workflows: [{ name: newRun.workflow, version: newRun.version }],
      runIds: null,
      limit: 10,
    }
    createRun(data, newRun, 1_000)
    const run = find(data, newRun.namespace, newRun.runId)!
    beat(data, "worker", 60_000, 1_000)
    for (const status of ["pending", "running", "sleeping", "waiting", "review"] as const) {
      run.row = { ...run.row, status, leaseOwner: null, wakeAt: 1_000, pausedAt: 1_000 }
      expect(claim(data, request, 2_000), status).toEqual([])
      expect(claim(data, { ...request, runIds: [newRun.runId] }, 2_000), status).toEqual([])
      run.row = { ...run.row, pausedAt: null }
      expect(claim(data, request, 2_000), status).toHaveLength(1)
    }
  })
})
