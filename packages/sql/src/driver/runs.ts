/** One run: created, read, loaded, unparked; and the clock by which all of it is judged. */
import {
  StoreError,
  type AttemptRow,
  type CheckpointDriver,
  type EffectRecord,
  type LoadedRows,
  type OpenRows,
  type RunRow,
  type StepRecord,
} from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Database, Row } from "../Database.js"
import type { Dialect } from "../Dialect.js"
import { attempt, readAll, readFirst, readRow } from "../readRow.js"
import { inBatches } from "../Statement.js"
import { newRunFields, runStatements } from "../statements/runs.js"
import { attemptTable, effectTable, recordColumns, runTable, stepTable } from "../tables.js"

/** What the driver does with one run. */
export const runs = (dialect: Dialect, database: Database) => {
  const statements = runStatements(dialect)
  const nothing = (operation: string, runId: string): StoreError =>
    new StoreError({ reason: "Unknown", operation, problem: `run '${runId}' was neither created nor found` })

  const createRun: CheckpointDriver["createRun"] = (run) => {
    const operation = `create run '${run.runId}'`
    const insert = statements.insert([newRunFields.map((field) => run[field as keyof typeof run])])
    return database.transaction(operation, "usual", (session) =>
      Effect.gen(function* () {
        const inserted = yield* session.run(insert)
        const rows = inserted.length > 0 ? inserted : yield* session.run(statements.find(run.namespace, run.runId))
        const row = yield* attempt(() => readFirst<RunRow>(operation, runTable.columns, rows))
        return row === null ? yield* nothing(operation, run.runId) : { created: inserted.length > 0, run: row }
      }),
    )
  }

  const findRun: CheckpointDriver["findRun"] = (namespace, runId) => {
    const operation = `read run '${runId}'`
    return Effect.flatMap(database.query(operation, statements.find(namespace, runId)), (rows) =>
      attempt(() => readFirst<RunRow>(operation, runTable.columns, rows)),
    )
  }

  const load: CheckpointDriver["load"] = (namespace, runId) => {
    const operation = `load run '${runId}'`
    return database.snapshot(operation, (session) =>
      Effect.gen(function* () {
        const found = yield* session.run(statements.find(namespace, runId))
        if (found.length === 0) return null
        const steps = yield* session.run(statements.steps(namespace, runId))
        return yield* attempt((): LoadedRows | null => {
          const run = readFirst<RunRow>(operation, runTable.columns, found)
          return run === null ? null : { run, steps: readAll<StepRecord>(operation, recordColumns(stepTable), steps) }
        })
      }),
    )
  }

  const loadOpen: CheckpointDriver["loadOpen"] = (namespace, runId, paths) => {
    const operation = `load what is open of run '${runId}'`
    const batches = inBatches(dialect, [...new Set(paths)])
    if (batches.length === 0) return Effect.succeed({ effects: [], attempts: [] })
    return database.snapshot(operation, (session) =>
      Effect.gen(function* () {
        const effects: Array<Row> = []
        const attempts: Array<Row> = []
        for (const batch of batches) {
          effects.push(...(yield* session.run(statements.effectsAt(namespace, runId, batch))))
          attempts.push(...(yield* session.run(statements.attemptsAt(namespace, runId, batch))))
        }
        return yield* attempt((): OpenRows => ({
          effects: readAll<EffectRecord>(operation, recordColumns(effectTable), effects),
          attempts: readAll<AttemptRow>(operation, recordColumns(attemptTable), attempts),
        }))
      }),
    )
  }

  const unpark: CheckpointDriver["unpark"] = (namespace, runId) =>
    Effect.map(
      database.transaction(`unpark run '${runId}'`, "usual", (session) =>
        session.run(statements.unpark(namespace, runId)),
      ),
      (rows) => rows.length > 0,
    )

  const now: CheckpointDriver["now"] = Effect.flatMap(database.query("read its clock", statements.now), (rows) =>
    attempt(() => readRow<{ readonly now: number }>("read its clock", statements.nowColumns, rows[0] ?? {}).now),
  )

  return { now, createRun, findRun, load, loadOpen, unpark }
}
