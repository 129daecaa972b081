/** Runs as they are made and read (D1, D11, D21). */
import type { Lease, StepRecord } from "../../model/Records.js"
import type { LoadedRows, NewRunRow, OpenRows, ParkedPage, ParkedRow, RunRow, StepsQuery } from "../CheckpointDriver.js"
import { childOf, find, isHeldUnder, withoutSeq, type Data } from "./memoryData.js"

const newRow = (run: NewRunRow, now: number): RunRow => ({
  namespace: run.namespace,
  runId: run.runId,
  workflow: run.workflow,
  version: run.version,
  planHash: run.planHash,
  status: run.wakeAt === null ? "pending" : "sleeping",
  seq: 0,
  input: run.input,
  inputHash: run.inputHash,
  output: null,
  failure: null,
  parked: null,
  cursor: null,
  leaseOwner: null,
  fence: 0,
  claimToken: null,
  previousUntil: 0,
  wakeAt: run.wakeAt,
  inbox: 0,
  recoveries: 0,
  interruptions: 0,
  cancelAt: null,
  cancelReason: null,
  pausedAt: null,
  parentRunId: run.parentRunId,
  parentPath: run.parentPath,
  flowKey: run.flowKey,
  forkedFrom: null,
  priority: run.priority,
  createdAt: now,
  updatedAt: now,
})

export const createRun = (
  data: Data,
  run: NewRunRow,
  now: number,
): { readonly created: boolean; readonly run: RunRow } => {
  const runs = childOf(data.namespaces, run.namespace)
  const existing = runs.get(run.runId)
  // D1: an existing row is not changed.
  if (existing !== undefined) return { created: false, run: { ...existing.row } }
  const row = newRow(run, now)
  runs.set(run.runId, {
    row,
    steps: new Map(),
    effects: new Map(),
    attempts: new Map(),
    signals: new Map(),
    waits: new Map(),
  })
  return { created: true, run: { ...row } }
}

/** D1, D3: of a child, while its parent is held under that lease. */
export const createChild = (data: Data, child: NewRunRow, parent: Lease, now: number) => {
  const holder = find(data, parent.namespace, parent.runId)
  const isHeld = holder !== undefined && isHeldUnder(holder.row, parent)
  return isHeld || find(data, child.namespace, child.runId) !== undefined ? createRun(data, child, now) : null
}

type Place = Pick<StepRecord, "seq" | "path">

const inOrder = (a: Place, b: Place): number => a.seq - b.seq || (a.path < b.path ? -1 : a.path > b.path ? 1 : 0)

export const load = (data: Data, namespace: string, runId: string): LoadedRows | null => {
  const run = find(data, namespace, runId)
  if (run === undefined) return null
  const steps = [...run.steps.values()].filter(({ scope }) => scope === "").sort(inOrder)
  return { run: { ...run.row }, steps: steps.map((step) => ({ ...step })) }
}

/** The steps that are asked for (D11). */
export const loadSteps = (data: Data, query: StepsQuery): ReadonlyArray<StepRecord> => {
  const { after, limit, scopes } = query
  const order = query.newestFirst ? (a: Place, b: Place) => inOrder(b, a) : inOrder
  return [...(find(data, query.namespace, query.runId)?.steps.values() ?? [])]
    .filter(({ idempotencyKey, scope }) => (scopes === null ? idempotencyKey !== null : scopes.includes(scope)))
    .filter((step) => after === null || order(step, after) > 0)
    .sort(order)
    .slice(0, limit === null ? undefined : Math.max(0, limit))
    .map((step) => (query.withResults ? { ...step } : { ...step, result: null }))
}

/** The rows of the given paths, each in order of its number (D11). */
const rowsAt = <A extends object>(
  byPath: ReadonlyMap<string, ReadonlyMap<number, A>>,
  paths: ReadonlyArray<string>,
): ReadonlyArray<A> =>
  [...new Set(paths)].flatMap((path) =>
    [...(byPath.get(path) ?? [])].sort(([a], [b]) => a - b).map(([, row]) => ({ ...row })),
  )

export const loadOpen = (data: Data, namespace: string, runId: string, paths: ReadonlyArray<string>): OpenRows => {
  const run = find(data, namespace, runId)
  return run === undefined
    ? { effects: [], attempts: [] }
    : { effects: rowsAt(run.effects, paths), attempts: rowsAt(run.attempts, paths).map(withoutSeq) }
}

const byRunId = (a: ParkedRow, b: ParkedRow): number => (a.runId < b.runId ? -1 : 1)

export const listParked = (data: Data, { namespace, after, limit }: ParkedPage): ReadonlyArray<ParkedRow> =>
  [...(data.namespaces.get(namespace)?.values() ?? [])]
    .flatMap(({ row }): ReadonlyArray<ParkedRow> => {
      const { runId, workflow, version, seq, status, parked, updatedAt } = row
      const listed = status === "review" && parked !== null && (after === null || runId > after)
      return listed ? [{ namespace, runId, workflow, version, seq, parked, updatedAt }] : []
    })
    .sort(byRunId)
    .slice(0, Math.max(0, limit))
