/** Rows of what a run has come to, in the order of its commits. */
import type { AttemptRecord, StepRecord, WaitRecord } from "../model/Records.js"
import type { AttemptRow } from "./CheckpointDriver.js"

/**
 * Which part of a run's history is read (D38).
 *
 * *Shape.* What the commits after `after` and up to `through` have left. `limit`: of steps, attempts and waits as many each, from 1
 * up; where a list is full, what it lacks of its last `seq` comes after it.
 *
 * @category rows
 * @since 0.1.0
 */
export interface HistoryQuery {
  readonly namespace: string
  readonly runId: string
  readonly after: number
  readonly through: number
  readonly limit: number
}

/**
 * What a stretch of commits has left, each list in order of `seq`.
 *
 * @category rows
 * @since 0.1.0
 */
export interface HistoryRows {
  readonly steps: ReadonlyArray<StepRecord>
  readonly attempts: ReadonlyArray<AttemptRow & { readonly seq: number }>
  readonly waits: ReadonlyArray<WaitRecord & { readonly seq: number }>
}

/**
 * The same, typed.
 *
 * @category models
 * @since 0.1.0
 */
export interface History extends Omit<HistoryRows, "attempts"> {
  readonly attempts: ReadonlyArray<AttemptRecord & { readonly seq: number }>
}
