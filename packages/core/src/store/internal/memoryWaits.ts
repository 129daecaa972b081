/** What runs wait for, what a person decides, and the parents of runs that end (D27 to D29). */
import { finalStatuses, type Lease, type WaitRecord } from "../../model/Records.js"
import type { CommitRows, DecideResult, DecisionRow, LoadedWaits, WaitWrite } from "../CheckpointDriver.js"
import { find, isHeldUnder, withoutSeq, type Data, type StoredRun } from "./memoryData.js"
import { reached } from "./memoryInbox.js"

const wakeAt = (wake: WaitWrite["wake"], now: number): number | null =>
  wake === null ? null : Math.ceil("at" in wake ? wake.at : now + wake.inMs)

/** D27 */
export const writeWaits = (run: StoredRun, commit: CommitRows, now: number): void => {
  const { closes, waits } = commit
  for (const path of closes) run.waits.delete(path)
  for (const { data, kind, name, path, seq = commit.seq, wake } of waits) {
    const opened = { path, kind, name, wakeAt: wakeAt(wake, now), openedAt: now, data, seq } as const
    run.waits.set(path, { ...opened, state: "open", decision: null, decidedAt: null })
  }
}

/** D29 */
export const wakeParent = (data: Data, { lease, wakesParent }: CommitRows, now: number): void => {
  const parent = wakesParent === null ? undefined : find(data, lease.namespace, wakesParent)
  if (parent === undefined || finalStatuses.has(parent.row.status)) return
  parent.row = reached(parent.row, now)
}

export const loadWaits = (data: Data, namespace: string, runId: string): LoadedWaits | null => {
  const run = find(data, namespace, runId)
  if (run === undefined) return null
  const waits = [...run.waits.values()].sort((a, b) => (a.path < b.path ? -1 : 1))
  return { inbox: run.row.inbox, waits: waits.map(withoutSeq) }
}

/** D28 */
export const decideWait = (data: Data, given: DecisionRow, now: number): DecideResult => {
  const run = find(data, given.namespace, given.runId)
  if (run === undefined) return { _tag: "Missing" }
  const wait = run.waits.get(given.path)
  if (wait === undefined || wait.kind !== "review" || wait.name !== given.name) return { _tag: "Closed" }
  if (wait.decision !== null && wait.decidedAt !== null) {
    return { _tag: "AlreadyDecided", decision: wait.decision, at: wait.decidedAt }
  }
  const isOver = wait.state !== "open" || (wait.wakeAt !== null && wait.wakeAt <= now)
  if (isOver || finalStatuses.has(run.row.status)) return { _tag: "Closed" }
  run.waits.set(given.path, { ...wait, state: "decided", decision: given.decision, decidedAt: now })
  run.row = reached(run.row, now)
  return { _tag: "Decided", at: now }
}

/** D28 */
export const expireWait = (data: Data, lease: Lease, path: string): WaitRecord | null => {
  const run = find(data, lease.namespace, lease.runId)
  const wait = run?.waits.get(path)
  if (run === undefined || wait === undefined || !isHeldUnder(run.row, lease)) return null
  const stands = wait.state === "open" ? { ...wait, state: "expired" as const } : wait
  run.waits.set(path, stands)
  return withoutSeq(stands)
}
