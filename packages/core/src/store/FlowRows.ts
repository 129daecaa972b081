/** Rows of flow control: what a claim may take at most, and schedules that start runs. */
import type { NewRunRow } from "./CheckpointDriver.js"

/**
 * How many runs of a workflow may be held at once and begin in a stretch of time (D35, D36).
 *
 * *Shape.* Null is no limit. `running`: of all versions of the workflow in the namespace. `perKey`: of those with one
 * `flowKey`; runs without one share the empty key. `rate`: at most `count` first claims in any `perMs` milliseconds, of the
 * workflow or, with `perKey`, of each key.
 *
 * @category rows
 * @since 0.1.0
 */
export interface ClaimLimits {
  readonly running: number | null
  readonly perKey: number | null
  readonly rate: { readonly count: number; readonly perMs: number; readonly perKey: boolean } | null
}

/**
 * What starts runs again and again.
 *
 * *Shape.* `nextAt`: when it is due next. `overlap`: `skip` starts none while the run that it started last is not final.
 * `catchUp`: of several instants that were missed the latest counts, or each. `lastAt`: the instant that was fired last;
 * `lastRunId`: the run that it started last, which is not of that instant where one was skipped.
 *
 * @category rows
 * @since 0.1.0
 */
export interface ScheduleRow {
  readonly namespace: string
  readonly scheduleId: string
  readonly workflow: string
  readonly version: number
  readonly cron: string
  readonly timeZone: string
  readonly overlap: "start" | "skip"
  readonly catchUp: "latest" | "all"
  readonly nextAt: number
  readonly lastAt: number | null
  readonly lastRunId: string | null
  readonly createdAt: number
  readonly input: string | null
}

/**
 * A schedule as it is put into the store. `nextAt` counts where it is new, or its times are other ones than before.
 *
 * @category rows
 * @since 0.1.0
 */
export type NewScheduleRow = Omit<ScheduleRow, "lastAt" | "lastRunId" | "createdAt">

/**
 * A page of schedules, in order of their ids.
 *
 * @category rows
 * @since 0.1.0
 */
export interface SchedulePage {
  readonly namespace: string
  readonly after: string | null
  readonly limit: number
}

/**
 * Which schedules are looked at, in order of `nextAt`: due or not.
 *
 * @category rows
 * @since 0.1.0
 */
export interface NextSchedules {
  readonly namespace: string
  readonly workflows: ReadonlyArray<{ readonly name: string; readonly version: number }>
  readonly limit: number
}

/**
 * One firing. `at` is the `nextAt` that it builds on, `nextAt` the one that it sets, `lastAt` the instant that it is for.
 *
 * @category rows
 * @since 0.1.0
 */
export interface FireSchedule {
  readonly namespace: string
  readonly scheduleId: string
  readonly at: number
  readonly lastAt: number
  readonly nextAt: number
  readonly run: NewRunRow
}

/**
 * What became of a firing.
 *
 * *Shape.* `Fired`: moved; `created` is false where a run of that id was there. `Skipped`: moved, and no run was created, for
 * the last one goes on. `Stale`: nothing was done: it was fired, changed or removed by somebody else.
 *
 * @category rows
 * @since 0.1.0
 */
export type FireResult =
  { readonly _tag: "Fired"; readonly created: boolean } | { readonly _tag: "Skipped" } | { readonly _tag: "Stale" }
