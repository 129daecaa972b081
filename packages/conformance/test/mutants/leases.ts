/** One fault each in clock and lease (D8), takeovers (D15) and progress (D16). */
import type {} from "@cairn/core"
import { Clock, Effect } from "effect"
import { editCommit, editRows, keyOf, mutant, shifted, viewRun, withWorkers, type Mutant } from "./wrap.js"

const clock: ReadonlyArray<Mutant> = [
  mutant("a worker whose lease has ended may claim", "D8: a worker whose own lease has ended", (driver) =>
    withWorkers(driver, (untils) => ({
      claim: (request) => {
        const until = untils.get(request.workerId)
        return Effect.flatMap(Clock.currentTimeMillis, (now) =>
          until !== undefined && until <= now
            ? Effect.zipRight(driver.beat(request.workerId, 1), driver.claim(request))
            : driver.claim(request),
        )
      },
    })),
  ),
  mutant("a lease has ended when it is gone, not when it is over", "D8: a worker's lease has ended", (driver) =>
    withWorkers(driver, (untils) => ({
      leaseHasEnded: (workerId) => Effect.succeed(!untils.has(workerId)),
    })),
  ),
  mutant("a worker is told of runs that nothing has reached", "D44: a worker is told", (driver) => ({
    loadReached: (workerId) => Effect.map(driver.beat(workerId, 600_000), ({ leases }) => leases),
  })),
  mutant("a worker is told of no run whose inbox is 1", "D44: a worker is told", (driver) => ({
    loadReached: (workerId) =>
      Effect.map(driver.loadReached(workerId), (leases) => leases.filter(({ inbox }) => inbox > 1)),
  })),
  mutant("to look at what has reached its runs is a heartbeat", "D44: what a worker is told", (driver) => ({
    loadReached: (workerId) => Effect.zipRight(driver.beat(workerId, 600_000), driver.loadReached(workerId)),
  })),
  mutant("a worker that was released has a lease", "D8: a worker's lease has ended", (driver) => {
    const beaten = new Set<string>()
    return {
      beat: (workerId, leaseMs) => {
        if (leaseMs > 1_000) beaten.add(workerId)
        return driver.beat(workerId, leaseMs)
      },
      leaseHasEnded: (workerId) => (beaten.has(workerId) ? Effect.succeed(false) : driver.leaseHasEnded(workerId)),
    }
  }),
  mutant("runs that are looked for together lose their places", "D14: of many runs that are looked for", (driver) => ({
    findRuns: (keys) => Effect.map(driver.findRuns(keys), (found) => found.filter((row) => row !== null)),
  })),
  mutant("runs are looked for in any namespace", "D14: of many runs that are looked for", (driver) => {
    const homes = new Map<string, string>()
    return {
      findRuns: (keys) => {
        for (const { namespace, runId } of keys) if (!homes.has(runId)) homes.set(runId, namespace)
        return driver.findRuns(keys.map(({ runId }) => ({ namespace: homes.get(runId)!, runId })))
      },
    }
  }),
  mutant("each look at the store's id makes a new one", "D26: the store's id", () => {
    let looks = 0
    return { storeId: Effect.sync(() => `store-${++looks}`) }
  }),
  mutant("a worker that never beat may claim", "D8: a worker that never beat", (driver) =>
    withWorkers(driver, (untils) => ({
      claim: (request) =>
        untils.has(request.workerId)
          ? driver.claim(request)
          : Effect.zipRight(driver.beat(request.workerId, 1_000), driver.claim(request)),
    })),
  ),
  mutant("a worker claims at the end of its lease (<= for <)", "D8: a worker claims in the last", (driver) => ({
    claim: (request) => shifted(driver.claim(request), -1),
  })),
  mutant("a beat prolongs every worker's lease", "D8: the beat of one worker", (driver) =>
    withWorkers(driver, (untils) => ({
      beat: (workerId, leaseMs) =>
        Effect.gen(function* () {
          for (const other of untils.keys()) yield* driver.beat(other, leaseMs)
          untils.set(workerId, 0)
          return yield* driver.beat(workerId, leaseMs)
        }),
    })),
  ),
  mutant("a beat never shortens a lease", "D8: the last beat says", (driver) =>
    withWorkers(driver, (untils) => ({
      beat: (workerId, leaseMs) =>
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const until = Math.max(now + leaseMs, untils.get(workerId) ?? 0)
          untils.set(workerId, until)
          return { ...(yield* driver.beat(workerId, until - now)), until: now + leaseMs }
        }),
    })),
  ),
  mutant("a beat starts no lease that has ended anew", "D8: an owner that beats again", (driver) =>
    withWorkers(driver, (untils) => ({
      beat: (workerId, leaseMs) =>
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const ended = (untils.get(workerId) ?? Infinity) <= now
          if (ended) yield* driver.releaseWorker(workerId)
          const beat = yield* driver.beat(workerId, leaseMs)
          untils.set(workerId, beat.until)
          return beat
        }),
    })),
  ),
  mutant("a lease lasts longer than it was asked for", "D8: every time that is stored", (driver) => ({
    beat: (workerId, leaseMs) => driver.beat(workerId, leaseMs * 2),
  })),
  mutant("a commit carries the time of another clock", "D8: every time that is stored", (driver) => ({
    commit: (batch) => shifted(driver.commit(batch), 3_600_000),
  })),
  mutant("a claim carries the time of another clock", "D8: every time that is stored", (driver) =>
    editRows(driver, (rows) => rows.map((row) => ({ ...row, updatedAt: row.updatedAt - 10 }))),
  ),
  mutant("a claim leaves updatedAt as it was", "D8: every time that is stored", (driver) =>
    editRows(driver, (rows) => rows.map((row) => ({ ...row, updatedAt: row.createdAt }))),
  ),
  mutant("times are seconds with a fraction", "D8: every time that is stored", (driver) =>
    viewRun(driver, (row) => ({ ...row, createdAt: row.createdAt + 0.5 })),
  ),
  mutant("a delay loses its part of a millisecond", "D8: parts of a millisecond", (driver) =>
    editCommit(driver, (commit) => ({
      ...commit,
      run: { ...commit.run, wakeInMs: commit.run.wakeInMs === null ? null : Math.floor(commit.run.wakeInMs) },
    })),
  ),
  mutant("a delay with a part of a millisecond is refused", "D8: parts of a millisecond", (driver) => ({
    commit: (batch) =>
      Effect.map(driver.commit(batch), (results) =>
        results.map((result, index) =>
          Number.isInteger(batch[index]?.run.wakeInMs ?? 0) ? result : { _tag: "Refused", run: null },
        ),
      ),
  })),
  mutant("a beat touches the rows of its runs", "D8: a beat touches no run row", (driver) =>
    withWorkers(driver, (untils) => ({
      ...viewRun(driver, (row) => ({
        ...row,
        updatedAt:
          row.leaseOwner === null
            ? row.updatedAt
            : Math.max(row.updatedAt, (untils.get(row.leaseOwner) ?? 0) - 600_000),
      })),
    })),
  ),
]

const recovering: ReadonlyArray<Mutant> = [
  mutant("a takeover forgets when the lease ended", "D15: a takeover keeps", (driver) =>
    viewRun(driver, (row) => ({ ...row, previousUntil: 0 })),
  ),
  mutant("a takeover keeps its own time", "D15: a takeover keeps", (driver) =>
    editRows(driver, (rows) => rows.map((row) => ({ ...row, previousUntil: row.recoveries > 0 ? row.updatedAt : 0 }))),
  ),
  mutant("a takeover does not count", "D15: a takeover keeps", (driver) =>
    viewRun(driver, (row) => ({ ...row, recoveries: 0 })),
  ),
  mutant("a takeover counts once only", "D15: a takeover keeps", (driver) =>
    viewRun(driver, (row) => ({ ...row, recoveries: Math.min(row.recoveries, 1) })),
  ),
  mutant("a released run counts as recovered", "D15: a run that was released", (driver) =>
    viewRun(driver, (row) => ({ ...row, recoveries: Math.max(0, row.fence - 1) })),
  ),
  mutant("a release forgets until when an earlier owner may have held", "D15: a commit that releases", (driver) => {
    const seen = new Map<string, number>()
    return editRows(driver, (rows) =>
      rows.map((row) => {
        const taken = row.recoveries > (seen.get(keyOf(row)) ?? 0)
        seen.set(keyOf(row), row.recoveries)
        return taken ? row : { ...row, previousUntil: 0 }
      }),
    )
  }),
  mutant("progress does not reset the recoveries", "D16: a commit with a step", (driver) => {
    const most = new Map<string, number>()
    return viewRun(driver, (row) => {
      const recoveries = Math.max(most.get(keyOf(row)) ?? 0, row.recoveries)
      most.set(keyOf(row), recoveries)
      return { ...row, recoveries }
    })
  }),
  mutant("any commit resets the recoveries", "D16: a commit with a step", (driver) => {
    const reset = new Set<string>()
    return {
      ...viewRun(driver, (row) => (reset.has(keyOf(row)) ? { ...row, recoveries: 0 } : row)),
      ...editCommit(driver, (commit) => {
        if (commit.steps.length === 0) reset.add(keyOf(commit.lease))
        return commit
      }),
    }
  }),
  mutant("a commit counts as a recovery", "D16: a run without recoveries", (driver) =>
    viewRun(driver, (row) => ({ ...row, recoveries: row.recoveries + (row.seq > 1 ? 1 : 0) })),
  ),
]

export const leaseMutants: ReadonlyArray<Mutant> = [...clock, ...recovering]
