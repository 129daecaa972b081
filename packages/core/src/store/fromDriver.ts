/** A driver becomes a store: rows become records, refusals become errors. The only place where run columns are JSON. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Predicate from "effect/Predicate"
import { LeaseLost, RunNotFound, StoreError } from "../model/Errors.js"
import { finalStatuses, type AttemptRecord, type RunRecord } from "../model/Records.js"
import { StoreWithTransactions } from "../model/StoreWithTransactions.js"
import type { AttemptRow, CheckpointDriver, CommitResult, CommitRows, RunRow } from "./CheckpointDriver.js"
import { isFailureRecord, isParkRecord } from "./internal/endReasons.js"
import { grouped } from "./internal/grouped.js"
import { arrived, makeLocalSignals, reachedOf, runnable, scheduled, type LocalSignals } from "./LocalSignals.js"
import type { RewindResult, RewindRow } from "./RewindRows.js"
import { CheckpointStore, type CheckpointStoreService, type Commit } from "./CheckpointStore.js"

class Unreadable {
  constructor(
    readonly column: string,
    readonly what: string,
    readonly cause?: unknown,
  ) {}
}

const read = (column: string, text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new Unreadable(column, "holds no JSON", cause)
  }
}

/** What is JSON and of no shape that this version knows was written by another one. */
const readAs = <A>(column: string, text: string, isOne: (value: unknown) => value is A): A => {
  const value = read(column, text)
  if (isOne(value)) return value
  throw new Unreadable(column, "holds nothing that this version can read; a later one may have written it")
}

type Decoded<R> = Omit<R, "failure" | "parked"> & Pick<RunRecord, "failure" | "parked">

// A row belongs to whoever asked for it, and most have nothing to be decoded.
const runRecord = <R extends Pick<RunRow, "failure" | "parked">>(row: R): Decoded<R> =>
  row.failure === null && row.parked === null
    ? (row as Decoded<R>)
    : {
        ...row,
        failure: row.failure === null ? null : readAs("failure", row.failure, isFailureRecord),
        parked: row.parked === null ? null : readAs("parked", row.parked, isParkRecord),
      }

/** One unreadable column must not stop the claim of its neighbours: loading that run is what fails, by name. */
const claimedRecord = (row: RunRow): RunRecord => {
  try {
    return runRecord(row.parked === null ? row : { ...row, parked: null })
  } catch {
    const problem = "the stored failure could not be read"
    const details = { name: "Error", message: problem, tag: null, stack: null, cause: null }
    return { ...row, failure: { kind: "undeclared", step: row.cursor ?? "", problem, details }, parked: null }
  }
}

const createdRecord = (
  { runId }: Pick<RunRow, "runId">,
  { created, run }: { readonly created: boolean; readonly run: RunRow },
) =>
  Effect.map(
    decoded(`run '${runId}'`, () => runRecord(run)),
    (record) => ({ created, run: record }),
  )

const attemptRecord = <R extends AttemptRow>(row: R): Omit<R, "error"> & Pick<AttemptRecord, "error"> => ({
  ...row,
  error: read("error", row.error) as AttemptRecord["error"],
})

/** Unreadable is an error that names run and column, never an empty value (D14). */
const readable = <A>(of: string, decode: () => A): Either.Either<A, StoreError> =>
  Either.try({
    try: decode,
    catch: (thrown) =>
      new StoreError({
        reason: "Corrupt",
        operation: `read ${of}`,
        problem: thrown instanceof Unreadable ? `column '${thrown.column}' ${thrown.what}` : "a row could not be read",
        cause: thrown instanceof Unreadable ? thrown.cause : thrown,
      }),
  })

const decoded = <A>(of: string, decode: () => A): Effect.Effect<A, StoreError> =>
  Effect.suspend(() => readable(of, decode))

const text = (value: unknown): string | null => (value === null ? null : JSON.stringify(value))

const commitRows = (commit: Commit): CommitRows => ({
  ...commit,
  run: { ...commit.run, failure: text(commit.run.failure), parked: text(commit.run.parked) },
  attempts: commit.attempts.map((attempt) => ({ ...attempt, error: JSON.stringify(attempt.error) })),
})

/**
 * Whether what stands is this very commit, whose acknowledgement was lost: under this fence nobody but this worker could
 * have set this seq, and a worker that has given the run back did not leave it as this commit would.
 */
const isStanding = (
  { lease, run, seq }: Pick<Commit, "lease" | "seq"> & { readonly run: Pick<Commit["run"], "release" | "status"> },
  stands: NonNullable<Extract<CommitResult, { _tag: "Refused" }>["run"]>,
): boolean =>
  stands.fence === lease.fence &&
  stands.seq === seq &&
  stands.claimToken === (run.release ? null : lease.claimToken) &&
  (!finalStatuses.has(run.status) || stands.status === run.status)

/** Whether a commit stands in the store, and since when. */
const committed = (commit: Commit, result: CommitResult): Either.Either<number, LeaseLost> => {
  if (result._tag === "Committed") return Either.right(result.at)
  const stands = result.run
  return stands !== null && isStanding(commit, stands)
    ? Either.right(stands.updatedAt)
    : // Whoever stands against the commit, this worker's picture of the run is not the store's: it stops (X6).
      Either.left(new LeaseLost(commit.lease))
}

/** A rewind whose acknowledgement was lost stands as a commit does. */
const rewound = (rewind: RewindRow, result: RewindResult): Either.Either<number | null, LeaseLost> => {
  if (result._tag === "Performed") return Either.right(null)
  if (result._tag === "Committed") return Either.right(result.at)
  const stands = result.run
  return stands !== null && isStanding({ ...rewind, run: { release: false, status: "running" } }, stands)
    ? Either.right(stands.updatedAt)
    : Either.left(new LeaseLost(rewind.lease))
}

/** Something has reached a run: it may be claimable, and its owner, if it has one, is to know. */
const reached = (signals: LocalSignals, namespace: string, runId: string): Effect.Effect<void> =>
  Effect.zipRight(signals.send(runnable), signals.send(arrived(namespace, runId)))

/**
 * Who is to know of a commit in this process at once: whoever follows the run, of a run that may not wait (D23), and of a
 * parent (D29).
 */
const woken = (
  signals: LocalSignals,
  { lease, run, wakesParent }: Commit,
  { status }: Extract<CommitResult, { readonly _tag: "Committed" }>,
): Effect.Effect<void> => {
  signals.committed(lease)
  if (wakesParent !== null) return reached(signals, lease.namespace, wakesParent)
  return status === run.status ? Effect.void : signals.send(runnable)
}

/** The part of a store that runs bodies in the database's own transactions; empty where the driver has none. */
const transactions = (
  { transact }: CheckpointDriver,
  signals: LocalSignals,
): Pick<CheckpointStoreService, "transact"> =>
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
                ? Effect.as(woken(signals, commit, result), { at: result.at, value })
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
  // Many starts at once are one transaction.
  const create = grouped(driver.createRuns)
  // D18: what another process has made runnable wakes the workers of this one.
  driver.onWakeUp?.(() => Effect.runSync(signals.send(runnable)))
  // D44
  driver.onReached?.((workerId) => Effect.runSync(signals.send(reachedOf(workerId))))

  return {
    capabilities: driver.capabilities,
    signals,
    storeId: driver.storeId,
    now: driver.now,
    createRun: (run) => Effect.flatMap(create(run), (result) => createdRecord(run, result)),
    createChild: (child, parent) =>
      Effect.flatMap(
        Effect.filterOrFail(driver.createChild(child, parent), Predicate.isNotNull, () => new LeaseLost(parent)),
        (result) => createdRecord(child, result),
      ),
    findRun: (namespace, runId) =>
      driver.findRun(namespace, runId).pipe(
        Effect.flatMap((row) => found(namespace, runId, row)),
        Effect.flatMap((row) => decoded(`run '${runId}'`, () => runRecord(row))),
      ),
    findRuns: (keys) =>
      Effect.map(driver.findRuns(keys), (rows) =>
        rows.map((row, index) =>
          row instanceof StoreError
            ? Either.left(row)
            : readable(`run '${keys[index]!.runId}'`, () => (row === null ? null : runRecord(row))),
        ),
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
    loadSteps: driver.loadSteps,
    loadHistory: (query) =>
      Effect.flatMap(driver.loadHistory(query), (rows) =>
        decoded(`run '${query.runId}'`, () => ({ ...rows, attempts: rows.attempts.map(attemptRecord) })),
      ),
    loadWaits: (namespace, runId) =>
      Effect.flatMap(driver.loadWaits(namespace, runId), (loaded) => found(namespace, runId, loaded)),
    decideWait: (decision) =>
      Effect.tap(driver.decideWait(decision), ({ _tag }) =>
        _tag === "Decided" ? reached(signals, decision.namespace, decision.runId) : Effect.void,
      ),
    expireWait: driver.expireWait,
    claim: (request) => Effect.map(driver.claim(request), (rows) => rows.map(claimedRecord)),
    commit: (batch) =>
      // Encoded before the driver begins its transaction: a transaction holds I/O only.
      Effect.suspend(() => driver.commit(batch.map(commitRows))).pipe(
        Effect.tap((results) =>
          Effect.forEach(
            results,
            (result, index) => (result._tag === "Committed" ? woken(signals, batch[index]!, result) : Effect.void),
            { discard: true },
          ),
        ),
        Effect.map((results) => batch.map((commit, index) => committed(commit, results[index]!))),
      ),
    recordOutcome: driver.recordOutcome,
    findEffect: driver.findEffect,
    beat: driver.beat,
    loadReached: driver.loadReached,
    leaseHasEnded: driver.leaseHasEnded,
    releaseWorker: driver.releaseWorker,
    unpark: driver.unpark,
    answer: ({ attempt, ...answer }) =>
      driver.answer({
        ...answer,
        attempt: attempt === null ? null : { ...attempt, error: JSON.stringify(attempt.error) },
      }),
    listParked: (page) =>
      Effect.map(driver.listParked(page), (rows) =>
        rows.map(({ parked, unreadable, ...row }) => ({
          ...row,
          parked:
            unreadable === undefined
              ? readable(`run '${row.runId}'`, () => readAs("parked", parked, isParkRecord))
              : Either.left(unreadable),
        })),
      ),
    send: (signal) =>
      Effect.tap(driver.send(signal), ({ _tag }) =>
        _tag === "Sent" ? reached(signals, signal.namespace, signal.runId) : Effect.void,
      ),
    loadSignals: (namespace, runId, names) =>
      Effect.flatMap(driver.loadSignals(namespace, runId, names), (loaded) => found(namespace, runId, loaded)),
    requestCancel: (namespace, runId, reason) =>
      Effect.tap(driver.requestCancel(namespace, runId, reason), (result) =>
        result === "Requested" ? reached(signals, namespace, runId) : Effect.void,
      ),
    listRuns: (page) =>
      Effect.map(driver.listRuns(page), (rows) =>
        rows.map(({ failure, parked, unreadable, ...row }) => ({
          ...row,
          why:
            unreadable === undefined
              ? readable(`run '${row.runId}'`, () => {
                  const why = runRecord({ failure, parked })
                  return { failure: why.failure, parked: why.parked }
                })
              : Either.left(unreadable),
        })),
      ),
    listReviews: driver.listReviews,
    // The worker beside it looks at the times anew.
    putSchedule: (schedule) => Effect.zipLeft(driver.putSchedule(schedule), signals.send(scheduled)),
    removeSchedule: driver.removeSchedule,
    listSchedules: driver.listSchedules,
    nextSchedules: driver.nextSchedules,
    fireSchedule: (fire) =>
      Effect.tap(driver.fireSchedule(fire), (result) =>
        result._tag === "Fired" && result.created ? signals.send(runnable) : Effect.void,
      ),
    setPaused: (namespace, runId, paused) =>
      Effect.tap(driver.setPaused(namespace, runId, paused), (result) =>
        // Its owner is to know of either: it lets go, or goes on.
        result !== "Done"
          ? Effect.void
          : paused
            ? signals.send(arrived(namespace, runId))
            : reached(signals, namespace, runId),
      ),
    reopenRun: ({ attempt, ...reopen }) =>
      Effect.tap(
        driver.reopenRun({ ...reopen, attempt: { ...attempt, error: JSON.stringify(attempt.error) } }),
        (done) => (done ? signals.send(runnable) : Effect.void),
      ),
    rewindRun: (rewind) =>
      Effect.tap(
        Effect.flatMap(driver.rewindRun(rewind), (result) => rewound(rewind, result)),
        (at) => Effect.sync(() => (at === null ? undefined : signals.committed(rewind.lease))),
      ),
    forkRun: (fork) =>
      driver.forkRun(fork).pipe(
        Effect.flatMap((result) => found(fork.run.namespace, fork.from, result)),
        Effect.tap(() => signals.send(runnable)),
        Effect.flatMap(({ created, run }) =>
          Effect.map(
            decoded(`run '${run.runId}'`, () => runRecord(run)),
            (record) => ({ created, run: record }),
          ),
        ),
      ),
    loadPerformed: (namespace, runId) =>
      Effect.flatMap(driver.loadPerformed(namespace, runId), (loaded) => found(namespace, runId, loaded)),
    forgetOutputs: driver.forgetOutputs,
    beginCall: driver.beginCall,
    endCall: driver.endCall,
    findSpend: driver.findSpend,
    listCalls: driver.listCalls,
    sumCalls: driver.sumCalls,
    ...transactions(driver, signals),
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
