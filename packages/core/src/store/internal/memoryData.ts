/** What the memory driver holds, and how a run is found in it. */
import type { EffectRecord, Lease, SignalRecord, StepRecord } from "../../model/Records.js"
import type { CallRecord } from "../../model/Usage.js"
import type { SpendRow } from "../CallRows.js"
import type { RunRow } from "../CheckpointDriver.js"
import type { ScheduleRow } from "../FlowRows.js"
import type { HistoryRows } from "../HistoryRows.js"

export interface StoredSignal {
  readonly record: SignalRecord
  consumedBy: string | null
}

/** A row as others than a history see it. */
export const withoutSeq = <A extends { readonly seq: number }>(row: A): Omit<A, "seq"> => {
  const { seq: _, ...rest } = row
  return rest
}

/** A run and what belongs to it. Numbered rows stand in a Map of their own: no joined key could collide with another. */
export interface StoredRun {
  row: RunRow
  readonly steps: Map<string, StepRecord>
  readonly effects: Map<string, Map<number, EffectRecord>>
  readonly attempts: Map<string, Map<number, HistoryRows["attempts"][number]>>
  /** By id, in the order in which they were sent. */
  readonly signals: Map<string, StoredSignal>
  readonly waits: Map<string, HistoryRows["waits"][number]>
}

/** A paid call. `interruptions`: those of its run before it was begun. */
export interface StoredCall {
  readonly namespace: string
  readonly runId: string
  readonly interruptions: number
  record: CallRecord
}

export interface StartedRun {
  readonly key: string
  readonly at: number
}

export interface Data {
  readonly storeId: string
  readonly namespaces: Map<string, Map<string, StoredRun>>
  /** Until when each worker's lease lasts. */
  readonly workers: Map<string, number>
  /** First claims of runs with a rate, by namespace and workflow, for as long as they count. */
  readonly starts: Map<string, Map<string, ReadonlyArray<StartedRun>>>
  readonly schedules: Map<string, Map<string, ScheduleRow>>
  /** By namespace; then by run and id. */
  readonly calls: Map<string, Map<string, StoredCall>>
  /** By namespace; then by counter and day. */
  readonly spend: Map<string, Map<string, SpendRow>>
}

export const emptyData = (storeId: string): Data => ({
  storeId,
  namespaces: new Map(),
  workers: new Map(),
  starts: new Map(),
  schedules: new Map(),
  calls: new Map(),
  spend: new Map(),
})

export const find = (data: Data, namespace: string, runId: string): StoredRun | undefined =>
  data.namespaces.get(namespace)?.get(runId)

export const childOf = <K, L, V>(map: Map<K, Map<L, V>>, key: K): Map<L, V> => {
  const existing = map.get(key)
  if (existing !== undefined) return existing
  const created = new Map<L, V>()
  map.set(key, created)
  return created
}

/** D3; a released run belongs to nobody, so that nobody can write to it. */
export const isHeldUnder = (row: RunRow, lease: Lease): boolean =>
  row.leaseOwner !== null && row.fence === lease.fence && row.claimToken === lease.claimToken
