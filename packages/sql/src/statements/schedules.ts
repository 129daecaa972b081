/** Schedules are put, listed and moved on (D37). */
import type { FireSchedule, NewScheduleRow, NextSchedules, SchedulePage } from "@cairn/core"
import type { Dialect } from "../Dialect.js"
import { whole } from "../readRow.js"
import { overRows, textOf, type Bound, type Statement } from "../Statement.js"
import { names, scheduleTable, selectList } from "../tables.js"
import { columnOf } from "./claim.js"

const givenFields = [
  ...["namespace", "scheduleId", "workflow", "version", "cron", "timeZone", "overlap", "catchUp", "nextAt", "input"],
]

const givenColumns = scheduleTable.columns.filter(({ field }) => givenFields.includes(field))

const changedColumns = givenColumns.filter(
  ({ field }) => field !== "namespace" && field !== "scheduleId" && field !== "nextAt",
)

/** Integers checked on their way in. Throws a `StoreError`. */
const rowOf = (given: NewScheduleRow): ReadonlyArray<Bound> =>
  givenColumns.map(({ field, type }) => {
    const value = given[field as keyof NewScheduleRow]
    return type === "integer" ? whole("put a schedule", field, value as number) : value
  })

export const scheduleStatements = (dialect: Dialect) => {
  const schedule = dialect.table("schedule")
  const all = selectList(dialect, scheduleTable.columns, "schedule")
  const given = givenColumns.map((column) => ({ ...column, name: `given_${column.name}` }))
  const put = overRows(
    dialect,
    given,
    (rows) => `with given (${names(given)}) as (${rows})
insert into ${schedule} as schedule (${names(givenColumns)}, created_at)
select ${names(given)}, ${dialect.now} from given where true
on conflict (${scheduleTable.key.join(", ")}) do update
set ${changedColumns.map(({ name }) => `${name} = excluded.${name}`).join(", ")},
  next_at = case when schedule.cron = excluded.cron and schedule.time_zone = excluded.time_zone
    then schedule.next_at else excluded.next_at end
returning ${selectList(dialect, scheduleTable.columns)}`,
  )
  const remove = textOf(
    dialect,
    (place) =>
      `delete from ${schedule} where namespace = ${place()} and schedule_id = ${place()} returning schedule_id as "scheduleId"`,
  )
  const list = textOf(
    dialect,
    (place) => `select ${all} from ${schedule} as schedule
where schedule.namespace = ${place()} and schedule.schedule_id > ${place()} order by schedule.schedule_id limit ${place()}`,
  )
  const wanted = [columnOf("workflow"), columnOf("version", "integer")]
  const next = overRows(
    dialect,
    wanted,
    (rows, place) => `with wanted (${names(wanted)}) as (${rows})
select ${all} from ${schedule} as schedule
where schedule.namespace = ${place()} and (schedule.workflow, schedule.version) in (select workflow, version from wanted)
order by schedule.next_at, schedule.schedule_id limit ${place()}`,
  )
  const move = textOf(
    dialect,
    (place) => `update ${schedule} set next_at = ${place()}, last_at = ${place()}
where namespace = ${place()} and schedule_id = ${place()} and next_at = ${place()}
returning overlap as "overlap", last_run_id as "lastRunId"`,
  )
  const started = textOf(
    dialect,
    (place) =>
      `update ${schedule} set last_run_id = ${place()} where namespace = ${place()} and schedule_id = ${place()}`,
  )
  const statusOf = textOf(
    dialect,
    (place) =>
      `select run.status as "status" from ${dialect.table("run")} as run where run.namespace = ${place()} and run.run_id = ${place()}`,
  )
  return {
    put: (one: NewScheduleRow): Statement => put([rowOf(one)]),
    remove: (namespace: string, scheduleId: string): Statement => ({ text: remove, params: [namespace, scheduleId] }),
    // No id is empty: every one comes after the empty text.
    list: ({ after, limit, namespace }: SchedulePage): Statement => ({
      text: list,
      params: [namespace, after ?? "", whole("list schedules", "limit", limit)],
    }),
    next: ({ limit, namespace, workflows }: NextSchedules): Statement =>
      next(
        workflows.map(({ name, version }) => [name, version]),
        [namespace, limit],
      ),
    /** Moves it on if it is still due at that instant, and says what the run depends on. */
    move: ({ at, lastAt, namespace, nextAt, scheduleId }: FireSchedule): Statement => {
      const to = (field: string, value: number): number => whole("fire a schedule", field, value)
      return { text: move, params: [to("nextAt", nextAt), to("lastAt", lastAt), namespace, scheduleId, at] }
    },
    statusOf: (namespace: string, runId: string): Statement => ({ text: statusOf, params: [namespace, runId] }),
    started: ({ namespace, run, scheduleId }: FireSchedule): Statement => ({
      text: started,
      params: [run.runId, namespace, scheduleId],
    }),
  }
}
