/** A driver becomes a store: rows become records, refusals become errors. The only place where run columns are JSON. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { LeaseLost, RunNotFound, StoreError } from "../model/Errors.js"
import type { AttemptRecord, ParkRecord, RunRecord } from "../model/Records.js"
import { StoreWithTransactions } from "../model/StoreWithTransactions.js"
import type { AttemptRow, CheckpointDriver, CommitRows, RunRow } from "./CheckpointDriver.js"
import { makeLocalSignals, runnable } from "./LocalSignals.js"
import { CheckpointStore, type CheckpointStoreService, type Commit } from "./CheckpointStore.js"

class Unreadable {
  constructor(
    readonly column: string,
    readonly cause: unknown,
  ) {}
}

const read = <A>(column: string, text: string): A => {
  try {
    return JSON.parse(text) as A
  } catch (cause) {
    throw new Unreadable(column, cause)
  }
}

const runRecord = (row: RunRow): RunRecord => ({
  ...row,
  failure: row.failure === null ? null : read("failure", row.failure),
  parked: row.parked === null ? null : read("parked", row.parked),
})

/** One unreadable column must not stop the claim of its neighbours: loading that run is what fails, by name. */
const claimedRecord = (row: RunRow): RunRecord => {
  const { failure, ...rest } = row
  try {
    return { ...rest, failure: failure === null ? null : read("failure", failure), parked: null }
  } catch {
    const problem = "the stored failure could not be read"
    const details = { name: "Error", message: problem, tag: null, stack: null, cause: null }
    return { ...rest, failure: { kind: "undeclared", step: row.cursor ?? "", problem, details }, parked: null }
  }
}

const attemptRecord = (row: AttemptRow): AttemptRecord => ({ ...row, error: read("error", row.error) })

/** Unreadable is an error that names run and column, never an empty value (D14). */
const decoded = <A>(of: string, decode: () => A): Effect.Effect<A, StoreError> =>
  Effect.try({
    try: decode,
    catch: (thrown) =>
      new StoreError({
        reason: "Corrupt",
        operation: `read ${of}`,
        problem: thrown instanceof Unreadable ? `column '${thrown.column}' holds no JSON` : "a row could not be read",
        cause: thrown instanceof Unreadable ? thrown.cause : thrown,
      }),
  })

const text = (value: unknown): string | null => (value === null ? null : JSON.stringify(value))

const commitRows = (commit: Commit): CommitRows => ({
  ...commit,
  run: { ...commit.run, failure: text(commit.run.failure), parked: text(commit.run.parked) },
  attempts: commit.attempts.map((attempt) => ({ ...attempt, error: JSON.stringify(attempt.error) })),
})

/** The part of a store that runs bodies in the database's own transactions; empty where the driver has none. */
const transactions = ({ transact }: CheckpointDriver): Pick<CheckpointStoreService, "transact"> =>
  transact === undefined
    ? {}
    : {
        transact: (limits, body) =>
          transact(limits, (access) =>
            Effect.map(body(access), ({ commit, value }) => ({ commit: commitRows(commit), value: { commit, value } })),
          ).pipe(
            Effect.flatMap(({ result, value: { commit, value } }) =>
              // Also where the run stands at this very seq: what is there then is another body's work, not this one's.
              result._tag === "Committed"
                ? Effect.succeed({ at: result.at, value })
                : Effect.fail(new LeaseLost(commit.lease)),
            ),
          ),
      }

/**
 * Makes a store from a driver.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromDriver = (driver: CheckpointDriver): CheckpointStoreService => {
  const found = <A>(namespace: string, runId: string, row: A | null): Effect.Effect<A, RunNotFound> =>
    row === null ? Effect.fail(new RunNotFound({ namespace, runId })) : Effect.succeed(row)

  const signals = makeLocalSignals()
  // D18: what another process has made runnable wakes the workers of this one.
  driver.onWakeUp?.(() => Effect.runSync(signals.send(runnable)))

  return {
    capabilities: driver.capabilities,
    signals,
    now: driver.now,
    createRun: (run) =>
      Effect.flatMap(driver.createRun(run), (result) =>
        Effect.map(
          decoded(`run '${run.runId}'`, () => runRecord(result.run)),
          (record) => ({
            created: result.created,
            run: record,
          }),
        ),
      ),
    findRun: (namespace, runId) =>
      driver.findRun(namespace, runId).pipe(
        Effect.flatMap((row) => found(namespace, runId, row)),
        Effect.flatMap((row) => decoded(`run '${runId}'`, () => runRecord(row))),
      ),
    load: (namespace, runId) =>
      driver.load(namespace, runId).pipe(
        Effect.flatMap((rows) => found(namespace, runId, rows)),
        Effect.flatMap((rows) => decoded(`run '${runId}'`, () => ({ ...rows, run: runRecord(rows.run) }))),
      ),
    loadOpen: (namespace, runId, paths) =>
      Effect.flatMap(driver.loadOpen(namespace, runId, paths), (rows) =>
        decoded(`run '${runId}'`, () => ({ ...rows, attempts: rows.attempts.map(attemptRecord) })),
      ),
    claim: (request) => Effect.map(driver.claim(request), (rows) => rows.map(claimedRecord)),
    commit: (commit) =>
      // Encoded before the driver begins its transaction: a transaction holds I/O only.
      Effect.suspend(() => driver.commit([commitRows(commit)])).pipe(
        Effect.flatMap(([result]) => {
          if (result?._tag === "Committed") return Effect.succeed(result.at)
          const stands = result?.run
          // The acknowledgement of a first try was lost: under this fence nobody else could have set this seq.
          return stands != null && stands.fence === commit.lease.fence && stands.seq === commit.seq
            ? Effect.succeed(stands.updatedAt)
            : // Whoever stands against the commit, this worker's picture of the run is not the store's: it stops (X6).
              Effect.fail(new LeaseLost(commit.lease))
        }),
      ),
    recordOutcome: driver.recordOutcome,
    findEffect: driver.findEffect,
    beat: driver.beat,
    releaseWorker: driver.releaseWorker,
    unpark: driver.unpark,
    answer: ({ attempt, ...answer }) =>
      driver.answer({
        ...answer,
        attempt: attempt === null ? null : { ...attempt, error: JSON.stringify(attempt.error) },
      }),
    listParked: (page) =>
      Effect.flatMap(driver.listParked(page), (rows) =>
        Effect.forEach(rows, (row) =>
          decoded(`run '${row.runId}'`, () => ({ ...row, parked: read<ParkRecord>("parked", row.parked) })),
        ),
      ),
    ...transactions(driver),
  }
}

/**
 * The services of a store whose driver has transactions, for its layer: the store itself, and what transaction steps ask of
 * it.
 *
 * @category constructors
 * @since 0.1.0
 */
export const contextFromDriver = (driver: CheckpointDriver): Context.Context<CheckpointStore | StoreWithTransactions> =>
  Context.make(CheckpointStore, fromDriver(driver)).pipe(
    Context.add(StoreWithTransactions, { name: driver.capabilities.name }),
  )
