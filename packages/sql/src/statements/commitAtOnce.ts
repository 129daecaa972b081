/**
 * A batch of commits as one statement: the guarding update feeds what belongs to the runs that it hit, so that what
 * belongs to a refused one is written nowhere (D2, D3), and each row takes its time from the update of its run.
 *
 * The runs are locked in the order of their keys before the first is written: two batches over the same runs wait for
 * each other, and never in a circle.
 */
import type { CommitRows, EffectWrite } from "@cairn/core"
import type { Dialect } from "../Dialect.js"
import { whole, wholeMs } from "../readRow.js"
import { textOf, type Bound, type Statement } from "../Statement.js"
import {
  attemptTable,
  effectTable,
  names,
  recordColumns,
  selectList,
  stepTable,
  waitTable,
  type Column,
  type Table,
} from "../tables.js"
import {
  committedColumns,
  consumedColumns,
  consumedRows,
  consumingUpdate,
  guardColumns,
  guardingUpdate,
  guardRow,
  replacing,
  replacingIntents,
} from "./commit.js"
import { given } from "./given.js"
import { closedColumns, closedRows, closingDelete, openedWaits, wakeOf } from "./waits.js"

const operation = "commit"

type Rows = ReadonlyArray<ReadonlyArray<Bound>>

/** Of many runs, of one, or of one with one row of each part: that is bound value by value, and planned as one row. */
type Shape = "many" | "one" | "lone"

/** One part of the statement: what is bound, and what is written of it once the run's row is `updated`. */
interface Part {
  readonly name: string
  readonly given: ReadonlyArray<Column>
  readonly write: (dialect: Dialect) => string
  readonly rows: (commit: CommitRows) => Rows
}

/** Columns that the database computes from the commit's time. */
type Stamped = Readonly<Record<string, string>>

const key: ReadonlyArray<Column> = [given("namespace"), given("run_id")]

/** The columns that are bound: the run's key, those of the record that are not stamped, and further ones. */
const bound = (table: Table, stamped: Stamped, further: ReadonlyArray<Column> = []): ReadonlyArray<Column> => [
  ...key,
  ...recordColumns(table)
    .filter(({ name }) => stamped[name] === undefined)
    .map(({ name, type }) => given(name, type)),
  ...further,
]

const joined = "join updated on updated.namespace = given_namespace and updated.run_id = given_run_id"

const inserting =
  (table: Table, stamped: Stamped, onConflict: string): Part["write"] =>
  (dialect) => {
    const values = table.columns.map(({ name }) => stamped[name] ?? `given_${name}`)
    return `insert into ${dialect.table(table.name)} as ${table.name} (${names(table.columns)})
select ${values.join(", ")}
from given_${table.name} ${joined}${onConflict}`
  }

const steps = (): Part => {
  const stamped = { run_number: "updated.number", committed_at: "updated.updated_at" }
  return {
    name: "step",
    given: bound(stepTable, stamped),
    write: inserting(stepTable, stamped, ""),
    rows: ({ lease, steps }) =>
      steps.map((step) => [
        lease.namespace,
        lease.runId,
        whole(operation, "seq", step.seq),
        whole(operation, "attempts", step.attempts),
        wholeMs(operation, "durationMs", step.durationMs),
        step.scope,
        step.path,
        step.effect,
        step.idempotencyKey,
        step.result,
      ]),
  }
}

/**
 * Each intent once, because a statement may write a row once: what several writes of one intent make of it in their order,
 * and the first that settles it is the last (D17).
 */
const oncePerIntent = (writes: ReadonlyArray<EffectWrite>): ReadonlyArray<EffectWrite> => {
  if (writes.length < 2) return writes
  const last = new Map<string, EffectWrite>()
  for (const write of writes) {
    const intent = JSON.stringify([write.path, write.generation])
    const before = last.get(intent)
    if (before === undefined || before.state === "intended") last.set(intent, write)
  }
  return [...last.values()]
}

const effects = (): Part => {
  const stamped = {
    intent_at: "updated.updated_at",
    settled_at: "case when given_state = 'intended' then null else updated.updated_at end",
  }
  return {
    name: "effect",
    given: bound(effectTable, stamped),
    write: inserting(effectTable, stamped, replacingIntents),
    rows: ({ effects, lease }) =>
      oncePerIntent(effects).map((effect) => [
        lease.namespace,
        lease.runId,
        effect.path,
        whole(operation, "generation", effect.generation),
        effect.operation,
        effect.idempotencyKey,
        effect.payloadHash,
        effect.state,
        effect.claimToken,
        whole(operation, "sends", effect.sends),
        effect.payload,
        effect.outcome,
      ]),
  }
}

const attempts = (): Part => {
  const stamped = { retry_at: "updated.updated_at + given_retry_in_ms", ended_at: "updated.updated_at" }
  return {
    name: "attempt",
    given: bound(attemptTable, stamped, [given("retry_in_ms", "integer")]),
    write: inserting(attemptTable, stamped, replacing(attemptTable)),
    rows: ({ attempts, lease, seq }) =>
      [...new Map(attempts.map((attempt) => [JSON.stringify([attempt.path, attempt.attempt]), attempt])).values()].map(
        (attempt) => [
          lease.namespace,
          lease.runId,
          attempt.path,
          whole(operation, "attempt", attempt.attempt),
          whole(operation, "seq", attempt.seq ?? seq),
          attempt.kind,
          attempt.error,
          attempt.output,
          attempt.retryInMs === null ? null : wholeMs(operation, "retryInMs", attempt.retryInMs),
        ],
      ),
  }
}

const signals: Part = {
  name: "signal",
  given: consumedColumns,
  write: (dialect) => consumingUpdate(dialect, `given_signal ${joined}`, ""),
  rows: consumedRows,
}

const waits = (): Part => {
  const stamped = {
    wake_at: "coalesce(updated.updated_at + given_wake_in_ms, given_wake_time)",
    opened_at: "updated.updated_at",
    state: "'open'",
    decided_at: "null",
    decision: "null",
  }
  return {
    name: "wait",
    given: bound(waitTable, stamped, [given("wake_in_ms", "integer"), given("wake_time", "integer")]),
    write: inserting(waitTable, stamped, replacing(waitTable)),
    rows: ({ lease, seq, waits }) =>
      openedWaits(waits).map(({ data, kind, name, path, seq: own, wake: opened }) => {
        const wake = wakeOf(opened)
        const opens = whole(operation, "seq", own ?? seq)
        return [lease.namespace, lease.runId, path, opens, kind, name, data, wake.inMs, wake.at]
      }),
  }
}

// What is closed and opened again stands in the other part alone: of one statement one row cannot be both.
const closes: Part = {
  name: "close",
  given: closedColumns,
  write: (dialect) => closingDelete(dialect, `given_close ${joined}`),
  rows: closedRows,
}

const writePart = (dialect: Dialect, { given, name, write }: Part, rows: string): string =>
  `given_${name} (${names(given)}) as (${rows}),
written_${name} as (
${write(dialect)}
)`

/** Makes the statement of a batch. Throws a `StoreError` for a number that no column holds. */
export const commitAtOnce = (dialect: Dialect): ((batch: ReadonlyArray<CommitRows>) => Statement) => {
  const parts = [steps(), effects(), attempts(), signals, closes, waits()]
  const run = dialect.table("run")
  const limited = dialect.limitLocks === null ? "" : ` from (select ${dialect.limitLocks}) as limited`
  const clock = `clock (at) as (select ${dialect.now}${limited})`
  // Of several runs each is locked before one is written; a single one is locked by its update.
  const locked = `locked (namespace, run_id) as (
select run.namespace, run.run_id
from clock, given join ${run} as run on run.namespace = given_namespace and run.run_id = given_run_id
order by run.namespace, run.run_id ${dialect.lockRows ?? ""} of run
),
`
  const update = (single: boolean): string =>
    single
      ? guardingUpdate(dialect, "given, clock", "")
      : guardingUpdate(
          dialect,
          "given, clock, locked",
          " and run.namespace = locked.namespace and run.run_id = locked.run_id",
        )
  const write = (shape: Shape, used: ReadonlyArray<Part>, counts: ReadonlyArray<number>): string =>
    textOf(dialect, (place) => {
      const [guards = 0, ...others] = counts
      const rows = (columns: ReadonlyArray<Column>, count = 0): string =>
        shape === "lone" ? dialect.row(columns, place) : dialect.rows(columns, count, place)
      return `with given (${names(guardColumns)}) as (${rows(guardColumns, guards)}),
${clock},
${shape === "many" ? locked : ""}updated as (
${update(shape !== "many")}
returning run.number, run.namespace, run.run_id, run.updated_at, run.status
)${used.map((part, index) => `,\n${writePart(dialect, part, rows(part.given, others[index]))}`).join("")}
select ${selectList(dialect, committedColumns)} from updated`
    })
  // One text for each shape and combination of parts: a commit that only adds a step does not plan the upsert of intents.
  const texts = new Map<string, string>()
  return (batch) => {
    const guards = batch.map(guardRow)
    const written = parts
      .map((part) => ({ part, rows: batch.flatMap(part.rows) }))
      .filter(({ rows }) => rows.length > 0)
    const shape = guards.length > 1 ? "many" : written.every(({ rows }) => rows.length === 1) ? "lone" : "one"
    const name = [shape, ...written.map(({ part }) => part.name)].join(" ")
    let text = texts.get(name)
    if (text === undefined) {
      text = write(
        shape,
        written.map(({ part }) => part),
        [guards.length, ...written.map(({ rows }) => rows.length)],
      )
      texts.set(name, text)
    }
    const params = (columns: ReadonlyArray<Column>, rows: Rows): ReadonlyArray<unknown> =>
      shape === "lone" ? rows[0]! : dialect.rowParams(columns, rows)
    return {
      text,
      params: [...params(guardColumns, guards), ...written.flatMap(({ part, rows }) => params(part.given, rows))],
    }
  }
}
