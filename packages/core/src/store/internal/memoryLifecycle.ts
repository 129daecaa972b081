/** What people do with runs: list them, pause them, try them again, fork them (D30 to D34). */
import { finalStatuses } from "../../model/Records.js"
import type {
  ForkRow,
  ListedRow,
  PauseResult,
  PerformedRow,
  ReopenRow,
  ReviewRow,
  ReviewsPage,
  RunRow,
  RunsPage,
} from "../CheckpointDriver.js"
import { childOf, find, type Data, type StoredRun } from "./memoryData.js"
import { createRun } from "./memoryRuns.js"

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

const newestFirst = (a: Pick<RunRow, "createdAt" | "runId">, b: Pick<RunRow, "createdAt" | "runId">): number =>
  b.createdAt - a.createdAt || byText(b.runId, a.runId)

const fits = (row: RunRow, { createdBefore, createdFrom, parentRunId, statuses, workflow }: RunsPage): boolean =>
  (workflow === null || row.workflow === workflow) &&
  (statuses === null || statuses.includes(row.status)) &&
  (parentRunId === null || row.parentRunId === parentRunId) &&
  (createdFrom === null || row.createdAt >= createdFrom) &&
  (createdBefore === null || row.createdAt < createdBefore)

/** D30 */
export const listRuns = (data: Data, page: RunsPage): ReadonlyArray<ListedRow> =>
  [...(data.namespaces.get(page.namespace)?.values() ?? [])]
    .flatMap(({ row }) => {
      if (!fits(row, page) || (page.after !== null && newestFirst(row, page.after) <= 0)) return []
      const { input: _, output: __, ...listed } = row
      return [listed]
    })
    .sort(newestFirst)
    .slice(0, Math.max(0, page.limit))

type Opened = Pick<ReviewRow, "openedAt" | "runId" | "path">

const oldestFirst = (a: Opened, b: Opened): number =>
  a.openedAt - b.openedAt || byText(a.runId, b.runId) || byText(a.path, b.path)

const reviewsOf = ({ row, waits }: StoredRun, now: number): ReadonlyArray<ReviewRow> =>
  [...waits.values()].flatMap(({ data, kind, name, openedAt, path, state, wakeAt }) => {
    if (kind !== "review" || state !== "open" || (wakeAt !== null && wakeAt <= now)) return []
    const { namespace, runId, version, workflow } = row
    return [{ namespace, runId, workflow, version, path, name, openedAt, wakeAt, data }]
  })

/** D31 */
export const listReviews = (data: Data, { after, limit, namespace }: ReviewsPage, now: number) =>
  [...(data.namespaces.get(namespace)?.values() ?? [])]
    .flatMap((run) => reviewsOf(run, now))
    .filter((review) => after === null || oldestFirst(review, after) > 0)
    .sort(oldestFirst)
    .slice(0, Math.max(0, limit))

/** D32 */
export const setPaused = (data: Data, namespace: string, runId: string, paused: boolean, now: number): PauseResult => {
  const run = find(data, namespace, runId)
  if (run === undefined) return "Missing"
  const { row } = run
  if (finalStatuses.has(row.status) || (paused && row.cancelAt !== null)) return "Ended"
  if ((row.pausedAt !== null) === paused) return "Known"
  run.row = paused ? { ...row, pausedAt: now, inbox: row.inbox + 1 } : { ...row, pausedAt: null }
  return "Done"
}

/** D33 */
export const reopenRun = (data: Data, { attempt, namespace, path, runId, seq }: ReopenRow, now: number): boolean => {
  const run = find(data, namespace, runId)
  if (run === undefined || run.row.status !== "failed" || run.row.seq !== seq) return false
  run.row = {
    ...run.row,
    status: "pending",
    failure: null,
    output: null,
    wakeAt: null,
    cancelAt: null,
    cancelReason: null,
    pausedAt: null,
    recoveries: 0,
    updatedAt: now,
  }
  childOf(run.attempts, path).set(attempt.attempt, { ...attempt, path, retryAt: null, endedAt: now, seq: seq + 1 })
  return true
}

/** D34 */
export const forkRun = (data: Data, fork: ForkRow, now: number) => {
  const source = find(data, fork.run.namespace, fork.from)
  if (source === undefined) return null
  const result = createRun(data, { ...fork.run, planHash: source.row.planHash }, now)
  if (!result.created) return result
  const run = find(data, fork.run.namespace, fork.run.runId)!
  let seq = 1
  for (const step of source.steps.values()) {
    if (step.seq >= fork.beforeSeq) continue
    run.steps.set(step.path, { ...step, committedAt: now })
    seq = Math.max(seq, step.seq)
  }
  for (const path of fork.effects) {
    for (const effect of source.effects.get(path)?.values() ?? []) {
      // Nothing of the fork has accounted for an earlier generation.
      if (effect.state === "succeeded") childOf(run.effects, path).set(0, { ...effect, generation: 0 })
    }
  }
  run.row = { ...run.row, seq, forkedFrom: fork.from }
  return { created: true, run: { ...run.row } }
}

/** D34 */
export const loadPerformed = (data: Data, namespace: string, runId: string): ReadonlyArray<PerformedRow> | null => {
  const run = find(data, namespace, runId)
  if (run === undefined) return null
  const rows: Array<PerformedRow> = []
  for (const { effect, path, seq } of run.steps.values()) {
    if (effect !== "transaction" && effect !== "child") continue
    rows.push({ path, seq, kind: effect, operation: null, idempotencyKey: null, isKnown: true })
  }
  for (const [path, effects] of run.effects) {
    const seq = run.steps.get(path)?.seq ?? null
    for (const { idempotencyKey, operation, state } of effects.values()) {
      if (state !== "intended" && state !== "succeeded") continue
      rows.push({ path, seq, kind: "operation", operation, idempotencyKey, isKnown: state === "succeeded" })
    }
  }
  return rows.sort((a, b) => byText(a.path, b.path))
}
