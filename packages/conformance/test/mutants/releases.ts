/** One fault each in how a worker gives up its runs (D12), and how a parked run is taken up (D16). */
import type { CheckpointDriver, RunRow, StoreError } from "@cairn/core"
import { Effect } from "effect"
import { keyOf, mutant, viewRun, withWorkers, type Mutant } from "./wrap.js"

/** Changes what `releaseWorker` and `unpark` have made of a run; it is seen so until the next claim. */
const changing = (
  driver: CheckpointDriver,
  change: (before: RunRow, after: RunRow) => Partial<RunRow>,
): Partial<CheckpointDriver> => {
  const created: Array<RunRow> = []
  const changed = new Map<string, { readonly fence: number; readonly over: Partial<RunRow> }>()
  const rows = Effect.suspend(() =>
    Effect.map(
      Effect.forEach(created, ({ namespace, runId }) => driver.findRun(namespace, runId)),
      (found) => found.flatMap((row) => (row === null ? [] : [row])),
    ),
  )
  const around = <A>(call: Effect.Effect<A, StoreError>): Effect.Effect<A, StoreError> =>
    Effect.gen(function* () {
      const before = yield* rows
      const result = yield* call
      for (const [n, after] of (yield* rows).entries()) {
        const was = before[n]!
        if (after.leaseOwner === was.leaseOwner && after.status === was.status) continue
        changed.set(keyOf(after), { fence: after.fence, over: change(was, after) })
      }
      return result
    })
  const view = viewRun(driver, (row) => {
    const found = changed.get(keyOf(row))
    return found?.fence === row.fence ? { ...row, ...found.over } : row
  })
  return {
    ...view,
    createRun: (run) => Effect.tap(view.createRun!(run), (made) => Effect.sync(() => created.push(made.run))),
    releaseWorker: (workerId) => around(driver.releaseWorker(workerId)),
    unpark: (namespace, runId) => around(driver.unpark(namespace, runId)),
  }
}

const exactly = "D12: releaseWorker makes exactly"
const stamps = "D12: a releaseWorker stamps"
const held = "D12: a run that the worker held"

const releases: ReadonlyArray<Mutant> = [
  mutant("releaseWorker keeps the claim token", exactly, (driver) =>
    changing(driver, ({ claimToken }) => ({ claimToken })),
  ),
  mutant("releaseWorker keeps the owner", exactly, (driver) => changing(driver, ({ leaseOwner }) => ({ leaseOwner }))),
  mutant("releaseWorker leaves runs running", exactly, (driver) => changing(driver, ({ status }) => ({ status }))),
  mutant("releaseWorker keeps previousUntil", stamps, (driver) =>
    changing(driver, ({ previousUntil }) => ({ previousUntil })),
  ),
  mutant("releaseWorker forgets previousUntil", stamps, (driver) => changing(driver, () => ({ previousUntil: 0 }))),
  mutant("releaseWorker keeps the previousUntil of an earlier takeover", stamps, (driver) =>
    changing(driver, ({ previousUntil }) => (previousUntil > 0 ? { previousUntil } : {})),
  ),
  mutant("releaseWorker stamps the end of the lease that it ends", stamps, (driver) =>
    withWorkers(driver, (untils) =>
      changing(driver, ({ leaseOwner }, { previousUntil }) => ({
        previousUntil: untils.get(leaseOwner ?? "") ?? previousUntil,
      })),
    ),
  ),
  mutant("releaseWorker stamps sleeping runs too", held, (driver) =>
    changing(driver, (_, { previousUntil, status, updatedAt }) => ({
      previousUntil: status === "sleeping" ? updatedAt : previousUntil,
    })),
  ),
  mutant("releaseWorker wakes sleeping runs", held, (driver) =>
    changing(driver, ({ status }) => (status === "sleeping" ? { status: "pending" } : {})),
  ),
  mutant("releaseWorker drops the wake time", held, (driver) =>
    changing(driver, ({ status }) => (status === "sleeping" ? { wakeAt: null } : {})),
  ),
]

const unparks: ReadonlyArray<Mutant> = [
  mutant("unpark keeps the recoveries", "D16: an unpark", (driver) =>
    changing(driver, ({ recoveries }) => ({ recoveries })),
  ),
  mutant("unpark keeps the reason", "D16: an unpark", (driver) => changing(driver, ({ parked }) => ({ parked }))),
  mutant("unpark forgets until when an earlier owner may have held", "D16: an unpark", (driver) => {
    const unparked = new Set<string>()
    return {
      ...viewRun(driver, (row) => (unparked.has(keyOf(row)) ? { ...row, previousUntil: 0 } : row)),
      unpark: (namespace, runId) => {
        unparked.add(keyOf({ namespace, runId }))
        return driver.unpark(namespace, runId)
      },
    }
  }),
]

export const releaseMutants: ReadonlyArray<Mutant> = [...releases, ...unparks]
