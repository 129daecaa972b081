/** A run row is created, looked up, loaded with what belongs to it, and taken out of review. */
import type { AnswerRow, Lease, NewRunRow, ParkedPage } from "@cairn/core"
import type { Dialect } from "../Dialect.js"
import { computed, whole, wholeMs } from "../readRow.js"
import { listOf, overRows, padded, textOf, type Bound, type Statement } from "../Statement.js"
import {
  attemptTable,
  effectTable,
  names,
  recordColumns,
  runTable,
  selectList,
  stepTable,
  storeTable,
  withoutSeq,
  type Table,
} from "../tables.js"
import { rowsOfRun } from "./rowsOfRun.js"

/** What a run that stands against a commit shows of itself. */
export const standingColumns = runTable.columns.filter((column) =>
  ["namespace", "runId", "seq", "fence", "claimToken", "status", "updatedAt"].includes(column.field),
)

const creating = "create a run"

const newRunColumns = runTable.columns.filter((column) =>
  [
    ...["namespace", "runId", "workflow", "version", "planHash", "inputHash", "input"],
    ...["parentRunId", "parentPath", "flowKey", "priority", "wakeAt"],
  ].includes(column.field),
)

/** What a run shows of itself to who waits for it: all but what it was given. */
export const outcomeColumns = runTable.columns.filter(({ field }) => field !== "input")

/** The row of a new run for its insert. Throws a `StoreError`. */
export const newRunRow = (run: NewRunRow): ReadonlyArray<Bound> => {
  const { priority, version, wakeAt } = run
  const numbers: Readonly<Record<string, number | null>> = {
    version: whole(creating, "version", version),
    priority: whole(creating, "priority", priority),
    wakeAt: wakeAt === null ? null : wholeMs(creating, "wakeAt", wakeAt),
  }
  return newRunColumns.map(({ field, type }) =>
    type === "integer" ? numbers[field]! : run[field as Exclude<keyof NewRunRow, "version" | "priority" | "wakeAt">],
  )
}

/** What a parked run shows in a list. */
export const parkedColumns = runTable.columns
  .filter((column) =>
    ["namespace", "runId", "workflow", "version", "seq", "updatedAt", "parked"].includes(column.field),
  )
  .map((column) => (column.field === "parked" ? { ...column, nullable: false } : column))

/** A parked run as it was seen, held until the transaction ends: whoever would resume it waits (D19). */
const lockParked = (dialect: Dialect) => {
  const text = textOf(
    dialect,
    (place) => `select run.run_id as "runId" from ${dialect.table("run")} as run
where run.namespace = ${place()} and run.run_id = ${place()} and run.status = 'review' and run.seq = ${place()} ${dialect.lockRows ?? ""}`,
  ).trimEnd()
  return ({ namespace, runId, seq }: Pick<AnswerRow, "namespace" | "runId" | "seq">): Statement => ({
    text,
    params: [namespace, runId, whole("answer", "seq", seq)],
  })
}

/** The rows of the given paths of a run, along the primary key: rows of other paths are not touched (D11). */
const recordsAt = (dialect: Dialect, table: Table) => {
  const texts = new Map<number, string>()
  const write = (count: number): string =>
    textOf(
      dialect,
      (place) => `select ${selectList(dialect, withoutSeq(recordColumns(table)), "record")}
from ${dialect.table(table.name)} as record
where record.path in (${listOf(place, count)}) and record.namespace = ${place()} and record.run_id = ${place()}
order by ${table.key.map((column) => `record.${column}`).join(", ")}`,
    )
  return (namespace: string, runId: string, asked: ReadonlyArray<string>): Statement => {
    const paths = padded(asked)
    const text = texts.get(paths.length) ?? write(paths.length)
    texts.set(paths.length, text)
    return { text, params: [...paths, namespace, runId] }
  }
}

export const runStatements = (dialect: Dialect) => {
  const run = dialect.table("run")
  // D18
  const woken = dialect.wake === null ? "" : `, ${dialect.wake} as "woken"`
  const wokenIfPending =
    dialect.wake === null ? "" : `, case when status = 'pending' then ${dialect.wake} end as "woken"`
  const startStatus = "case when given_wake_at is null then 'pending' else 'sleeping' end"
  const given = newRunColumns.map((column) => ({ ...column, name: `given_${column.name}` }))
  const inserting = (rows: string, parent: string, condition: string) =>
    `with given (${names(given)}) as (${rows}), clock (at) as (select ${dialect.now})${parent}
insert into ${run} (${names(newRunColumns)}, status, seq, fence, previous_until, inbox, recoveries, interruptions, created_at, updated_at)
select ${names(given)}, ${startStatus}, 0, 0, 0, 0, 0, 0, clock.at, clock.at from given, clock where ${condition}
on conflict (namespace, run_id) do nothing
returning ${selectList(dialect, runTable.columns)}${wokenIfPending}`
  const insert = overRows(dialect, given, (rows) => inserting(rows, "", "true"))
  // D1: the parent's row is locked, so that who claims it next comes before the child or after it, never beside it.
  const insertChild = overRows(dialect, given, (rows, place) =>
    inserting(
      rows,
      `,
parent as (select run.run_id from ${run} as run
  where run.namespace = ${place()} and run.run_id = ${place()}
    and run.fence = ${place()} and run.claim_token = ${place()} and run.lease_owner is not null ${dialect.lockRows ?? ""})`,
      "exists (select 1 from parent)",
    ),
  )
  const find = textOf(
    dialect,
    (place) =>
      `select ${selectList(dialect, runTable.columns)} from ${run} where namespace = ${place()} and run_id = ${place()}`,
  )
  const keys = [runTable.columns[0]!, runTable.columns[1]!].map((key) => ({ ...key, name: `given_${key.name}` }))
  const steps = textOf(
    dialect,
    (place) => `select ${selectList(dialect, recordColumns(stepTable))} from ${dialect.table("step")} as step
where ${rowsOfRun(dialect, stepTable, place)} and scope = '' order by seq, path`,
  )
  const unpark = textOf(
    dialect,
    (place) => `update ${run}
set status = 'pending', parked = null, recoveries = 0, wake_at = null, lease_owner = null, claim_token = null, updated_at = ${dialect.now}
where namespace = ${place()} and run_id = ${place()} and status = 'review'
returning run_id as "runId", updated_at as "updatedAt"${woken}`,
  )
  const parked = textOf(
    dialect,
    (place) => `select ${selectList(dialect, parkedColumns)} from ${run}
where namespace = ${place()} and status = 'review' and parked is not null and run_id > ${place()}
order by run_id limit ${place()}`,
  )
  const of = (text: string) => (namespace: string, runId: string) => ({ text, params: [namespace, runId] })
  return {
    now: { text: `select ${dialect.now} as "now"`, params: [] },
    nowColumns: [computed("now")],
    /** Inserts, or gives no row where the id is taken (D1). */
    insert,
    /** The same of a child, while its parent is held under that lease. */
    insertChild: (child: NewRunRow, parent: Lease): Statement =>
      insertChild(
        [newRunRow(child)],
        [parent.namespace, parent.runId, whole(creating, "fence", parent.fence), parent.claimToken],
      ),
    find: of(find),
    /** Runs by their keys, in any order. */
    findAll: overRows(
      dialect,
      keys,
      (rows) => `with given (${names(keys)}) as (${rows})
select ${selectList(dialect, runTable.columns, "run")} from given
join ${run} as run on run.namespace = given.given_namespace and run.run_id = given.given_run_id`,
    ),
    /** How runs stand, by their keys, in any order. */
    outcomes: overRows(
      dialect,
      keys,
      (rows) => `with given (${names(keys)}) as (${rows})
select ${selectList(dialect, outcomeColumns, "run")} from given
join ${run} as run on run.namespace = given.given_namespace and run.run_id = given.given_run_id`,
    ),
    storeId: { text: `select ${selectList(dialect, storeTable.columns)} from ${dialect.table("store")}`, params: [] },
    /** The rows that stand against refused commits. */
    standing: overRows(
      dialect,
      keys,
      (rows) => `with given (${names(keys)}) as (${rows})
select ${selectList(dialect, standingColumns, "run")} from given
join ${run} as run on run.namespace = given.given_namespace and run.run_id = given.given_run_id`,
    ),
    steps: of(steps),
    effectsAt: recordsAt(dialect, effectTable),
    attemptsAt: recordsAt(dialect, attemptTable),
    unpark: of(unpark),
    lockParked: lockParked(dialect),
    // No run id is empty: every one comes after the empty text.
    listParked: ({ namespace, after, limit }: ParkedPage): Statement => ({
      text: parked,
      params: [namespace, after ?? "", whole("list parked runs", "limit", limit)],
    }),
  }
}
