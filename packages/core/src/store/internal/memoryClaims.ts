/** Who owns which run (D6, D7, D8, D12, D15). */
import type { HeldLease } from "../../model/Records.js"
import type { ClaimRequest, RunRow } from "../CheckpointDriver.js"
import type { Data, StoredRun } from "./memoryData.js"
import { isAllowed, noteStart } from "./memoryLimits.js"

function* allRuns(data: Data): Generator<StoredRun> {
  for (const runs of data.namespaces.values()) yield* runs.values()
}

// D8: a lease that ends now has ended.
export const leaseEnded = (until: number | undefined, now: number): boolean => until === undefined || until <= now

/** Since when a run could have been claimed, or null if it cannot be claimed now (D7). */
const dueSince = (data: Data, row: RunRow, now: number): number | null => {
  if (row.pausedAt !== null) return null
  const until = row.leaseOwner === null ? undefined : data.workers.get(row.leaseOwner)
  // Whatever its status: a run that a live worker holds is that worker's.
  if (row.leaseOwner !== null && !leaseEnded(until, now)) return null
  switch (row.status) {
    case "pending":
      return row.updatedAt
    case "sleeping":
    case "waiting":
    case "review":
      return row.wakeAt !== null && row.wakeAt <= now ? row.wakeAt : null
    case "running":
      return until ?? row.updatedAt
    default:
      return null
  }
}

const takenOver = (data: Data, row: RunRow, request: ClaimRequest, now: number): RunRow => {
  // D15: an owner that is still written there never released the run.
  const unreleased = row.leaseOwner !== null
  return {
    ...row,
    status: "running",
    wakeAt: null,
    leaseOwner: request.workerId,
    fence: row.fence + 1,
    claimToken: request.claimToken,
    previousUntil: row.leaseOwner === null ? row.previousUntil : (data.workers.get(row.leaseOwner) ?? now),
    recoveries: unreleased ? row.recoveries + 1 : row.recoveries,
    interruptions: unreleased ? row.interruptions + 1 : row.interruptions,
    updatedAt: now,
  }
}

export const claim = (data: Data, request: ClaimRequest, now: number): ReadonlyArray<RunRow> => {
  // D8: who may have lost its own runs to others takes none from them.
  if (leaseEnded(data.workers.get(request.workerId), now)) return []
  const due: Array<{ readonly since: number; readonly run: StoredRun }> = []
  for (const run of data.namespaces.get(request.namespace)?.values() ?? []) {
    const { row } = run
    if (request.runIds !== null && !request.runIds.includes(row.runId)) continue
    if (!request.workflows.some(({ name, version }) => name === row.workflow && version === row.version)) continue
    const since = dueSince(data, row, now)
    if (since !== null) due.push({ since, run })
  }
  // The sort is stable: runs due since the same millisecond come in the order of their creation.
  due.sort((a, b) => b.run.row.priority - a.run.row.priority || a.since - b.since)
  const taken: Array<RunRow> = []
  for (const { run } of due) {
    // D35: what was taken just now counts.
    if (taken.length >= request.limit || !isAllowed(data, request, run.row, now)) continue
    noteStart(data, request, run.row, now)
    run.row = takenOver(data, run.row, request, now)
    taken.push({ ...run.row })
  }
  return taken
}

export const heldBy = (data: Data, workerId: string): ReadonlyArray<HeldLease> => {
  const leases: Array<HeldLease> = []
  for (const { row } of allRuns(data)) {
    if (row.leaseOwner !== workerId || row.claimToken === null) continue
    const { claimToken, fence, inbox, namespace, runId } = row
    leases.push({ namespace, runId, fence, claimToken, inbox })
  }
  return leases
}

export const beat = (data: Data, workerId: string, leaseMs: number, now: number) => {
  const until = now + Math.ceil(leaseMs)
  data.workers.set(workerId, until)
  return { until, now, leases: heldBy(data, workerId) }
}

export const releaseWorker = (data: Data, workerId: string, now: number): void => {
  for (const run of allRuns(data)) {
    if (run.row.leaseOwner !== workerId) continue
    // A run that sleeps goes on sleeping: only what was running is due at once.
    const running = run.row.status === "running"
    run.row = {
      ...run.row,
      status: running ? "pending" : run.row.status,
      leaseOwner: null,
      claimToken: null,
      // D12: an operation that was cut off may still be under way.
      previousUntil: running ? now : run.row.previousUntil,
      interruptions: running ? run.row.interruptions + 1 : run.row.interruptions,
      updatedAt: now,
    }
  }
  data.workers.delete(workerId)
}
