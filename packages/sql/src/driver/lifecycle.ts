/** Pausing, trying again and forking, and what of a run has happened outside (D32 to D34). */
import {
  StoreError,
  type CheckpointDriver,
  type EffectRecord,
  type PauseResult,
  type PerformedRow,
  type RunRow,
  type StepRecord,
} from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Database, Row, Session } from "../Database.js"
import type { Dialect } from "../Dialect.js"
import { attempt, readAll, readFirst, readRow, whole } from "../readRow.js"
import { inBatches } from "../Statement.js"
import { commitStatements } from "../statements/commit.js"
import { happenedColumns, lifecycleStatements, performedColumns, sourceColumns } from "../statements/lifecycle.js"
import { newRunRow, runStatements } from "../statements/runs.js"
import { runTable } from "../tables.js"
import { heldRuns, isFinal } from "./heldRuns.js"

type LifecycleCalls = Pick<CheckpointDriver, "setPaused" | "reopenRun" | "forkRun" | "loadPerformed">

const reopenedColumns = runTable.columns.filter(({ field }) => field === "updatedAt")

const byPath = (a: PerformedRow, b: PerformedRow): number => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0)

/** The effects with their steps, and the steps that are none of an operation. */
const performedRows = (
  steps: ReadonlyArray<Pick<StepRecord, "path" | "seq" | "effect">>,
  effects: ReadonlyArray<Pick<EffectRecord, "path" | "operation" | "idempotencyKey" | "state">>,
): ReadonlyArray<PerformedRow> => {
  const seqs = new Map(steps.map(({ path, seq }) => [path, seq]))
  const inside = steps.flatMap(({ effect, path, seq }): ReadonlyArray<PerformedRow> =>
    effect === "transaction" || effect === "child"
      ? [{ path, seq, kind: effect, operation: null, idempotencyKey: null, isKnown: true }]
      : [],
  )
  const outside = effects.map(({ idempotencyKey, operation, path, state }): PerformedRow => ({
    path,
    seq: seqs.get(path) ?? null,
    kind: "operation",
    operation,
    idempotencyKey,
    isKnown: state === "succeeded",
  }))
  return [...inside, ...outside].sort(byPath)
}

export const lifecycle = (dialect: Dialect, database: Database): LifecycleCalls => {
  const statements = lifecycleStatements(dialect)
  const runs = runStatements(dialect)
  const { upsertAttempts } = commitStatements(dialect)
  const { hold } = heldRuns(dialect)

  const setPaused: CheckpointDriver["setPaused"] = (namespace, runId, paused) => {
    const operation = `${paused ? "pause" : "resume"} run '${runId}'`
    return database.transaction(operation, "usual", (session): Effect.Effect<PauseResult, StoreError> =>
      Effect.gen(function* () {
        const run = yield* hold(session, operation, namespace, runId)
        if (run === null) return "Missing"
        if (isFinal(run.status) || (paused && run.cancelAt !== null)) return "Ended"
        if ((run.pausedAt !== null) === paused) return "Known"
        yield* session.run((paused ? statements.pause : statements.unpause)(namespace, runId))
        return "Done"
      }),
    )
  }

  const reopenRun: CheckpointDriver["reopenRun"] = ({ attempt: retried, namespace, path, runId, seq }) => {
    const operation = `retry run '${runId}'`
    return database.transaction(operation, "usual", (session) =>
      Effect.gen(function* () {
        const reopened = yield* session.run(yield* attempt(() => statements.reopen(namespace, runId, seq)))
        if (reopened.length === 0) return false
        const { attempt: number, error, kind, output } = retried
        const row = yield* attempt(() => {
          const { updatedAt } = readRow<Pick<RunRow, "updatedAt">>(operation, reopenedColumns, reopened[0] ?? {})
          const order = [whole(operation, "attempt", number), whole(operation, "seq", seq) + 1]
          return [namespace, runId, path, ...order, kind, null, updatedAt, error, output]
        })
        yield* session.run(upsertAttempts([row]))
        return true
      }),
    )
  }

  const first = (operation: string, rows: ReadonlyArray<Row>) =>
    Effect.flatMap(
      attempt(() => readFirst<RunRow>(operation, runTable.columns, rows)),
      (run) =>
        run === null
          ? Effect.fail(new StoreError({ reason: "Unknown", operation, problem: "it was neither created nor found" }))
          : Effect.succeed(run),
    )

  const forkRun: CheckpointDriver["forkRun"] = (fork) => {
    const { namespace, runId } = fork.run
    const operation = `fork run '${fork.from}'`
    const within = (session: Session) =>
      Effect.gen(function* () {
        const found = yield* session.run(statements.source(namespace, fork.from))
        const source = yield* attempt(() => readFirst<Pick<RunRow, "planHash">>(operation, sourceColumns, found))
        if (source === null) return null
        const insert = yield* attempt(() => runs.insert([newRunRow({ ...fork.run, ...source })]))
        const inserted = yield* session.run(insert)
        if (inserted.length === 0) {
          return { created: false, run: yield* first(operation, yield* session.run(runs.find(namespace, runId))) }
        }
        yield* session.run(yield* attempt(() => statements.copySteps(fork)))
        for (const paths of inBatches(dialect, [...new Set(fork.effects)])) {
          yield* session.run(statements.copyEffects(fork, paths))
        }
        return { created: true, run: yield* first(operation, yield* session.run(statements.takeSeq(fork))) }
      })
    return database.transaction(operation, "usual", within)
  }

  const loadPerformed: CheckpointDriver["loadPerformed"] = (namespace, runId) => {
    const operation = `load what run '${runId}' has performed`
    return database.snapshot(operation, (session) =>
      Effect.gen(function* () {
        if ((yield* session.run(statements.source(namespace, runId))).length === 0) return null
        const steps = yield* session.run(statements.performed(namespace, runId))
        const effects = yield* session.run(statements.happened(namespace, runId))
        return yield* attempt(() =>
          performedRows(readAll(operation, performedColumns, steps), readAll(operation, happenedColumns, effects)),
        )
      }),
    )
  }
  return { setPaused, reopenRun, forkRun, loadPerformed }
}
