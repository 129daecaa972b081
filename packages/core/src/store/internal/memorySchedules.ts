/** Schedules, and the runs that they start (D37). */
import { finalStatuses } from "../../model/Records.js"
import type { FireResult, FireSchedule, NewScheduleRow, NextSchedules, SchedulePage, ScheduleRow } from "../FlowRows.js"
import { childOf, find, type Data } from "./memoryData.js"
import { createRun } from "./memoryRuns.js"

const allOf = (data: Data, namespace: string): ReadonlyArray<ScheduleRow> =>
  [...(data.schedules.get(namespace)?.values() ?? [])].sort((a, b) => (a.scheduleId < b.scheduleId ? -1 : 1))

export const putSchedule = (data: Data, given: NewScheduleRow, now: number): ScheduleRow => {
  const schedules = childOf(data.schedules, given.namespace)
  const known = schedules.get(given.scheduleId)
  const sameTimes = known !== undefined && known.cron === given.cron && known.timeZone === given.timeZone
  const row: ScheduleRow = {
    ...given,
    nextAt: sameTimes ? known.nextAt : given.nextAt,
    lastAt: known?.lastAt ?? null,
    lastRunId: known?.lastRunId ?? null,
    createdAt: known?.createdAt ?? now,
  }
  schedules.set(row.scheduleId, row)
  return { ...row }
}

export const removeSchedule = (data: Data, namespace: string, scheduleId: string): boolean =>
  data.schedules.get(namespace)?.delete(scheduleId) ?? false

export const listSchedules = (data: Data, { after, limit, namespace }: SchedulePage): ReadonlyArray<ScheduleRow> =>
  allOf(data, namespace)
    .filter(({ scheduleId }) => after === null || scheduleId > after)
    .slice(0, Math.max(0, limit))
    .map((row) => ({ ...row }))

export const nextSchedules = (data: Data, { limit, namespace, workflows }: NextSchedules): ReadonlyArray<ScheduleRow> =>
  allOf(data, namespace)
    .filter((row) => workflows.some(({ name, version }) => name === row.workflow && version === row.version))
    .sort((a, b) => a.nextAt - b.nextAt)
    .slice(0, Math.max(0, limit))
    .map((row) => ({ ...row }))

export const fireSchedule = (data: Data, fire: FireSchedule, now: number): FireResult => {
  const { at, lastAt, namespace, nextAt, run, scheduleId } = fire
  const schedules = data.schedules.get(namespace)
  const row = schedules?.get(scheduleId)
  if (schedules === undefined || row === undefined || row.nextAt !== at) return { _tag: "Stale" }
  const last = row.lastRunId === null ? undefined : find(data, namespace, row.lastRunId)
  const goesOn = last !== undefined && !finalStatuses.has(last.row.status)
  const skips = row.overlap === "skip" && goesOn
  schedules.set(scheduleId, { ...row, nextAt, lastAt, lastRunId: skips ? row.lastRunId : run.runId })
  return skips ? { _tag: "Skipped" } : { _tag: "Fired", created: createRun(data, run, now).created }
}
