/** Signals and the wish to cancel (D22, D24, D25). */
import type { CancelResult, CheckpointDriver, RunRow, SendResult, SignalRecord, StoreError } from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Database, Row } from "../Database.js"
import type { Dialect } from "../Dialect.js"
import { attempt, readAll, readFirst, whole } from "../readRow.js"
import { inBatches } from "../Statement.js"
import { inboxColumns, inboxStatements, knownColumns, signalColumns } from "../statements/inbox.js"
import { heldRuns, isFinal } from "./heldRuns.js"

const rests = (status: RunRow["status"]): boolean =>
  status === "waiting" || status === "sleeping" || status === "review"

/** What the driver does with what reaches a run. */
export const inbox = (dialect: Dialect, database: Database) => {
  const statements = inboxStatements(dialect)
  const { hold, reach } = heldRuns(dialect)

  const send: CheckpointDriver["send"] = (signal) => {
    const { name, namespace, payloadHash, runId, signalId } = signal
    const operation = `send a signal to run '${runId}'`
    return database.transaction(operation, "usual", (session): Effect.Effect<SendResult, StoreError> =>
      Effect.gen(function* () {
        const run = yield* hold(session, operation, namespace, runId)
        if (run === null) return { _tag: "Missing" } as const
        const found = yield* session.run(statements.findSignal(namespace, runId, signalId))
        const known = yield* attempt(() =>
          readFirst<Pick<SignalRecord, "name" | "payloadHash">>(operation, knownColumns, found),
        )
        if (known !== null) {
          const same = known.name === name && known.payloadHash === payloadHash
          return { _tag: same ? "Known" : "Differs" } as const
        }
        if (isFinal(run.status)) return { _tag: "Ended", status: run.status } as const
        const position = yield* attempt(() => whole(operation, "position", run.inbox + 1))
        yield* session.run(statements.insertSignal(signal, position))
        yield* reach(session, run, namespace, runId)
        return { _tag: "Sent", position } as const
      }),
    )
  }

  const loadSignals: CheckpointDriver["loadSignals"] = (namespace, runId, names) => {
    const operation = `load the signals of run '${runId}'`
    return database.snapshot(operation, (session) =>
      Effect.gen(function* () {
        const found = yield* session.run(statements.inbox(namespace, runId))
        const run = yield* attempt(() => readFirst<Pick<RunRow, "inbox">>(operation, inboxColumns, found))
        if (run === null) return null
        const rows: Array<Row> = []
        const batches = inBatches(dialect, [...new Set(names)])
        for (const batch of batches) rows.push(...(yield* session.run(statements.waiting(namespace, runId, batch))))
        const signals = yield* attempt(() => readAll<SignalRecord>(operation, signalColumns, rows))
        return { inbox: run.inbox, signals: [...signals].sort((a, b) => a.position - b.position) }
      }),
    )
  }

  const requestCancel: CheckpointDriver["requestCancel"] = (namespace, runId, reason) => {
    const operation = `ask that run '${runId}' be canceled`
    return database.transaction(operation, "usual", (session): Effect.Effect<CancelResult, StoreError> =>
      Effect.gen(function* () {
        const run = yield* hold(session, operation, namespace, runId)
        if (run === null) return "Missing"
        if (isFinal(run.status)) return "Ended"
        if (run.cancelAt !== null) return "Known"
        const { cancel, cancelAndTell, cancelAndWake } = statements
        // One that was paused as it waited for a claim can be claimed from now on.
        const mark = rests(run.status) ? cancelAndWake : run.pausedAt === null ? cancel : cancelAndTell
        yield* session.run(mark(namespace, runId, reason))
        return "Requested"
      }),
    )
  }
  return { send, loadSignals, requestCancel }
}
