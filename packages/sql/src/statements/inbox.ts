/**
 * What reaches a run from outside. Each transaction holds the run's row first, as commits do: whoever parks it has seen
 * what arrived, or waits and sees it then (D23).
 */
import type { NewSignalRow } from "@cairn/core"
import type { Dialect } from "../Dialect.js"
import { computed } from "../readRow.js"
import { overRows, textOf, type Bound, type Statement } from "../Statement.js"
import { names, recordColumns, runTable, selectList, signalTable } from "../tables.js"

/** What is to be known of a run before anything is sent to it. */
export const heldColumns = runTable.columns.filter((column) =>
  ["status", "inbox", "cancelAt", "pausedAt", "fence", "claimToken", "leaseOwner"].includes(column.field),
)

export const inboxColumns = runTable.columns.filter((column) => column.field === "inbox")

/** Whether it waits for what is sent, beside those columns: 0 or 1. */
export const waitsColumn = computed("waits")

/** What is compared with a signal of the same id. */
export const knownColumns = signalTable.columns.filter((column) => ["name", "payloadHash"].includes(column.field))

/** What a run is given of a signal. */
export const signalColumns = recordColumns(signalTable).filter((column) => column.field !== "consumedBy")

const newColumns = signalTable.columns.filter((column) => !["sentAt", "consumedBy"].includes(column.field))
const givenColumns = newColumns.map((column) => ({ ...column, name: `given_${column.name}` }))

/** The row of a signal for its insert, in the order of `newColumns`. */
const signalRow = (signal: NewSignalRow, position: number): ReadonlyArray<Bound> =>
  newColumns.map(({ field }) => (field === "position" ? position : signal[field as keyof NewSignalRow]))

/** What follows an update that counts something on a run's `inbox`: who is told of it. */
export const tellings = (dialect: Dialect) => {
  const { tellOwner, wake } = dialect
  if (wake === null || tellOwner === null) return { told: "", wokenOrTold: "" }
  const owner = tellOwner("run.lease_owner")
  const returning = (otherwise: string) =>
    `\nreturning case when run.lease_owner is not null then ${owner}${otherwise} end as "woken"`
  return {
    /** D44 */
    told: returning(""),
    /** The same of one that can be claimed now, unless an owner holds it, although it rests (D18). */
    wokenOrTold: returning(` else ${wake}`),
  }
}

/** The update of one run's row: what is counted, and what becomes of a run that rests. */
const updates = (dialect: Dialect) => {
  const run = dialect.table("run")
  const { told, wokenOrTold } = tellings(dialect)
  const wakes = "status = 'pending', wake_at = null, updated_at = clock.at"
  const update = (further: (place: () => string) => ReadonlyArray<string>, returning: string) =>
    textOf(dialect, (place) => {
      const sets = ["inbox = run.inbox + 1", ...further(place)]
      return `with clock (at) as (select ${dialect.now})
update ${run} as run
set ${sets.join(", ")}
from clock
where run.namespace = ${place()} and run.run_id = ${place()}${returning}`
    })
  const marks = (place: () => string) => ["cancel_at = clock.at", `cancel_reason = ${place()}`, "paused_at = null"]
  const takesUp = [
    wakes,
    "parked = null",
    "previous_until = clock.at",
    "recoveries = case when run.status = 'review' then 0 else run.recoveries end",
  ]
  return {
    count: update(() => [], told),
    countAndWake: update(() => [wakes], wokenOrTold),
    cancel: update(marks, told),
    cancelAndTell: update(marks, wokenOrTold),
    cancelAndWake: update((place) => [...marks(place), ...takesUp], wokenOrTold),
  }
}

export const inboxStatements = (dialect: Dialect) => {
  const signal = dialect.table("signal")
  const texts = updates(dialect)
  const lock = textOf(dialect, (place) =>
    `select ${selectList(dialect, heldColumns, "run")},
  case when run.status = 'waiting' or (run.status = 'review' and run.parked is null) then 1 else 0 end as "waits"
from ${dialect.table("run")} as run
where run.namespace = ${place()} and run.run_id = ${place()} ${dialect.lockRows ?? ""}`.trimEnd(),
  )
  const count = textOf(
    dialect,
    (place) => `select ${selectList(dialect, inboxColumns)} from ${dialect.table("run")}
where namespace = ${place()} and run_id = ${place()}`,
  )
  const find = textOf(
    dialect,
    (place) => `select ${selectList(dialect, knownColumns)} from ${signal}
where namespace = ${place()} and run_id = ${place()} and signal_id = ${place()}`,
  )
  const insert = overRows(
    dialect,
    givenColumns,
    (rows) => `with given (${names(givenColumns)}) as (${rows}), clock (at) as (select ${dialect.now})
insert into ${signal} (${names(newColumns)}, sent_at)
select ${names(givenColumns)}, clock.at from given, clock where true`,
  )
  const waiting = overRows(
    dialect,
    [{ ...computed("name", "text"), name: "given_name" }],
    (rows, place) => `select ${selectList(dialect, signalColumns, "signal")} from ${signal} as signal
where signal.name in (${rows}) and signal.namespace = ${place()} and signal.run_id = ${place()}
  and signal.consumed_by is null
order by signal.position`,
  )
  const of =
    (text: string) =>
    (namespace: string, runId: string): Statement => ({ text, params: [namespace, runId] })
  const because =
    (text: string) =>
    (namespace: string, runId: string, reason: string | null): Statement => ({
      text,
      params: [reason, namespace, runId],
    })
  return {
    lock: of(lock),
    inbox: of(count),
    findSignal: (namespace: string, runId: string, signalId: string): Statement => ({
      text: find,
      params: [namespace, runId, signalId],
    }),
    insertSignal: (given: NewSignalRow, position: number): Statement => insert([signalRow(given, position)]),
    count: of(texts.count),
    countAndWake: of(texts.countAndWake),
    cancel: because(texts.cancel),
    cancelAndTell: because(texts.cancelAndTell),
    cancelAndWake: because(texts.cancelAndWake),
    waiting: (namespace: string, runId: string, wanted: ReadonlyArray<string>): Statement =>
      waiting(
        wanted.map((name) => [name]),
        [namespace, runId],
      ),
  }
}
