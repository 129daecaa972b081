/** How a statement finds what belongs to a run: by the run's key, or by its number, which the key looks up once a statement. */
import type { Dialect } from "../Dialect.js"
import type { Place } from "../Statement.js"
import type { Table } from "../tables.js"

/** An expression that gives a run's number. It binds the namespace and the run id, in this order. */
export const runNumber = (dialect: Dialect, place: Place): string =>
  `(select keyed.number from ${dialect.table("run")} as keyed where keyed.namespace = ${place()} and keyed.run_id = ${place()})`

/** The condition that a row of a table belongs to a run. It binds the namespace and the run id, in this order. */
export const rowsOfRun = (dialect: Dialect, table: Table, place: Place): string =>
  table.key.includes("run_number")
    ? `${table.name}.run_number = ${runNumber(dialect, place)}`
    : `${table.name}.namespace = ${place()} and ${table.name}.run_id = ${place()}`
