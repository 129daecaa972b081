/** A run goes back to what it was before a commit (D42). */
import type { RewindResult, RewindRow } from "../RewindRows.js"
import { find, isHeldUnder, type Data, type StoredRun } from "./memoryData.js"

const hasPerformed = (data: Data, run: StoredRun, toSeq: number): boolean => {
  const isBefore = (path: string | null): boolean => path !== null && (run.steps.get(path)?.seq ?? toSeq) < toSeq
  for (const { effect, idempotencyKey, seq } of run.steps.values()) {
    if (seq >= toSeq && (idempotencyKey !== null || effect === "transaction" || effect === "child")) return true
  }
  for (const [path, generations] of run.effects) {
    if (isBefore(path)) continue
    for (const { state } of generations.values()) if (state === "intended" || state === "succeeded") return true
  }
  for (const { row } of data.namespaces.get(run.row.namespace)?.values() ?? []) {
    if (row.parentRunId === run.row.runId && !isBefore(row.parentPath)) return true
  }
  return false
}

/** What is gone leaves nothing behind but what effects are accounted for by. */
const undo = (run: StoredRun, toSeq: number): void => {
  const gone = new Set<string>()
  for (const { effect, path, seq } of [...run.steps.values()]) {
    if (seq < toSeq) continue
    gone.add(path)
    run.steps.delete(path)
    if (effect !== "signal") continue
    for (const signal of run.signals.values()) if (signal.consumedBy === path) signal.consumedBy = null
  }
  for (const [path, attempts] of run.attempts) {
    for (const [number, { kind, seq }] of [...attempts]) {
      if (kind !== "refused" && (seq >= toSeq || gone.has(path))) attempts.delete(number)
    }
  }
  for (const { path, seq } of [...run.waits.values()]) if (seq >= toSeq) run.waits.delete(path)
}

export const rewindRun = (
  data: Data,
  { base, cursor, lease, mark, seq, toSeq }: RewindRow,
  now: number,
): RewindResult => {
  const run = find(data, lease.namespace, lease.runId)
  if (run === undefined) return { _tag: "Refused", run: null }
  if (!isHeldUnder(run.row, lease) || run.row.seq !== base || seq <= base) {
    const { claimToken, fence, seq: stands, status, updatedAt } = run.row
    return { _tag: "Refused", run: { seq: stands, fence, claimToken, status, updatedAt } }
  }
  if (hasPerformed(data, run, toSeq)) return { _tag: "Performed" }
  undo(run, toSeq)
  run.steps.set(mark.path, { ...mark, committedAt: now })
  run.row = {
    ...run.row,
    ...{ status: "running", seq, cursor, output: null, failure: null, parked: null, wakeAt: null },
    updatedAt: now,
  }
  return { _tag: "Committed", at: now, status: "running" }
}
