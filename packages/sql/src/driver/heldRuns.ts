/** A run's row, held until the transaction ends, and what becomes of it once something has reached the run. */
import type { RunRow, StoreError } from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Row, Session } from "../Database.js"
import type { Dialect } from "../Dialect.js"
import { attempt, readFirst } from "../readRow.js"
import { heldColumns, inboxStatements, waitsColumn } from "../statements/inbox.js"

/** `waits`: 1 if the run goes on once something reaches it. */
export type Held = Pick<
  RunRow,
  "status" | "inbox" | "cancelAt" | "pausedAt" | "fence" | "claimToken" | "leaseOwner"
> & {
  readonly waits: number
}

export const isFinal = (status: RunRow["status"]): boolean =>
  status === "completed" || status === "failed" || status === "canceled"

export const heldRuns = (dialect: Dialect) => {
  const statements = inboxStatements(dialect)
  return {
    hold: (
      session: Session,
      operation: string,
      namespace: string,
      runId: string,
    ): Effect.Effect<Held | null, StoreError> =>
      Effect.flatMap(session.run(statements.lock(namespace, runId)), (rows) =>
        attempt(() => readFirst<Held>(operation, [...heldColumns, waitsColumn], rows)),
      ),
    /** Counts what has arrived, and wakes the run if it waits (D22). */
    reach: (
      session: Session,
      run: Held,
      namespace: string,
      runId: string,
    ): Effect.Effect<ReadonlyArray<Row>, StoreError> =>
      session.run((run.waits === 1 ? statements.countAndWake : statements.count)(namespace, runId)),
  }
}
