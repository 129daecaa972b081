/** What the memory driver holds, and how a run is found in it. */
import type { EffectRecord, SignalRecord, StepRecord } from "../../model/Records.js"
import type { AttemptRow, RunRow } from "../CheckpointDriver.js"

export interface StoredSignal {
  readonly record: SignalRecord
  consumedBy: string | null
}

/** A run and what belongs to it. Numbered rows stand in a Map of their own: no joined key could collide with another. */
export interface StoredRun {
  row: RunRow
  readonly steps: Map<string, StepRecord>
  readonly effects: Map<string, Map<number, EffectRecord>>
  readonly attempts: Map<string, Map<number, AttemptRow>>
  /** By id, in the order in which they were sent. */
  readonly signals: Map<string, StoredSignal>
}

export interface Data {
  readonly storeId: string
  readonly namespaces: Map<string, Map<string, StoredRun>>
  /** Until when each worker's lease lasts. */
  readonly workers: Map<string, number>
}

export const find = (data: Data, namespace: string, runId: string): StoredRun | undefined =>
  data.namespaces.get(namespace)?.get(runId)
