/** One fault each in loads (D11), releases (D12), numbers (D13) and absence (D14). */
import type { RunRow } from "@cairn/core"
import { Effect } from "effect"
import { editCommit, keyOf, mutant, viewLoad, viewRun, type Mutant } from "./wrap.js"

const loads: ReadonlyArray<Mutant> = [
  mutant("steps come in order of their paths", "D11: steps come in order", (driver) =>
    viewLoad(driver, (rows) => ({ ...rows, steps: [...rows.steps].sort((a, b) => (a.path < b.path ? -1 : 1)) })),
  ),
  mutant("steps come in order of seq as text", "D11: steps come in order", (driver) =>
    viewLoad(driver, (rows) => ({
      ...rows,
      steps: [...rows.steps].sort((a, b) => (String(a.seq) < String(b.seq) ? -1 : 1)),
    })),
  ),
  mutant("steps come newest first", "D11: steps come in order", (driver) =>
    viewLoad(driver, (rows) => ({ ...rows, steps: [...rows.steps].reverse() })),
  ),
  mutant("findRun gives the stored row itself", "D11: nobody changes what is stored", (driver) => {
    const kept = new Map<string, RunRow>()
    return viewRun(driver, (row) => {
      const key = `${keyOf(row)} ${row.seq} ${row.fence}`
      const stored = kept.get(key) ?? row
      kept.set(key, stored)
      return stored
    })
  }),
]

const aliases: ReadonlyArray<Mutant> = [
  mutant("createRun gives the stored row itself", "D11: nobody changes what is stored", (driver) => {
    const kept = new Map<string, RunRow>()
    return {
      createRun: (run) =>
        Effect.tap(driver.createRun(run), (made) => Effect.sync(() => kept.set(keyOf(made.run), made.run))),
      findRun: (namespace, runId) =>
        Effect.map(driver.findRun(namespace, runId), (row) => {
          const made = kept.get(keyOf({ namespace, runId }))
          return made === undefined || made.fence !== row?.fence ? row : made
        }),
    }
  }),
  mutant("claim gives the stored row itself", "D11: nobody changes what is stored", (driver) => {
    const kept = new Map<string, RunRow>()
    return {
      claim: (request) =>
        Effect.tap(driver.claim(request), (rows) =>
          Effect.sync(() => {
            for (const row of rows) kept.set(keyOf(row), row)
          }),
        ),
      findRun: (namespace, runId) =>
        Effect.map(driver.findRun(namespace, runId), (row) => {
          const taken = kept.get(keyOf({ namespace, runId }))
          return taken === undefined || taken.seq !== row?.seq ? row : taken
        }),
    }
  }),
]

const workers: ReadonlyArray<Mutant> = [
  mutant("releaseWorker releases every worker", "D12: releaseWorker makes exactly", (driver) => {
    const known = new Set<string>()
    return {
      beat: (workerId, leaseMs) => {
        known.add(workerId)
        return driver.beat(workerId, leaseMs)
      },
      releaseWorker: () => Effect.forEach(known, (worker) => driver.releaseWorker(worker), { discard: true }),
    }
  }),
  mutant("releaseWorker gives up nothing", "D12: releaseWorker makes exactly", () => ({
    releaseWorker: () => Effect.void,
  })),
  mutant("releaseWorker raises the fence", "D12: releaseWorker makes exactly", (driver) => {
    const released = new Map<string, number>()
    return {
      ...viewRun(driver, (row) => {
        if (row.leaseOwner !== null) released.set(keyOf(row), row.fence)
        return row.leaseOwner === null && row.fence === released.get(keyOf(row))
          ? { ...row, fence: row.fence + 1 }
          : row
      }),
    }
  }),
  mutant("releaseWorker leaves the lease running", "D12: a released worker holds nothing", (driver) => ({
    releaseWorker: (workerId) =>
      Effect.asVoid(Effect.zipRight(driver.releaseWorker(workerId), driver.beat(workerId, 1_000))),
  })),
  mutant("beat forgets leases", "D12: a beat gives exactly", (driver) => ({
    beat: (workerId, leaseMs) =>
      Effect.map(driver.beat(workerId, leaseMs), (beat) => ({ ...beat, leases: beat.leases.slice(0, 1) })),
  })),
  mutant("beat gives leases of every worker", "D12: a beat gives exactly", (driver) => {
    const known = new Set<string>()
    return {
      beat: (workerId, leaseMs) => {
        known.add(workerId)
        return Effect.flatMap(driver.beat(workerId, leaseMs), (beat) =>
          Effect.map(
            Effect.forEach(known, (worker) => driver.beat(worker, leaseMs)),
            (all) => ({ ...beat, leases: all.flatMap(({ leases }) => leases) }),
          ),
        )
      },
    }
  }),
  mutant("beat gives leases that were lost", "D12: a worker whose run was taken over", (driver) => {
    const ever = new Map<string, Array<RunRow>>()
    return {
      claim: (request) =>
        Effect.tap(driver.claim(request), (rows) =>
          Effect.sync(() => ever.set(request.workerId, [...(ever.get(request.workerId) ?? []), ...rows])),
        ),
      beat: (workerId, leaseMs) =>
        Effect.map(driver.beat(workerId, leaseMs), (beat) => ({
          ...beat,
          leases: (ever.get(workerId) ?? []).map(({ namespace, runId, fence, claimToken, inbox }) => ({
            namespace,
            runId,
            fence,
            claimToken: claimToken ?? "",
            inbox,
          })),
        })),
    }
  }),
]

const values: ReadonlyArray<Mutant> = [
  mutant("integers have 32 bits", "D13: integers come back exact", (driver) =>
    viewRun(driver, (row) => ({ ...row, version: row.version | 0 })),
  ),
  mutant("durations are floats of 32 bits", "D13: integers come back exact", (driver) =>
    viewLoad(driver, (rows) => ({
      ...rows,
      steps: rows.steps.map((one) => ({ ...one, durationMs: Math.fround(one.durationMs) })),
    })),
  ),
  mutant("the JSON text null becomes null", "D14: null, the JSON text null", (driver) =>
    viewLoad(driver, (rows) => ({
      ...rows,
      steps: rows.steps.map((one) => ({ ...one, result: one.result === "null" ? null : one.result })),
    })),
  ),
  mutant("an empty cursor becomes null", "D14: null, the JSON text null", (driver) =>
    viewRun(driver, (row) => ({ ...row, cursor: row.cursor || null })),
  ),
  mutant("a retry at once counts as none", "D14: null, the JSON text null", (driver) =>
    editCommit(driver, (commit) => ({
      ...commit,
      attempts: commit.attempts.map((one) => ({ ...one, retryInMs: one.retryInMs || null })),
    })),
  ),
  mutant("findEffect gives another generation for a missing one", "D14: what does not exist", (driver) => ({
    findEffect: (key) => driver.findEffect({ ...key, generation: 0 }),
  })),
  mutant("asking for a run creates it", "D14: what does not exist", (driver) => ({
    findRun: (namespace, runId) =>
      Effect.flatMap(driver.findRun(namespace, runId), (row) =>
        row !== null
          ? Effect.succeed(row)
          : Effect.map(
              driver.createRun({
                namespace,
                runId,
                workflow: "w",
                version: 1,
                planHash: "",
                input: null,
                inputHash: "",
                parentRunId: null,
                parentPath: null,
                flowKey: null,
                priority: 0,
                wakeAt: null,
              }),
              () => null,
            ),
      ),
  })),
]

export const rowMutants: ReadonlyArray<Mutant> = [...loads, ...aliases, ...workers, ...values]
