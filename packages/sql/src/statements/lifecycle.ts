/** What people do with one run: it is paused, tried again after its failure, or forked (D32 to D34). */
import type { ForkRow } from "@cairn/core"
import type { Dialect } from "../Dialect.js"
import { whole } from "../readRow.js"
import { listOf, padded, textOf, type Bound, type Place, type Statement } from "../Statement.js"
import { effectTable, names, runTable, selectList, stepTable, type Column, type Table } from "../tables.js"
import { tellings } from "./inbox.js"
import { rowsOfRun, runNumber } from "./rowsOfRun.js"

/** What a fork takes over from its source as it is. */
export const sourceColumns = runTable.columns.filter(({ field }) => field === "planHash")

/** Of a step that may have done something: which one, and when. */
export const performedColumns = stepTable.columns.filter(({ field }) => ["path", "seq", "effect"].includes(field))

/** Of an effect that happened, or may have. */
export const happenedColumns = effectTable.columns.filter(({ field }) =>
  ["path", "operation", "idempotencyKey", "state"].includes(field),
)

const pausing = (dialect: Dialect) => {
  const run = dialect.table("run")
  // D18; what an owner holds is not claimable, whatever its status.
  const woken =
    dialect.wake === null
      ? ""
      : `\nreturning case when run.status = 'pending' and run.lease_owner is null then ${dialect.wake} end as "woken"`
  const update = (set: string, returning: string) =>
    textOf(
      dialect,
      (place) => `with clock (at) as (select ${dialect.now})
update ${run} as run set ${set} from clock
where run.namespace = ${place()} and run.run_id = ${place()}${returning}`,
    )
  return {
    pause: update("inbox = run.inbox + 1, paused_at = clock.at", tellings(dialect).told),
    unpause: update("paused_at = null", woken),
  }
}

const reopening = (dialect: Dialect) => {
  const woken = dialect.wake === null ? "" : `, ${dialect.wake} as "woken"`
  return textOf(
    dialect,
    (place) => `update ${dialect.table("run")}
set status = 'pending', failure = null, output = null, wake_at = null, cancel_at = null, cancel_reason = null,
  paused_at = null, recoveries = 0, updated_at = ${dialect.now}
where namespace = ${place()} and run_id = ${place()} and status = 'failed' and seq = ${place()}
returning run_id as "runId", updated_at as "updatedAt"${woken}`,
  )
}

/**
 * Rows of one run, copied to another of its namespace inside the database: their payloads pass through no client. `instead` has
 * what a column holds in the copy.
 */
const copying = (
  dialect: Dialect,
  table: Table,
  instead: (place: Place) => Readonly<Record<string, string>>,
  where: (place: Place) => string,
): string =>
  textOf(dialect, (place) => {
    const given = instead(place)
    const values = table.columns.map(({ name }) => given[name] ?? name).join(", ")
    return `insert into ${dialect.table(table.name)} (${names(table.columns)})
select ${values} from ${dialect.table(table.name)} as ${table.name}
where ${rowsOfRun(dialect, table, place)} and ${where(place)}`
  })

/** A run's new id, as text: Postgres would not know of what type it is. */
const newId = (place: Place) => `cast(${place()} as text)`

const forking = (dialect: Dialect) => {
  const run = dialect.table("run")
  const steps = copying(
    dialect,
    stepTable,
    (place) => ({ run_number: runNumber(dialect, place), committed_at: dialect.now }),
    (place) => `seq < ${place()}`,
  )
  const effects = new Map<number, string>()
  const writeEffects = (count: number) =>
    copying(
      dialect,
      effectTable,
      // Nothing of the fork has accounted for an earlier generation.
      (place) => ({ run_id: newId(place), generation: "0" }),
      (place) => `state = 'succeeded' and path in (${listOf(place, count)})`,
    )
  const seq = textOf(
    dialect,
    (place) => `update ${run}
set seq = (select coalesce(max(step.seq), 1) from ${dialect.table("step")} as step
  where step.run_number = ${run}.number), forked_from = ${place()}
where namespace = ${place()} and run_id = ${place()}
returning ${selectList(dialect, runTable.columns)}`,
  )
  return {
    copySteps: ({ beforeSeq, from, run: { namespace, runId } }: ForkRow): Statement => ({
      text: steps,
      params: [namespace, runId, namespace, from, whole("fork a run", "beforeSeq", beforeSeq)],
    }),
    copyEffects: ({ from, run: { namespace, runId } }: ForkRow, asked: ReadonlyArray<string>): Statement => {
      const paths = padded(asked)
      const text = effects.get(paths.length) ?? writeEffects(paths.length)
      effects.set(paths.length, text)
      return { text, params: [runId, namespace, from, ...paths] }
    },
    takeSeq: ({ from, run: { namespace, runId } }: ForkRow): Statement => ({
      text: seq,
      params: [from, namespace, runId],
    }),
  }
}

const ofRun = (dialect: Dialect, table: Table, columns: ReadonlyArray<Column>, where: string) => {
  const text = textOf(
    dialect,
    (place) => `select ${selectList(dialect, columns)} from ${dialect.table(table.name)} as ${table.name}
where ${rowsOfRun(dialect, table, place)}${where}`,
  )
  return (namespace: string, runId: string): Statement => ({ text, params: [namespace, runId] })
}

export const lifecycleStatements = (dialect: Dialect) => {
  const { pause, unpause } = pausing(dialect)
  const reopen = reopening(dialect)
  const of = (text: string) => (namespace: string, runId: string) => ({ text, params: [namespace, runId] })
  const performed = " and (idempotency_key is not null or effect in ('transaction', 'child'))"
  return {
    pause: of(pause),
    unpause: of(unpause),
    reopen: (namespace: string, runId: string, seq: number): Statement => ({
      text: reopen,
      params: [namespace, runId, whole("retry a run", "seq", seq)] satisfies ReadonlyArray<Bound>,
    }),
    source: ofRun(dialect, runTable, sourceColumns, ""),
    ...forking(dialect),
    performed: ofRun(dialect, stepTable, performedColumns, performed),
    happened: ofRun(dialect, effectTable, happenedColumns, " and state in ('intended', 'succeeded') order by path"),
  }
}
