/** What runs wait for, and the decisions of people (D27, D28). */
import type { CheckpointDriver, DecideResult, Lease, RunRow, StoreError, WaitRecord } from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Database, Session } from "../Database.js"
import type { Dialect } from "../Dialect.js"
import { attempt, readAll, readFirst } from "../readRow.js"
import { inboxColumns, inboxStatements } from "../statements/inbox.js"
import { decidedColumns, waitColumns, waitStatements } from "../statements/waits.js"
import { heldRuns, isFinal, type Held } from "./heldRuns.js"

type WaitCalls = Pick<CheckpointDriver, "loadWaits" | "decideWait" | "expireWait">

/** D3 */
const isHeldUnder = (run: Held, lease: Lease): boolean =>
  run.leaseOwner !== null && run.fence === lease.fence && run.claimToken === lease.claimToken

/** What the driver does with waits. */
export const waits = (dialect: Dialect, database: Database): WaitCalls => {
  const statements = waitStatements(dialect)
  const inbox = inboxStatements(dialect)
  const { hold, reach } = heldRuns(dialect)

  const waitAt = (session: Session, operation: string, namespace: string, runId: string, path: string) =>
    Effect.flatMap(session.run(statements.find(namespace, runId, path)), (rows) =>
      attempt(() => readFirst<WaitRecord>(operation, waitColumns, rows)),
    )

  const loadWaits: CheckpointDriver["loadWaits"] = (namespace, runId) => {
    const operation = `load what run '${runId}' waits for`
    return database.snapshot(operation, (session) =>
      Effect.gen(function* () {
        const found = yield* session.run(inbox.inbox(namespace, runId))
        const run = yield* attempt(() => readFirst<Pick<RunRow, "inbox">>(operation, inboxColumns, found))
        if (run === null) return null
        const rows = yield* session.run(statements.list(namespace, runId))
        return { inbox: run.inbox, waits: yield* attempt(() => readAll<WaitRecord>(operation, waitColumns, rows)) }
      }),
    )
  }

  const decideWait: CheckpointDriver["decideWait"] = (given) => {
    const { name, namespace, path, runId } = given
    const operation = `decide '${path}' of run '${runId}'`
    return database.transaction(operation, "usual", (session): Effect.Effect<DecideResult, StoreError> =>
      Effect.gen(function* () {
        const run = yield* hold(session, operation, namespace, runId)
        if (run === null) return { _tag: "Missing" } as const
        const written = isFinal(run.status) ? [] : yield* session.run(statements.decide(given))
        const decided = yield* attempt(() =>
          readFirst<{ readonly decidedAt: number }>(operation, decidedColumns, written),
        )
        if (decided !== null) {
          yield* reach(session, run, namespace, runId)
          return { _tag: "Decided", at: decided.decidedAt } as const
        }
        const wait = yield* waitAt(session, operation, namespace, runId, path)
        return wait !== null && wait.name === name && wait.decision !== null && wait.decidedAt !== null
          ? ({ _tag: "AlreadyDecided", decision: wait.decision, at: wait.decidedAt } as const)
          : ({ _tag: "Closed" } as const)
      }),
    )
  }

  const expireWait: CheckpointDriver["expireWait"] = (lease, path) => {
    const { namespace, runId } = lease
    const operation = `close '${path}' of run '${runId}'`
    return database.transaction(operation, "usual", (session) =>
      Effect.gen(function* () {
        const run = yield* hold(session, operation, namespace, runId)
        if (run === null || !isHeldUnder(run, lease)) return null
        yield* session.run(statements.expire(namespace, runId, path))
        return yield* waitAt(session, operation, namespace, runId, path)
      }),
    )
  }
  return { loadWaits, decideWait, expireWait }
}
