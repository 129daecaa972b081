/**
 * The tables and their columns: one list for the DDL, the statements and the checks of what is read back.
 *
 * A column is named like the field of the row, in snake case; queries give it back under the field's name.
 */
import type { Dialect } from "./Dialect.js"

export type TableName =
  | "run"
  | "step"
  | "effect"
  | "attempt"
  | "signal"
  | "wait"
  | "worker"
  | "rate"
  | "schedule"
  | "call"
  | "spend"
  | "call_cost"
  | "store"
  | "migration"

/** `json` is text that the database must not touch. */
export type ColumnType = "text" | "integer" | "json"

export interface Column {
  readonly name: string
  readonly field: string
  readonly type: ColumnType
  readonly nullable: boolean
}

/** A column that the database keeps by itself, for an index alone; `is` computes it from other columns of the row. */
interface Derived {
  readonly name: string
  readonly type: ColumnType
  readonly is: string
}

/**
 * A table. `key` tells its rows apart; `columns` are in the order of the DDL. With `number`, the database gives each row a
 * number besides, in a column of that name before the others; with `derived`, it keeps another one after them. `rewritten`: each
 * commit writes its row.
 *
 * @category models
 * @since 0.1.0
 */
export interface Table {
  readonly name: TableName
  readonly columns: ReadonlyArray<Column>
  readonly key: ReadonlyArray<string>
  readonly number?: string
  readonly derived?: Derived
  readonly rewritten?: true
}

const column = (field: string, type: ColumnType, nullable = false): Column => ({
  name: field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
  field,
  type,
  nullable,
})

const text = (field: string) => column(field, "text")
const integer = (field: string) => column(field, "integer")
const orNull = (column: Column): Column => ({ ...column, nullable: true })
const json = (field: string) => column(field, "json")

const runKey = [text("namespace"), text("runId")]

/**
 * A run's number stands for its key where rows are many; nobody outside the database sees it. Whoever deletes a run deletes its
 * steps before it: a database may give the number of a deleted row again.
 */
export const runTable: Table = {
  name: "run",
  key: ["namespace", "run_id"],
  number: "number",
  // By itself `updated_at` changes with every commit, and so would each index that holds it.
  derived: { name: "pending_since", type: "integer", is: "case when status = 'pending' then updated_at end" },
  rewritten: true,
  columns: [
    ...runKey,
    text("workflow"),
    integer("version"),
    text("planHash"),
    text("status"),
    integer("seq"),
    orNull(text("leaseOwner")),
    integer("fence"),
    orNull(text("claimToken")),
    integer("previousUntil"),
    orNull(integer("wakeAt")),
    integer("inbox"),
    integer("recoveries"),
    integer("interruptions"),
    orNull(integer("cancelAt")),
    orNull(text("cancelReason")),
    orNull(integer("pausedAt")),
    integer("priority"),
    orNull(text("parentRunId")),
    orNull(text("parentPath")),
    orNull(text("flowKey")),
    orNull(text("forkedFrom")),
    integer("createdAt"),
    integer("updatedAt"),
    text("inputHash"),
    orNull(text("cursor")),
    // The long ones last: what stands before them is read without them.
    orNull(json("output")),
    orNull(json("failure")),
    orNull(json("parked")),
    orNull(json("input")),
  ],
}

/**
 * The committed steps. The path says which scope it stands in: with the scope before it the key is as unique as without, and
 * one scope of a run is one stretch of it (D11). Numbers come first, where nothing has to be aligned for them; that of the run
 * instead of its key, which each step would hold twice.
 */
export const stepTable: Table = {
  name: "step",
  key: ["run_number", "scope", "path"],
  columns: [
    integer("runNumber"),
    integer("seq"),
    integer("attempts"),
    integer("durationMs"),
    integer("committedAt"),
    text("scope"),
    text("path"),
    text("effect"),
    orNull(text("idempotencyKey")),
    orNull(json("result")),
  ],
}

export const effectTable: Table = {
  name: "effect",
  key: ["namespace", "run_id", "path", "generation"],
  columns: [
    ...runKey,
    text("path"),
    integer("generation"),
    text("operation"),
    text("idempotencyKey"),
    text("payloadHash"),
    text("state"),
    text("claimToken"),
    integer("sends"),
    integer("intentAt"),
    orNull(integer("settledAt")),
    orNull(json("payload")),
    orNull(json("outcome")),
  ],
}

export const attemptTable: Table = {
  name: "attempt",
  key: ["namespace", "run_id", "path", "attempt"],
  columns: [
    ...runKey,
    text("path"),
    integer("attempt"),
    integer("seq"),
    text("kind"),
    orNull(integer("retryAt")),
    integer("endedAt"),
    json("error"),
    orNull(json("output")),
  ],
}

/** What was sent to a run. `consumedBy` is the path of the step that took it: the row stays, so that its id stays known. */
export const signalTable: Table = {
  name: "signal",
  key: ["namespace", "run_id", "signal_id"],
  columns: [
    ...runKey,
    text("signalId"),
    text("name"),
    text("payloadHash"),
    integer("position"),
    integer("sentAt"),
    orNull(text("consumedBy")),
    orNull(json("payload")),
  ],
}

/** What a run waits for. The row goes when the wait is over. */
export const waitTable: Table = {
  name: "wait",
  key: ["namespace", "run_id", "path"],
  columns: [
    ...runKey,
    text("path"),
    integer("seq"),
    text("kind"),
    orNull(text("name")),
    orNull(integer("wakeAt")),
    integer("openedAt"),
    text("state"),
    orNull(integer("decidedAt")),
    orNull(json("data")),
    orNull(json("decision")),
  ],
}

/** One row a worker: a heartbeat writes here, and no run row is touched. */
export const workerTable: Table = {
  name: "worker",
  key: ["worker_id"],
  columns: [text("workerId"), integer("until")],
}

/** What began in one millisecond, for as long as a rate counts it: in order of time, so that a look reads what counts alone. */
export const rateTable: Table = {
  name: "rate",
  key: ["namespace", "workflow", "started_at", "flow_key"],
  columns: [text("namespace"), text("workflow"), integer("startedAt"), text("flowKey"), integer("starts")],
}

export const scheduleTable: Table = {
  name: "schedule",
  key: ["namespace", "schedule_id"],
  columns: [
    text("namespace"),
    text("scheduleId"),
    text("workflow"),
    integer("version"),
    text("cron"),
    text("timeZone"),
    text("overlap"),
    text("catchUp"),
    integer("nextAt"),
    orNull(integer("lastAt")),
    orNull(text("lastRunId")),
    integer("createdAt"),
    orNull(json("input")),
  ],
}

/**
 * The paid calls (D39, D40). What is known when it begins comes first; `interruptions` is its run's when it began. The key finds a
 * call, the index those of a time.
 */
export const callTable: Table = {
  name: "call",
  key: ["namespace", "run_id", "call_id"],
  columns: [
    integer("attempt"),
    integer("fence"),
    integer("interruptions"),
    integer("startedAt"),
    orNull(integer("endedAt")),
    orNull(integer("atMost")),
    orNull(integer("inputTokens")),
    orNull(integer("outputTokens")),
    orNull(integer("cachedInputTokens")),
    orNull(integer("microDollars")),
    ...runKey,
    text("callId"),
    text("scope"),
    text("path"),
    text("step"),
    text("model"),
    text("state"),
    text("claimToken"),
  ],
}

/** What is spent and reserved, by what it is counted in; `day` counts from 1970, and is 0 for a run. */
export const spendTable: Table = {
  name: "spend",
  key: ["namespace", "kind", "name", "day"],
  columns: [
    text("namespace"),
    text("kind"),
    text("name"),
    integer("day"),
    integer("spent"),
    integer("reserved"),
    integer("calls"),
    integer("unknown"),
  ],
}

/** What the view of calls gives of each (D41). */
export const callCostColumns: ReadonlyArray<Column> = [
  ...callTable.columns.filter(({ field }) => field !== "namespace" && field !== "interruptions"),
  text("workflow"),
  text("outcome"),
  text("settled"),
  integer("saved"),
]

/** One row: which database this is. */
export const storeTable: Table = {
  name: "store",
  key: ["store_id"],
  columns: [text("storeId")],
}

export const migrationTable: Table = {
  name: "migration",
  key: ["version"],
  columns: [integer("version"), text("name"), integer("appliedAt")],
}

/** The columns of a record that belongs to a run: all but the run's key or number. */
export const recordColumns = (table: Table): ReadonlyArray<Column> =>
  table.columns.filter(({ name }) => !["namespace", "run_id", "run_number"].includes(name))

/** What only a history tells of a record: which commit has left it (D38). */
export const withoutSeq = (columns: ReadonlyArray<Column>): ReadonlyArray<Column> =>
  columns.filter(({ name }) => name !== "seq")

/** A select list that names each column by its field. */
export const selectList = (dialect: Dialect, columns: ReadonlyArray<Column>, from?: string): string =>
  columns
    .map((column) => {
      const name = from === undefined ? column.name : `${from}.${column.name}`
      return `${dialect.select(name, column.type)} as "${column.field}"`
    })
    .join(", ")

export const names = (columns: ReadonlyArray<Column>): string => columns.map((column) => column.name).join(", ")

/**
 * The statement that creates a table.
 *
 * @category schema
 * @since 0.1.0
 */
export const createTable = (dialect: Dialect, table: Table): string => {
  const columns = table.columns.map(
    (column) => `  ${column.name} ${dialect.types[column.type]}${column.nullable ? "" : " not null"}`,
  )
  const key = `(${table.key.join(", ")})`
  const { derived, number, rewritten = false } = table
  if (derived !== undefined) {
    columns.push(`  ${derived.name} ${dialect.types[derived.type]} generated always as (${derived.is}) stored`)
  }
  const body =
    number === undefined
      ? [...columns, `  primary key ${key}`]
      : [`  ${number} ${dialect.numbering} not null`, ...columns, `  primary key (${number})`, `  unique ${key}`]
  return `create table ${dialect.table(table.name)} (\n${body.join(",\n")}\n) ${dialect.tableOptions(rewritten)}`.trimEnd()
}
