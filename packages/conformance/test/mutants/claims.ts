/** One fault each in claiming: who gets a run (D6), and which (D7). */
import type { CheckpointDriver, ClaimRequest, RunRow } from "@cairn/core"
import { Clock, Effect } from "effect"
import { editCommit, editRows, keyOf, mutant, shifted, viewRun, withWorkers, type Mutant } from "./wrap.js"

/** Changes what is asked for, knowing which runs were ever created. */
const editClaim = (
  driver: CheckpointDriver,
  edit: (request: ClaimRequest, created: ReadonlyArray<RunRow>) => ClaimRequest,
): Partial<CheckpointDriver> => {
  const created: Array<RunRow> = []
  return {
    createRun: (run) =>
      Effect.tap(driver.createRun(run), (made) => Effect.sync(() => (made.created ? created.push(made.run) : 0))),
    claim: (request) => driver.claim(edit(request, created)),
  }
}

const who: ReadonlyArray<Mutant> = [
  mutant("two claimers get one run", "D6: of twenty claimers", (driver) => {
    let last: ReadonlyArray<RunRow> = []
    return {
      claim: (request) =>
        Effect.map(driver.claim(request), (rows) => {
          if (rows.length === 0 && last.length > 0) {
            const again = last
            last = []
            return again
          }
          last = rows
          return rows
        }),
    }
  }),
  mutant("a claim gives what it wanted, not what it got", "D6: twenty claimers of fifty", (driver) => ({
    claim: (request) =>
      Effect.gen(function* () {
        // Looks, lets others in, then takes: the rows of whoever was faster come back as its own.
        const rows = yield* driver.claim(request)
        yield* Effect.yieldNow()
        return rows.map((row) => ({ ...row, claimToken: "token", leaseOwner: request.workerId }))
      }),
  })),
  mutant("a claim does not raise the fence", "D6: each claim raises", (driver) =>
    viewRun(driver, (row) => ({ ...row, fence: Math.min(row.fence, 1) })),
  ),
  mutant("a claim raises the fence by two", "D6: each claim raises", (driver) =>
    viewRun(driver, (row) => ({ ...row, fence: row.fence * 2 })),
  ),
  mutant("a claim keeps an old token", "D6: each claim raises", (driver) =>
    editClaim(driver, (request) => ({ ...request, claimToken: "token" })),
  ),
  mutant("a claim gives the row as it was before", "D6: each claim raises", (driver) =>
    editRows(driver, (rows) => rows.map((row) => ({ ...row, status: "pending" as const }))),
  ),
  mutant("a claim keeps the wake time", "D7: a sleeping, waiting or reviewed run", (driver) =>
    editRows(driver, (rows) => rows.map((row) => ({ ...row, wakeAt: row.updatedAt }))),
  ),
  mutant("a claim ignores its limit", "D6: at most so many runs", (driver) =>
    editClaim(driver, (request) => ({ ...request, limit: 100 })),
  ),
  mutant("a claim takes the shortest due first", "D6: at most so many runs", (driver) => ({
    claim: (request) => Effect.map(driver.claim({ ...request, limit: request.limit }), (rows) => [...rows].reverse()),
  })),
  mutant("a claim gives runs in order of their ids", "D6: at most so many runs", (driver) =>
    editRows(driver, (rows) => [...rows].sort((a, b) => (a.runId < b.runId ? -1 : 1))),
  ),
]

const priority = "D7: of what is due a higher priority"

const which: ReadonlyArray<Mutant> = [
  mutant("a claim ignores the version", "D7: only the workflows, versions", (driver) =>
    editClaim(driver, (request, created) => ({
      ...request,
      workflows: request.workflows.flatMap(({ name }) =>
        created.filter(({ workflow }) => workflow === name).map(({ version }) => ({ name, version })),
      ),
    })),
  ),
  mutant("a claim pairs any name asked for with any version", "D7: only the workflows, versions", (driver) =>
    editClaim(driver, (request) => ({
      ...request,
      workflows: request.workflows.flatMap(({ name }) => request.workflows.map(({ version }) => ({ name, version }))),
    })),
  ),
  mutant("a claim ignores the workflow", "D7: only the workflows, versions", (driver) =>
    editClaim(driver, (request, created) => ({
      ...request,
      workflows: created.map(({ workflow, version }) => ({ name: workflow, version })),
    })),
  ),
  mutant("a claim takes no workflows for any workflow", "D7: only the workflows, versions", (driver) =>
    editClaim(driver, (request, created) =>
      request.workflows.length > 0
        ? request
        : { ...request, workflows: created.map(({ workflow, version }) => ({ name: workflow, version })) },
    ),
  ),
  mutant("a claim takes no run ids for any run", "D7: only the workflows, versions", (driver) =>
    editClaim(driver, (request) => ({ ...request, runIds: request.runIds?.length === 0 ? null : request.runIds })),
  ),
  mutant("a claim ignores the run ids", "D7: only the workflows, versions", (driver) =>
    editClaim(driver, (request) => ({ ...request, runIds: null })),
  ),
  mutant("a claim ignores the namespace", "D7: a claim takes runs of its own namespace", (driver) => {
    const namespaces = new Set<string>()
    return {
      createRun: (run) => {
        namespaces.add(run.namespace)
        return driver.createRun(run)
      },
      claim: (request) =>
        Effect.map(
          Effect.forEach(new Set([request.namespace, ...namespaces]), (namespace) =>
            driver.claim({ ...request, namespace }),
          ),
          (rows) => rows.flat(),
        ),
    }
  }),
  mutant("a sleeping run is due at once", "D7: a sleeping, waiting or reviewed run", (driver) =>
    editCommit(driver, (commit) => ({
      ...commit,
      run: { ...commit.run, wakeInMs: commit.run.wakeInMs === null ? null : -commit.run.wakeInMs },
    })),
  ),
  mutant("a waiting run without a time is due at once", "D7: a sleeping, waiting or reviewed run", (driver) =>
    editCommit(driver, (commit) => ({
      ...commit,
      run: {
        ...commit.run,
        wakeInMs: commit.run.status === "waiting" ? (commit.run.wakeInMs ?? 0) : commit.run.wakeInMs,
      },
    })),
  ),
  mutant("a sleeping run is due one millisecond late (< for <=)", "D7: a sleeping run is due at", (driver) => ({
    claim: (request) => shifted(driver.claim(request), -1),
  })),
  mutant("a live owner is robbed", "D7: the run of a live owner", (driver) =>
    withWorkers(driver, (untils) => ({
      claim: (request) =>
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          for (const [worker, until] of untils) {
            if (worker === request.workerId) continue
            yield* driver.releaseWorker(worker)
            yield* driver.beat(worker, until - now)
          }
          return yield* driver.claim(request)
        }),
    })),
  ),
  mutant("an owner is given its own running runs again", "D7: the run of a live owner", (driver) =>
    withWorkers(driver, (untils) => ({
      claim: (request) =>
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const until = untils.get(request.workerId) ?? 0
          if (until > now) {
            yield* driver.releaseWorker(request.workerId)
            yield* driver.beat(request.workerId, until - now)
          }
          return yield* driver.claim(request)
        }),
    })),
  ),
  mutant("a lease holds one millisecond too long (<= for <)", "D7: a lease holds until its last", (driver) => ({
    claim: (request) => shifted(driver.claim(request), -1),
  })),
  mutant("a lease ends one millisecond early", "D7: a lease holds until its last", (driver) => ({
    claim: (request) => shifted(driver.claim(request), 1),
  })),
  mutant("an abandoned run is never taken over", "D7: a run whose owner's lease has ended", (driver) =>
    editRows(driver, (rows) => rows.filter(({ fence }) => fence === 1)),
  ),
  mutant("a beat does not prolong a lease that still lasts", "D7: an owner that beats in time", (driver) =>
    withWorkers(driver, (untils) => ({
      beat: (workerId, leaseMs) =>
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const until = untils.get(workerId) ?? 0
          const beat = yield* driver.beat(workerId, until > now ? until - now : leaseMs)
          untils.set(workerId, beat.until)
          return { ...beat, until: now + leaseMs }
        }),
    })),
  ),
  mutant("priorities are ignored", priority, (driver) => ({
    createRun: (run) => driver.createRun({ ...run, priority: 0 }),
  })),
  mutant("a lower priority comes first", priority, (driver) => ({
    createRun: (run) => driver.createRun({ ...run, priority: -run.priority }),
  })),
  mutant("a priority counts only among runs that are asked for by id", priority, (driver) => ({
    claim: (request) =>
      request.runIds !== null
        ? driver.claim(request)
        : Effect.map(driver.claim(request), (rows) => [...rows].sort((a, b) => a.createdAt - b.createdAt)),
  })),
  mutant("priorities below zero are none", priority, (driver) => ({
    createRun: (run) => driver.createRun({ ...run, priority: Math.max(0, run.priority) }),
  })),
  mutant("a run in review is never due", "D7: a sleeping, waiting or reviewed run", (driver) =>
    editCommit(driver, (commit) => ({
      ...commit,
      run: { ...commit.run, wakeInMs: commit.run.status === "review" ? null : commit.run.wakeInMs },
    })),
  ),
  mutant("a failed run is due again", "D7: a final or parked run", (driver) =>
    editCommit(driver, (commit) => ({
      ...commit,
      run: { ...commit.run, status: commit.run.status === "failed" ? "pending" : commit.run.status },
    })),
  ),
  mutant("a final run is taken over when its owner's lease ends", "D7: a final or parked run", (driver) =>
    editCommit(driver, ({ run, ...commit }) => ({
      ...commit,
      run: { ...run, status: run.status === "canceled" && !run.release ? "running" : run.status },
    })),
  ),
  mutant("unpark takes up any run", "D7: unpark makes a parked run", (driver) => ({
    unpark: (namespace, runId) =>
      Effect.flatMap(driver.unpark(namespace, runId), (done) =>
        done ? Effect.succeed(true) : Effect.map(driver.findRun(namespace, runId), (row) => row !== null),
      ),
  })),
  mutant("unpark ignores the namespace", "D7: unpark makes a parked run", (driver) => {
    const namespaces = new Set<string>()
    return {
      createRun: (run) => {
        namespaces.add(run.namespace)
        return driver.createRun(run)
      },
      unpark: (_, runId) =>
        Effect.map(
          Effect.forEach(namespaces, (namespace) => driver.unpark(namespace, runId)),
          (done) => done.includes(true),
        ),
    }
  }),
  mutant("unpark leaves the reason there", "D7: unpark makes a parked run", (driver) => {
    const reasons = new Map<string, string>()
    return {
      ...viewRun(driver, (row) => ({ ...row, parked: row.parked ?? reasons.get(keyOf(row)) ?? null })),
      ...editCommit(driver, (commit) => {
        if (commit.run.parked !== null) reasons.set(keyOf(commit.lease), commit.run.parked)
        return commit
      }),
    }
  }),
]

export const claimMutants: ReadonlyArray<Mutant> = [...who, ...which]
