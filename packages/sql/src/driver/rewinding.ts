/** A run goes back to what it was before a commit (D42). */
import type { CheckpointDriver, RewindResult, RunRow, StoreError } from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Database } from "../Database.js"
import type { Dialect } from "../Dialect.js"
import { attempt, readFirst, readRow } from "../readRow.js"
import { commitStatements, stepRows } from "../statements/commit.js"
import { performedColumn, rewindStatements, rewoundColumns } from "../statements/rewind.js"
import { standingColumns } from "../statements/runs.js"

type Standing = Pick<RunRow, "seq" | "fence" | "claimToken" | "status" | "updatedAt">

const columns = standingColumns.filter(({ field }) => field !== "namespace" && field !== "runId")

export const rewinding = (dialect: Dialect, database: Database): Pick<CheckpointDriver, "rewindRun"> => {
  const statements = rewindStatements(dialect)
  const { insertSteps } = commitStatements(dialect)

  const rewindRun: CheckpointDriver["rewindRun"] = (rewind) => {
    const { base, lease, mark, seq } = rewind
    const operation = `rewind run '${lease.runId}'`
    return database.transaction(operation, "usual", (session): Effect.Effect<RewindResult, StoreError> =>
      Effect.gen(function* () {
        const held = yield* session.run(statements.hold(lease))
        const run = yield* attempt(() => readFirst<Standing>(operation, columns, held))
        // D3, D4: nobody changes it from here on, and the update compares all of it once more.
        const isMine = run !== null && run.fence === lease.fence && run.claimToken === lease.claimToken
        if (!isMine || run.seq !== base || seq <= base) return { _tag: "Refused", run }
        const asked = yield* session.run(yield* attempt(() => statements.performed(rewind)))
        const { performed } = yield* attempt(() =>
          readRow<{ readonly performed: number }>(operation, [performedColumn], asked[0] ?? {}),
        )
        if (performed === 1) return { _tag: "Performed" }
        const updated = yield* session.run(yield* attempt(() => statements.update(rewind)))
        if (updated.length === 0) return { _tag: "Refused", run }
        const { number, updatedAt } = yield* attempt(() =>
          readRow<Pick<RunRow, "updatedAt"> & { readonly number: number }>(operation, rewoundColumns, updated[0] ?? {}),
        )
        for (const statement of statements.undo(rewind)) yield* session.run(statement)
        const rows = yield* attempt(() => stepRows({ steps: [mark] }, number, updatedAt))
        yield* session.run(insertSteps(rows))
        return { _tag: "Committed", at: updatedAt, status: "running" }
      }),
    )
  }
  return { rewindRun }
}
