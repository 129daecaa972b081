/** What a stretch of a run's commits has left, each part along an index in order of `seq` (D38). */
import type { HistoryQuery } from "@cairn/core"
import type { Dialect } from "../Dialect.js"
import { whole } from "../readRow.js"
import { textOf, type Bound, type Place, type Statement } from "../Statement.js"
import { allAttempts, scopedSteps } from "../indexes.js"
import { attemptTable, recordColumns, selectList, stepTable, waitTable, type Table } from "../tables.js"
import { rowsOfRun } from "./rowsOfRun.js"

const operation = "load history"

const stretch = (dialect: Dialect, table: Table, place: Place): string =>
  `${rowsOfRun(dialect, table, place)} and seq > ${place()} and seq <= ${place()}`

const rangeOf = ({ after, limit, namespace, runId, through }: HistoryQuery): ReadonlyArray<Bound> => [
  namespace,
  runId,
  whole(operation, "after", after),
  whole(operation, "through", through),
  whole(operation, "limit", limit),
]

const ofTable = (dialect: Dialect, table: Table, condition = "") => {
  const text = textOf(
    dialect,
    (place) => `select ${selectList(dialect, recordColumns(table))} from ${dialect.table(table.name)} as ${table.name}
where ${stretch(dialect, table, place)}${condition} order by seq limit ${place()}`,
  )
  return (query: HistoryQuery): Statement => ({ text, params: rangeOf(query) })
}

/** The workflow's own steps are as many as its nodes, and stand together; those of turns and items have an index. */
const steps = (dialect: Dialect) => {
  const columns = recordColumns(stepTable)
  const among = (place: Place, condition: string): string =>
    `select * from (select ${selectList(dialect, columns)} from ${dialect.table("step")} as step
where ${stretch(dialect, stepTable, place)} and ${condition} order by seq limit ${place()}) as part`
  const text = textOf(
    dialect,
    (place) =>
      `${among(place, "scope = ''")}\nunion all\n${among(place, scopedSteps)}\norder by "seq" limit ${place()}`,
  )
  return (query: HistoryQuery): Statement => {
    const range = rangeOf(query)
    return { text, params: [...range, ...range, query.limit] }
  }
}

export const historyStatements = (dialect: Dialect) => ({
  steps: steps(dialect),
  attempts: ofTable(dialect, attemptTable, ` and ${allAttempts}`),
  waits: ofTable(dialect, waitTable),
})
