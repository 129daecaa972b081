/**
 * A batch of commits in one transaction: the guarding update first, then what belongs to the runs that it hit; or, where
 * the dialect can, all of it in one statement.
 *
 * Everything is encoded before the transaction begins, except what carries its time: a transaction holds I/O only.
 */
import { StoreError, type CheckpointDriver, type CommitResult, type CommitRows, type RunRow } from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Database, Row, Session } from "../Database.js"
import type { Dialect } from "../Dialect.js"
import { attempt, keyOf, readAll, readNear } from "../readRow.js"
import { inBatches, type Bound, type Statement } from "../Statement.js"
import {
  attemptRows,
  commitStatements,
  committedColumns,
  consumedRows,
  effectRows,
  guardRow,
  stepRows,
} from "../statements/commit.js"
import { commitAtOnce } from "../statements/commitAtOnce.js"
import { runStatements, standingColumns } from "../statements/runs.js"
import { closedRows, parentRows, parentStatements, waitRows } from "../statements/waits.js"
import type { CommitIn } from "./transactions.js"

/** What the guarding update gives back of a run. */
type Hit = Pick<RunRow, "updatedAt" | "status"> & { readonly number: number }

type Standing = Extract<CommitResult, { readonly _tag: "Refused" }>["run"]

const wakesParent = (commit: CommitRows): boolean => commit.wakesParent !== null

const none: ReadonlyMap<string, Row> = new Map()

/** The keys of a batch, each once. A run that stands in it twice would be written in no known order. */
const keysOf = (batch: ReadonlyArray<CommitRows>): ReadonlyArray<string> => {
  const keys = batch.map(({ lease }) => keyOf(lease.namespace, lease.runId))
  if (new Set(keys).size === keys.length) return keys
  const twice = keys.find((key, index) => keys.indexOf(key) !== index)
  throw new StoreError({
    reason: "Constraint",
    operation: "commit",
    problem: `run ${String(twice)} stands in the batch twice`,
  })
}

/** The commit of the driver. */
export const commits = (dialect: Dialect, database: Database) => {
  const statements = commitStatements(dialect)
  const together = commitAtOnce(dialect)
  const standing = runStatements(dialect).standing
  const parents = parentStatements(dialect)
  const operation = "commit"

  const runAll = (
    session: Session,
    rows: ReadonlyArray<ReadonlyArray<Bound>>,
    statement: (rows: ReadonlyArray<ReadonlyArray<Bound>>) => Statement,
  ): Effect.Effect<ReadonlyArray<Row>, StoreError> => {
    const batches = inBatches(dialect, rows)
    if (batches.length === 0) return Effect.succeed([])
    if (batches.length === 1) return session.run(statement(batches[0]!))
    return Effect.map(
      Effect.forEach(batches, (batch) => session.run(statement(batch))),
      (all) => all.flat(),
    )
  }

  /** D29: after the commits, so that a parent that stands in the same batch is woken as they have left it. */
  const wakeParents = (session: Session, committed: ReadonlyArray<CommitRows>) =>
    runAll(session, parentRows(committed), parents.wake)

  /** What belongs to the runs whose row was updated; the others write nothing (D2, D3). */
  const writeRecords = (session: Session, hit: ReadonlyArray<readonly [CommitRows, Hit]>) =>
    Effect.gen(function* () {
      const steps = yield* attempt(() =>
        hit.flatMap(([commit, { number, updatedAt }]) => stepRows(commit, number, updatedAt)),
      )
      const effects = yield* attempt(() => hit.flatMap(([commit, { updatedAt }]) => effectRows(commit, updatedAt)))
      const attempts = yield* attempt(() => hit.flatMap(([commit, { updatedAt }]) => attemptRows(commit, updatedAt)))
      const waits = yield* attempt(() => hit.flatMap(([commit, { updatedAt }]) => waitRows(commit, updatedAt)))
      const commits = hit.map(([commit]) => commit)
      yield* runAll(session, steps, statements.insertSteps)
      yield* runAll(session, effects, statements.upsertEffects)
      yield* runAll(session, attempts, statements.upsertAttempts)
      yield* runAll(session, commits.flatMap(consumedRows), statements.consume)
      yield* runAll(session, commits.flatMap(closedRows), statements.closeWaits)
      yield* runAll(session, waits, statements.openWaits)
      yield* wakeParents(session, commits)
    })

  const standingOf = (session: Session, refused: ReadonlyArray<CommitRows>) =>
    Effect.map(
      runAll(
        session,
        refused.map(({ lease }) => [lease.namespace, lease.runId]),
        standing,
      ),
      (rows) => new Map(rows.map((row) => [keyOf(String(row["namespace"]), String(row["runId"])), row])),
    )

  const standingRow = (row: Row | undefined): Standing => {
    if (row === undefined) return null
    const { claimToken, fence, seq, status, updatedAt } = readNear<RunRow>(operation, standingColumns, row)
    return { seq, fence, claimToken, status, updatedAt }
  }

  /** When each run of those that were hit was committed, and as what. */
  const committedOf = (updated: ReadonlyArray<Row>): Effect.Effect<ReadonlyMap<string, Hit>, StoreError> =>
    attempt(() => {
      const rows = readAll<Hit & Pick<RunRow, "namespace" | "runId">>(operation, committedColumns, updated)
      return new Map(rows.map((row) => [keyOf(row.namespace, row.runId), row]))
    })

  const resultsOf = (
    keys: ReadonlyArray<string>,
    hits: ReadonlyMap<string, Hit>,
    against: ReadonlyMap<string, Row>,
  ): Effect.Effect<ReadonlyArray<CommitResult>, StoreError> =>
    attempt(() =>
      keys.map((key) => {
        const hit = hits.get(key)
        return hit === undefined
          ? { _tag: "Refused", run: standingRow(against.get(key)) }
          : { _tag: "Committed", at: hit.updatedAt, status: hit.status }
      }),
    )

  const within = (
    session: Session,
    batch: ReadonlyArray<CommitRows>,
    keys: ReadonlyArray<string>,
    guards: ReadonlyArray<ReadonlyArray<Bound>>,
  ) =>
    Effect.gen(function* () {
      const updated = yield* runAll(session, guards, statements.update)
      const hits = yield* committedOf(updated)
      const hit: Array<readonly [CommitRows, Hit]> = []
      const refused: Array<CommitRows> = []
      batch.forEach((commit, index) => {
        const row = hits.get(keys[index]!)
        if (row === undefined) refused.push(commit)
        else hit.push([commit, row])
      })
      yield* writeRecords(session, hit)
      const against = refused.length === 0 ? none : yield* standingOf(session, refused)
      return yield* resultsOf(keys, hits, against)
    })

  const inSteps: CheckpointDriver["commit"] = (batch) =>
    Effect.flatMap(
      attempt(() => [keysOf(batch), batch.map(guardRow)] as const),
      ([keys, guards]) => database.transaction(operation, "usual", (session) => within(session, batch, keys, guards)),
    )

  /** The statement of a batch that wakes parents, between the locks of all that it writes and their wake-up. */
  const togetherWaking = (
    session: Session,
    batch: ReadonlyArray<CommitRows>,
    keys: ReadonlyArray<string>,
    statement: Statement,
  ) =>
    Effect.gen(function* () {
      if (parents.lock !== null) yield* session.run(parents.lock(batch))
      const hits = yield* committedOf(yield* session.run(statement))
      yield* wakeParents(
        session,
        batch.filter((_, index) => hits.has(keys[index]!)),
      )
      return hits
    })

  const writtenAtOnce = (batch: ReadonlyArray<CommitRows>, keys: ReadonlyArray<string>, statement: Statement) =>
    batch.some(wakesParent)
      ? database.transaction(operation, "usual", (session) => togetherWaking(session, batch, keys, statement))
      : Effect.flatMap(database.write(operation, statement), committedOf)

  const atOnce: CheckpointDriver["commit"] = (batch) =>
    Effect.flatMap(
      attempt(() => [keysOf(batch), together(batch)] as const),
      ([keys, statement]) =>
        Effect.flatMap(writtenAtOnce(batch, keys, statement), (hits) => {
          if (hits.size === keys.length) return resultsOf(keys, hits, none)
          const refused = batch.filter((_, index) => !hits.has(keys[index]!))
          // Read afterwards: what the statement itself sees of a run that it was refused is the row of before.
          const reading: Session = { run: (statement) => database.query(operation, statement) }
          return Effect.flatMap(standingOf(reading, refused), (against) => resultsOf(keys, hits, against))
        }),
    )

  /** In a transaction that others have begun; nothing of it is kept where it is refused. */
  const commitIn: CommitIn = (session, rows) =>
    Effect.gen(function* () {
      const key = keyOf(rows.lease.namespace, rows.lease.runId)
      if (!dialect.commitsAtOnce) {
        const guard = yield* attempt(() => guardRow(rows))
        return (yield* within(session, [rows], [key], [guard]))[0]!
      }
      const statement = yield* attempt(() => together([rows]))
      const hits = yield* wakesParent(rows)
        ? togetherWaking(session, [rows], [key], statement)
        : Effect.flatMap(session.run(statement), committedOf)
      const against = hits.has(key) ? none : yield* standingOf(session, [rows])
      return (yield* resultsOf([key], hits, against))[0]!
    })

  const commit = dialect.commitsAtOnce ? atOnce : inSteps
  return {
    commitIn,
    commit: (batch: ReadonlyArray<CommitRows>) => (batch.length === 0 ? Effect.succeed([]) : commit(batch)),
  }
}
