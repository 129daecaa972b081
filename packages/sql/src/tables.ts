/**
 * The tables and their columns: one list for the DDL, the statements and the checks of what is read back.
 *
 * A column is named like the field of the row, in snake case; queries give it back under the field's name.
 */
import type { Dialect } from "./Dialect.js"

export type TableName = "run" | "step" | "effect" | "attempt" | "signal" | "worker" | "store" | "migration"

/** `json` is text that the database must not touch. */
export type ColumnType = "text" | "integer" | "json"

export interface Column {
  readonly name: string
  readonly field: string
  readonly type: ColumnType
  readonly nullable: boolean
}

/**
 * A table. `key` is its primary key; `columns` are in the order of the DDL.
 *
 * @category models
 * @since 0.1.0
 */
export interface Table {
  readonly name: TableName
  readonly columns: ReadonlyArray<Column>
  readonly key: ReadonlyArray<string>
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

export const runTable: Table = {
  name: "run",
  key: ["namespace", "run_id"],
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
    orNull(integer("cancelAt")),
    orNull(text("cancelReason")),
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

export const stepTable: Table = {
  name: "step",
  key: ["namespace", "run_id", "path"],
  columns: [
    ...runKey,
    text("path"),
    integer("seq"),
    text("effect"),
    orNull(text("idempotencyKey")),
    integer("attempts"),
    integer("durationMs"),
    integer("committedAt"),
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

/** One row a worker: a heartbeat writes here, and no run row is touched. */
export const workerTable: Table = {
  name: "worker",
  key: ["worker_id"],
  columns: [text("workerId"), integer("until")],
}

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

/** The columns of a record that belongs to a run: all but the run's key. */
export const recordColumns = (table: Table): ReadonlyArray<Column> =>
  table.columns.filter((column) => column.name !== "namespace" && column.name !== "run_id")

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
  const body = [...columns, `  primary key (${table.key.join(", ")})`].join(",\n")
  return `create table ${dialect.table(table.name)} (\n${body}\n) ${dialect.tableOptions}`.trimEnd()
}

interface Index {
  readonly name: string
  readonly table: TableName
  readonly on: string
  readonly where: string
}

/**
 * What claims and look-ups walk. All are partial: a commit of a running run changes none of them, and finished runs are
 * in none of them.
 */
const indexes: ReadonlyArray<Index> = [
  { name: "run_pending", table: "run", on: "namespace, updated_at", where: "status = 'pending'" },
  {
    name: "run_timed",
    table: "run",
    on: "namespace, wake_at",
    where: "status in ('sleeping', 'waiting') and wake_at is not null",
  },
  { name: "run_running", table: "run", on: "namespace, lease_owner", where: "status = 'running'" },
  { name: "run_parked", table: "run", on: "namespace, run_id", where: "status = 'review'" },
  { name: "signal_waiting", table: "signal", on: "namespace, run_id, position", where: "consumed_by is null" },
  { name: "run_owned", table: "run", on: "lease_owner", where: "lease_owner is not null" },
]

/**
 * The statements that create all indexes.
 *
 * @category schema
 * @since 0.1.0
 */
export const createIndexes = (dialect: Dialect): ReadonlyArray<string> =>
  indexes.map(
    ({ name, table, on, where }) =>
      `create index ${dialect.index(name)} on ${dialect.table(table)} (${on}) where ${where}`,
  )
