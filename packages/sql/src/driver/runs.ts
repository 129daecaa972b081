/** One run: created, read, loaded, unparked; and the clock by which all of it is judged. */
import {
  StoreError,
  type AttemptRow,
  type CheckpointDriver,
  type EffectRecord,
  type LoadedRows,
  type NewRunRow,
  type OpenRows,
  type RunRow,
  type StepRecord,
} from "@cairn/core"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { Database, Row, Session } from "../Database.js"
import type { Dialect } from "../Dialect.js"
import { attempt, keyOf, readAll, readEach, readFirst, readRow } from "../readRow.js"
import { inBatches, type Bound, type Statement } from "../Statement.js"
import { newRunRow, outcomeColumns, runStatements } from "../statements/runs.js"
import { stepsStatement } from "../statements/steps.js"
import { attemptTable, effectTable, recordColumns, runTable, stepTable, storeTable, withoutSeq } from "../tables.js"

type RunCalls = Pick<
  CheckpointDriver,
  | "storeId"
  | "now"
  | "createRun"
  | "createChild"
  | "createRuns"
  | "findRun"
  | "findRuns"
  | "load"
  | "loadSteps"
  | "loadOpen"
  | "unpark"
>

/** What the driver does with one run. */
export const runs = (dialect: Dialect, database: Database): RunCalls => {
  const statements = runStatements(dialect)
  const stepsOf = stepsStatement(dialect)
  const nothing = (operation: string, runId: string): StoreError =>
    new StoreError({ reason: "Unknown", operation, problem: `run '${runId}' was neither created nor found` })

  const createRun: CheckpointDriver["createRun"] = (run) => {
    const operation = `create run '${run.runId}'`
    return database.transaction(operation, "usual", (session) =>
      Effect.gen(function* () {
        const insert = yield* attempt(() => statements.insert([newRunRow(run)]))
        const inserted = yield* session.run(insert)
        const rows = inserted.length > 0 ? inserted : yield* session.run(statements.find(run.namespace, run.runId))
        const row = yield* attempt(() => readFirst<RunRow>(operation, runTable.columns, rows))
        return row === null ? yield* nothing(operation, run.runId) : { created: inserted.length > 0, run: row }
      }),
    )
  }

  /** By one statement alone; what was there is read after it. Null where it was neither created nor found. */
  const createBy = (run: NewRunRow, insert: () => Statement) => {
    const operation = `create run '${run.runId}'`
    return Effect.gen(function* () {
      const inserted = yield* Effect.flatMap(attempt(insert), (statement) => database.write(operation, statement))
      const rows =
        inserted.length > 0 ? inserted : yield* database.query(operation, statements.find(run.namespace, run.runId))
      const row = yield* attempt(() => readFirst<RunRow>(operation, runTable.columns, rows))
      return row === null ? null : { created: inserted.length > 0, run: row }
    })
  }

  const createAlone = (run: NewRunRow) =>
    Effect.flatMap(
      createBy(run, () => statements.insert([newRunRow(run)])),
      (made) => (made === null ? Effect.fail(nothing(`create run '${run.runId}'`, run.runId)) : Effect.succeed([made])),
    )

  const createChild: CheckpointDriver["createChild"] = (child, parent) =>
    createBy(child, () => statements.insertChild(child, parent))

  const createRuns: CheckpointDriver["createRuns"] = (given) => {
    const operation = "create runs"
    // In one order whoever creates them: two that create the same ones never wait for each other in a circle.
    // Reversed: of several of one id the first counts.
    const byKey = new Map(given.toReversed().map((run) => [keyOf(run.namespace, run.runId), run]))
    const sorted = [...byKey].sort(([a], [b]) => (a < b ? -1 : 1))
    const keys = sorted.map(([, run]) => [run.namespace, run.runId])
    const rowsOf = (rows: ReadonlyArray<Row>) =>
      attempt(() => {
        const read = readAll<RunRow>(operation, runTable.columns, rows)
        return new Map(read.map((run) => [keyOf(run.namespace, run.runId), run]))
      })
    const inParts = (
      session: Session,
      rows: ReadonlyArray<ReadonlyArray<Bound>>,
      statement: (rows: ReadonlyArray<ReadonlyArray<Bound>>) => Statement,
    ) =>
      Effect.map(
        Effect.forEach(inBatches(dialect, rows), (batch) => session.run(statement(batch))),
        (all) => all.flat(),
      )
    const within = (session: Session) =>
      Effect.gen(function* () {
        const values = yield* attempt(() => sorted.map(([, run]) => newRunRow(run)))
        const created = yield* Effect.flatMap(inParts(session, values, statements.insert), rowsOf)
        const others = keys.filter(([namespace, runId]) => !created.has(keyOf(namespace!, runId!)))
        const found = yield* Effect.flatMap(inParts(session, others, statements.findAll), rowsOf)
        const taken = new Set<string>()
        return yield* Effect.forEach(given, ({ namespace, runId }) => {
          const key = keyOf(namespace, runId)
          const isFirst = !taken.has(key)
          taken.add(key)
          const run = created.get(key) ?? found.get(key)
          return run === undefined
            ? Effect.fail(nothing(operation, runId))
            : Effect.succeed({ created: isFirst && created.has(key), run })
        })
      })
    if (given.length === 0) return Effect.succeed([])
    // A lone run is inserted by a statement alone, where that is a round trip and not three; what was there is read after.
    return given.length === 1 && dialect.commitsAtOnce
      ? createAlone(given[0]!)
      : database.transaction(operation, "usual", within)
  }

  const findRun: CheckpointDriver["findRun"] = (namespace, runId) => {
    const operation = `read run '${runId}'`
    return Effect.flatMap(database.query(operation, statements.find(namespace, runId)), (rows) =>
      attempt(() => readFirst<RunRow>(operation, runTable.columns, rows)),
    )
  }

  const named = ({ runId }: Row): string => `read run '${String(runId)}'`

  const findRuns: CheckpointDriver["findRuns"] = (keys) => {
    const operation = "read runs"
    const wanted = [
      ...new Map(keys.map((key) => [keyOf(key.namespace, key.runId), [key.namespace, key.runId]])).values(),
    ]
    const asked = Effect.forEach(inBatches(dialect, wanted), (batch) =>
      database.query(operation, statements.outcomes(batch)),
    )
    return Effect.flatMap(asked, (found) =>
      attempt(() => {
        const rows = found.flat()
        const read = readEach<Omit<RunRow, "input">>(named, outcomeColumns, rows)
        const byKey = new Map(
          read.map((run, index) => {
            const { namespace, runId } = rows[index]!
            return [keyOf(String(namespace), String(runId)), Either.merge(run)]
          }),
        )
        return keys.map((key) => byKey.get(keyOf(key.namespace, key.runId)) ?? null)
      }),
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

  const loadSteps: CheckpointDriver["loadSteps"] = (query) => {
    const operation = `load steps of run '${query.runId}'`
    if (query.scopes?.length === 0 || (query.limit !== null && query.limit < 1)) return Effect.succeed([])
    return attempt(() => stepsOf(query)).pipe(
      Effect.flatMap((statement) => database.query(operation, statement)),
      Effect.flatMap((rows) => attempt(() => readAll<StepRecord>(operation, recordColumns(stepTable), rows))),
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
          attempts: readAll<AttemptRow>(operation, withoutSeq(recordColumns(attemptTable)), attempts),
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

  const storeId: CheckpointDriver["storeId"] = Effect.flatMap(
    database.query("read its id", statements.storeId),
    (rows) =>
      attempt(() => readRow<{ readonly storeId: string }>("read its id", storeTable.columns, rows[0] ?? {}).storeId),
  )

  return { storeId, now, createRun, createChild, createRuns, findRun, findRuns, load, loadSteps, loadOpen, unpark }
}
