/**
 * The tables and their columns: one list for the DDL, the statements and the checks of what is read back.
 *
 * A column is named like the field of the row, in snake case; queries give it back under the field's name.
 */
import type { Dialect } from "./Dialect.js"

export type TableName =
  "run" | "step" | "effect" | "attempt" | "signal" | "wait" | "worker" | "rate" | "schedule" | "store" | "migration"

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
 * one scope of a run is one stretch of it (D11). Numbers come first, where nothing has to be aligned for them.
 */
export const stepTable: Table = {
  name: "step",
  key: ["namespace", "run_id", "scope", "path"],
  columns: [
    integer("seq"),
    integer("attempts"),
    integer("durationMs"),
    integer("committedAt"),
    ...runKey,
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
  const body = [...columns, `  primary key (${table.key.join(", ")})`].join(",\n")
  return `create table ${dialect.table(table.name)} (\n${body}\n) ${dialect.tableOptions}`.trimEnd()
}

interface Index {
  readonly name: string
  readonly table: TableName
  readonly on: string
  /** Null for an index of all rows. */
  readonly where: string | null
}

/**
 * The scopes that may hold many rows: those of the turns and items themselves end in a bracket. The index in the order of D11 is
 * theirs alone; a query that says the same as it may walk it.
 */
export const manySteps = "substr(scope, length(scope)) = '['"

/**
 * What a history is read by (D38): steps of turns and items, and attempts, each in order of `seq`. A workflow without loops pays
 * nothing for the first. What is always true stands there so that no other statement can take the index: the key, by which paths
 * are looked up, seems as good as it to a planner that knows nothing of the rows yet.
 */
export const scopedSteps = "scope <> '' and attempts >= 0"
export const allAttempts = "attempt >= 0"

const timed = "status in ('sleeping', 'waiting', 'review') and wake_at is not null and paused_at is null"

/**
 * What claims and look-ups walk. All but that of the list of runs are partial: a commit of a running run changes none of them,
 * finished and paused runs are in none that claims walk, and a step that stands in no loop is in none. What runs are listed by
 * never changes: it costs their creation alone.
 */
const indexes: ReadonlyArray<Index> = [
  // First: of indexes that seem alike, SQLite takes the one that was made last.
  { name: "run_listed", table: "run", on: "namespace, created_at, run_id", where: null },
  {
    name: "run_children",
    table: "run",
    on: "namespace, parent_run_id, created_at, run_id",
    where: "parent_run_id is not null",
  },
  {
    name: "run_pending",
    table: "run",
    on: "namespace, priority desc, updated_at",
    where: "status = 'pending' and paused_at is null",
  },
  { name: "run_timed", table: "run", on: "namespace, wake_at", where: `${timed} and priority = 0` },
  // Apart, so that the others are walked in the order in which they are claimed: many may come due at once.
  { name: "run_timed_prior", table: "run", on: "namespace, wake_at", where: `${timed} and priority <> 0` },
  {
    name: "run_running",
    table: "run",
    on: "namespace, lease_owner",
    where: "status = 'running' and paused_at is null",
  },
  { name: "step_many", table: "step", on: "namespace, run_id, scope, seq, path", where: manySteps },
  { name: "step_history", table: "step", on: "namespace, run_id, seq", where: scopedSteps },
  { name: "attempt_history", table: "attempt", on: "namespace, run_id, seq", where: allAttempts },
  { name: "run_parked", table: "run", on: "namespace, run_id", where: "status = 'review'" },
  { name: "signal_waiting", table: "signal", on: "namespace, run_id, position", where: "consumed_by is null" },
  { name: "schedule_next", table: "schedule", on: "namespace, next_at, schedule_id", where: null },
  { name: "run_owned", table: "run", on: "lease_owner", where: "lease_owner is not null" },
  { name: "wait_review", table: "wait", on: "namespace, opened_at, run_id, path", where: "kind = 'review'" },
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
      `create index ${dialect.index(name)} on ${dialect.table(table)} (${on})${where === null ? "" : ` where ${where}`}`,
  )
