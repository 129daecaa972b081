/** What people are asked: runs that are parked, and their answers to unknown outcomes. */
import type { AnswerRow, CheckpointDriver, ParkedRow, RunRow } from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Database, Session } from "../Database.js"
import type { Dialect } from "../Dialect.js"
import { attempt, readNear, readRow, readRun, whole } from "../readRow.js"
import { commitStatements } from "../statements/commit.js"
import { effectStatements } from "../statements/effects.js"
import { parkedColumns, runStatements } from "../statements/runs.js"
import { runTable } from "../tables.js"

const answeredColumns = runTable.columns.filter(({ field }) => field === "updatedAt")

/** What the driver does for people. */
export const answers = (dialect: Dialect, database: Database) => {
  const runs = runStatements(dialect)
  const effects = effectStatements(dialect)
  const { upsertAttempts } = commitStatements(dialect)

  const listParked: CheckpointDriver["listParked"] = (page) => {
    const operation = "list parked runs"
    if (page.limit < 1) return Effect.succeed([])
    return attempt(() => runs.listParked(page)).pipe(
      Effect.flatMap((statement) => database.query(operation, statement)),
      Effect.flatMap((rows) => attempt(() => rows.map((row) => readNear<ParkedRow>(readRun(row), parkedColumns, row)))),
    )
  }

  /** What is left to do where the run stands as the person has seen it: its row is held. */
  const settle = (session: Session, operation: string, given: AnswerRow) =>
    Effect.gen(function* () {
      // Settled by a worker that knew after all, or by another answer: the run is left as it is.
      const settled = yield* session.run(effects.answer(given))
      if (settled.length === 0) return false
      const unparked = yield* session.run(runs.unpark(given.namespace, given.runId))
      if (given.attempt === null) return true
      const { attempt: number, error, kind, output } = given.attempt
      const row = yield* attempt(() => {
        const { updatedAt } = readRow<Pick<RunRow, "updatedAt">>(operation, answeredColumns, unparked[0] ?? {})
        const { namespace, path, runId, seq } = given
        const order = [whole(operation, "attempt", number), whole(operation, "seq", seq) + 1]
        return [namespace, runId, path, ...order, kind, null, updatedAt, error, output]
      })
      yield* session.run(upsertAttempts([row]))
      return true
    })

  const answer: CheckpointDriver["answer"] = (given) => {
    const operation = `answer for '${given.path}' of run '${given.runId}'`
    return Effect.flatMap(
      attempt(() => runs.lockParked(given)),
      (lock) =>
        database.transaction(operation, "usual", (session) =>
          Effect.flatMap(session.run(lock), (held) =>
            held.length === 0 ? Effect.succeed(false) : settle(session, operation, given),
          ),
        ),
    )
  }
  return { answer, listParked }
}
