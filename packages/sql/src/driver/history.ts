/** What a stretch of a run's commits has left (D38). */
import type { CheckpointDriver, HistoryRows, StoreError } from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Database } from "../Database.js"
import type { Dialect } from "../Dialect.js"
import { attempt, readAll } from "../readRow.js"
import type { Statement } from "../Statement.js"
import { historyStatements } from "../statements/history.js"
import { attemptTable, recordColumns, stepTable, waitTable, type Table } from "../tables.js"

/**
 * Three queries and no snapshot: what a commit has left of steps and attempts stays as it is, and of waits those are told
 * of that stand when they are looked at.
 */
export const history = (dialect: Dialect, database: Database): Pick<CheckpointDriver, "loadHistory"> => {
  const statements = historyStatements(dialect)
  const operation = "load history"

  const rows = <A>(table: Table, statement: () => Statement): Effect.Effect<ReadonlyArray<A>, StoreError> =>
    attempt(statement).pipe(
      Effect.flatMap((given) => database.query(operation, given)),
      Effect.flatMap((found) => attempt(() => readAll<A>(operation, recordColumns(table), found))),
    )

  return {
    loadHistory: (query) =>
      query.limit < 1
        ? Effect.succeed({ steps: [], attempts: [], waits: [] })
        : Effect.all({
            steps: rows<HistoryRows["steps"][number]>(stepTable, () => statements.steps(query)),
            attempts: rows<HistoryRows["attempts"][number]>(attemptTable, () => statements.attempts(query)),
            waits: rows<HistoryRows["waits"][number]>(waitTable, () => statements.waits(query)),
          }),
  }
}
