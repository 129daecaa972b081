/**
 * What runs wait for, what a person decides, and the parents that a commit wakes (D27 to D29). Whoever writes a wait holds
 * the row of its run first, as commits do.
 */
import type { CommitRows, DecisionRow, WaitWrite } from "@cairn/core"
import type { Dialect } from "../Dialect.js"
import { computed, whole, wholeMs } from "../readRow.js"
import { overRows, textOf, type Bound, type Statement } from "../Statement.js"
import { names, recordColumns, selectList, waitTable, withoutSeq, type Column } from "../tables.js"
import { given } from "./given.js"

const operation = "commit"

/** The columns of a wait that is closed. */
export const closedColumns: ReadonlyArray<Column> = [given("namespace"), given("run_id"), given("path")]

/** The waits that a commit only closes: one that it opens again is replaced. */
export const closedRows = ({ closes, lease, waits }: CommitRows): ReadonlyArray<ReadonlyArray<Bound>> => {
  if (closes.length === 0) return []
  const opened = new Set(waits.map(({ path }) => path))
  return [...new Set(closes)].filter((path) => !opened.has(path)).map((path) => [lease.namespace, lease.runId, path])
}

/** The removal of waits whose keys `from` gives. */
export const closingDelete = (dialect: Dialect, from: string): string =>
  `delete from ${dialect.table("wait")} as wait
where (wait.namespace, wait.run_id, wait.path) in (select ${names(closedColumns)} from ${from})`

/** Of several openings at one path the last counts, because a statement may write a row once. */
export const openedWaits = (waits: ReadonlyArray<WaitWrite>): ReadonlyArray<WaitWrite> =>
  waits.length < 2 ? waits : [...new Map(waits.map((wait) => [wait.path, wait])).values()]

/** When a wait is over, as what is bound: a delay or a time. Throws a `StoreError`. */
export const wakeOf = (wake: WaitWrite["wake"]): { readonly inMs: number | null; readonly at: number | null } => {
  if (wake === null) return { inMs: null, at: null }
  return "at" in wake
    ? { inMs: null, at: wholeMs(operation, "wake.at", wake.at) }
    : { inMs: wholeMs(operation, "wake.inMs", wake.inMs), at: null }
}

/** The rows of the waits that a commit opens, stamped with the clock of its update. Throws a `StoreError`. */
export const waitRows = ({ lease, seq, waits }: CommitRows, at: number): ReadonlyArray<ReadonlyArray<Bound>> =>
  openedWaits(waits).map(({ data, kind, name, path, seq: own, wake: opened }) => {
    const wake = wakeOf(opened)
    const wakeAt = wake.inMs === null ? wake.at : at + wake.inMs
    return [
      lease.namespace,
      lease.runId,
      path,
      whole(operation, "seq", own ?? seq),
      kind,
      name,
      wakeAt,
      at,
      "open",
      null,
      data,
      null,
    ]
  })

const parentColumns: ReadonlyArray<Column> = [given("namespace"), given("run_id"), given("children", "integer")]

/** The parents of commits that have been made, each once, with how many of its children have ended. */
export const parentRows = (committed: ReadonlyArray<CommitRows>): ReadonlyArray<ReadonlyArray<Bound>> => {
  const parents = new Map<string, readonly [namespace: string, runId: string, children: number]>()
  for (const { lease, wakesParent } of committed) {
    if (wakesParent === null) continue
    const key = JSON.stringify([lease.namespace, wakesParent])
    parents.set(key, [lease.namespace, wakesParent, (parents.get(key)?.[2] ?? 0) + 1])
  }
  return [...parents.values()]
}

/** D29: the row of each parent that is not final; one that waits goes on. */
const wakeParents = (dialect: Dialect) => {
  const waits = "run.status = 'waiting' or (run.status = 'review' and run.parked is null)"
  const isOver = "run.status in ('completed', 'failed', 'canceled')"
  // D18: of what became claimable by it. One that was written in this very millisecond is told of for nothing.
  const woken =
    dialect.wake === null || dialect.tellOwner === null
      ? ""
      : `\nreturning case when run.lease_owner is not null then ${dialect.tellOwner("run.lease_owner")}
  when run.status = 'pending' and run.updated_at = clock.at then ${dialect.wake} end as "woken"`
  return overRows(
    dialect,
    parentColumns,
    (rows) => `with given (${names(parentColumns)}) as (${rows}), clock (at) as (select ${dialect.now})
update ${dialect.table("run")} as run
set inbox = run.inbox + given_children,
  status = case when ${waits} then 'pending' else run.status end,
  wake_at = case when ${waits} then null else run.wake_at end,
  updated_at = case when ${waits} then clock.at else run.updated_at end
from given, clock
where run.namespace = given_namespace and run.run_id = given_run_id and not ${isOver}${woken}`,
  )
}

const lockedColumns: ReadonlyArray<Column> = [given("namespace"), given("run_id")]

/** Locks runs in the order of their keys, as a commit of several does, before the first of them is written. */
const lockRuns = (dialect: Dialect) =>
  dialect.lockRows === null
    ? null
    : overRows(
        dialect,
        lockedColumns,
        (rows) => `with given (${names(lockedColumns)}) as (${rows})
select run.run_id as "runId" from given
join ${dialect.table("run")} as run on run.namespace = given_namespace and run.run_id = given_run_id
order by run.namespace, run.run_id ${dialect.lockRows} of run`,
      )

/** The runs that a batch writes, children and parents. */
const writtenRuns = (batch: ReadonlyArray<CommitRows>): ReadonlyArray<ReadonlyArray<Bound>> => [
  ...new Map(
    batch
      .flatMap(({ lease, wakesParent }) => [lease.runId, wakesParent ?? lease.runId].map((id) => [lease.namespace, id]))
      .map((key) => [JSON.stringify(key), key]),
  ).values(),
]

/** The columns of a wait as its record has them. */
export const waitColumns = withoutSeq(recordColumns(waitTable))

/** When a decision was written. */
export const decidedColumns: ReadonlyArray<Column> = [computed("decidedAt")]

/** What the calls of the driver say of one wait, its run's row being held. */
export const waitStatements = (dialect: Dialect) => {
  const wait = dialect.table("wait")
  const list = textOf(
    dialect,
    (place) => `select ${selectList(dialect, waitColumns)} from ${wait}
where namespace = ${place()} and run_id = ${place()} order by path`,
  )
  const find = textOf(
    dialect,
    (place) => `select ${selectList(dialect, waitColumns)} from ${wait}
where namespace = ${place()} and run_id = ${place()} and path = ${place()}`,
  )
  const decisionColumns = [{ ...computed("decision", "json"), name: "given_decision" }]
  const decide = textOf(
    dialect,
    (place) => `with given (given_decision) as (${dialect.row(decisionColumns, place)}),
clock (at) as (select ${dialect.now})
update ${wait} as wait
set state = 'decided', decision = given_decision, decided_at = clock.at
from given, clock
where wait.namespace = ${place()} and wait.run_id = ${place()} and wait.path = ${place()} and wait.name = ${place()}
  and wait.kind = 'review' and wait.state = 'open' and (wait.wake_at is null or wait.wake_at > clock.at)
returning decided_at as "decidedAt"`,
  )
  const expire = textOf(
    dialect,
    (place) => `update ${wait} set state = 'expired'
where namespace = ${place()} and run_id = ${place()} and path = ${place()} and state = 'open'`,
  )
  return {
    list: (namespace: string, runId: string): Statement => ({ text: list, params: [namespace, runId] }),
    find: (namespace: string, runId: string, path: string): Statement => ({
      text: find,
      params: [namespace, runId, path],
    }),
    decide: ({ decision, name, namespace, path, runId }: DecisionRow): Statement => ({
      text: decide,
      params: [decision, namespace, runId, path, name],
    }),
    expire: (namespace: string, runId: string, path: string): Statement => ({
      text: expire,
      params: [namespace, runId, path],
    }),
  }
}

/** What a batch of commits says of parents: they are locked with the children, and woken once it is known who has ended. */
export const parentStatements = (dialect: Dialect) => {
  const lock = lockRuns(dialect)
  return {
    lock: lock === null ? null : (batch: ReadonlyArray<CommitRows>): Statement => lock(writtenRuns(batch)),
    wake: wakeParents(dialect),
  }
}
