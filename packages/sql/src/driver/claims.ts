/** Due runs are looked for, then taken; what the update gives back is what the worker owns. */
import type { CheckpointDriver, ClaimRequest, RunRow } from "@cairn/core"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { Database, Row, Session } from "../Database.js"
import type { Dialect } from "../Dialect.js"
import { attempt, keyOf, readAll, readEach } from "../readRow.js"
import { inBatches, type Bound } from "../Statement.js"
import { claimStatements, dueColumns } from "../statements/claim.js"
import { runTable } from "../tables.js"
import { isLimited, limitedClaims } from "./limitedClaims.js"

interface Due {
  readonly namespace: string
  readonly runId: string
  readonly since: number
}

const claimOf = ({ runId }: Row): string => `claim run '${String(runId)}'`

const leftAlone =
  "a run that is due cannot be read, and is left alone: mend the column that is named, and set its lease_owner to null"

/** The claim of the driver. */
export const claims = (dialect: Dialect, database: Database) => {
  const statements = claimStatements(dialect)
  const operation = "claim runs"

  /** Takes the picked runs, in the order in which they were picked: longest due first. */
  const take = (session: Session, request: ClaimRequest, picked: ReadonlyArray<Due>) =>
    Effect.gen(function* () {
      const taken: Array<Row> = []
      const keyRow = (due: Due): ReadonlyArray<Bound> => [due.namespace, due.runId]
      if (statements.lockWorkers !== null) {
        yield* session.run(statements.lockWorkers(picked.map(keyRow), request.workerId))
      }
      for (const batch of inBatches(dialect, picked)) {
        const keys = batch.map(keyRow)
        taken.push(...(yield* session.run(statements.take(keys, request.workerId, request.claimToken))))
      }
      const order = new Map(picked.map((due, index) => [keyOf(due.namespace, due.runId), index]))
      const position = (run: RunRow): number => order.get(keyOf(run.namespace, run.runId)) ?? order.size
      const runs = yield* attempt(() => readEach<RunRow>(claimOf, runTable.columns, taken))
      // A worker that failed of it would never come to any other run; one that gave it back would get it again at once.
      for (const run of runs) if (Either.isLeft(run)) yield* Effect.logError(leftAlone, run.left)
      return runs.flatMap((run) => (Either.isRight(run) ? [run.right] : [])).sort((a, b) => position(a) - position(b))
    })

  const claimLimited = limitedClaims(dialect, database, take)

  const claim: CheckpointDriver["claim"] = (request) => {
    const { limit, runIds, workflows } = request
    if (limit < 1 || workflows.length === 0 || runIds?.length === 0) return Effect.succeed([])
    if (isLimited(request)) return claimLimited(request)
    const pick = statements.pick(request)
    const claiming = database.transaction(operation, "usual", (session) =>
      Effect.gen(function* () {
        const due = yield* session.run(pick)
        if (due.length === 0) return []
        const picked = yield* attempt(() => readAll<Due>(operation, dueColumns, due))
        return yield* take(session, request, picked)
      }),
    )
    return dialect.looksBeforeClaim
      ? // Whether there is anything at all.
        Effect.flatMap(database.query(operation, statements.look({ ...request, limit: 1 })), (due) =>
          due.length === 0 ? Effect.succeed([]) : claiming,
        )
      : claiming
  }
  return { claim }
}
