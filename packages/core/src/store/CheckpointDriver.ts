/**
 * What an adapter implements for a database: rows of text and integers, under numbered laws. `fromDriver` turns it into
 * the `CheckpointStore` that the runtime uses; the conformance kit proves the laws.
 *
 * Laws of every driver:
 *
 * - **D1** `createRun` is atomic. Of any number of creators of one id, one creates; all get the same row; an existing
 *   row is not changed.
 * - **D2** `commit` is atomic: run row, steps, effects and attempts, all or none, also when the process dies between two
 *   statements.
 * - **D3** A commit shows fence and claim token, checked by the statement that writes. Another owner's is refused and
 *   changes nothing. An owner whose lease has ended commits for as long as nobody has replaced it.
 * - **D4** A commit names the `seq` it builds on, checked by the same statement. An older or a skipping one is refused.
 * - **D5** The commits of one batch concern different runs and are independent: a refused one does not touch the others.
 * - **D6** `claim` is compare-and-set: of any number of claimers one gets a run. Each claim raises `fence` by one and sets
 *   the claimer's token.
 * - **D7** Only these are claimed: `pending` runs; `sleeping` and `waiting` ones whose `wakeAt` has come; `running` ones
 *   that nobody holds or whose owner's lease has ended. Never the run of a live owner, never a workflow or version that
 *   was not asked for, never a run of another namespace.
 * - **D8** All times are the store's clock, read when the statement runs, in whole milliseconds; parts of one are rounded
 *   up. A worker whose own lease has ended claims nothing until it beats again. The last beat says until when a lease
 *   lasts, also where that is sooner.
 * - **D9** `recordOutcome` needs no fence. It matches key, payload hash and claim token and writes only over `intended`;
 *   the first writer wins.
 * - **D10** Text comes back unit for unit: ids, paths and payloads with any character that the contract lets through.
 *   Equality is exact: no case folding, no trimming, no Unicode normalisation, no wildcards.
 * - **D11** `load` returns the run and its steps in order of `seq`, read at one instant. `loadOpen` returns the effects and
 *   attempts of exactly the paths that it is asked for, in order of generation and attempt: what is done is not read.
 * - **D12** `releaseWorker` gives up exactly the runs that the worker holds (owner and claim token become null), and ends
 *   its lease. Neither `seq` nor `fence` moves. A run that was running becomes `pending`, and its `previousUntil` now: an
 *   operation that was cut off may still be under way. Any other keeps its status and `previousUntil`.
 * - **D13** Integers are exact up to 2^53 - 1; a stored number beyond is a `StoreError`, never a rounded value.
 * - **D14** Absent and unreadable are different: absent is null, unreadable is a `StoreError`.
 * - **D15** A takeover of an unreleased lease keeps in `previousUntil` when that lease ended, and adds one to
 *   `recoveries`; a released run is claimed without either. A commit that releases leaves `previousUntil` as it is.
 * - **D16** A commit that adds a step sets `recoveries` to 0, and so does `unpark`.
 * - **D17** A settled effect (any state but `intended`) is never changed, by no commit and no `recordOutcome`: the rest of
 *   such a commit goes through.
 * - **D18** With the capability `notify`, each act by which runs become claimable at once, by any process, calls the listeners
 *   of `onWakeUp` once, and no earlier than a claim can find the runs: a `createRun` that created, an `unpark` or `answer`
 *   that succeeded, a `send` or `requestCancel` that ended a run's wait, a `releaseWorker` that gave up a running run. Nothing
 *   else does, and no call that failed. What is called while a connection is down is lost; the listeners are called once when
 *   it is back.
 * - **D19** `answer` settles an effect that is still `intended`, of a run that is in review at the named `seq`; it adds the
 *   attempt, if one is given, and unparks the run as `unpark` does: all of it or none. The first answer wins; one that is
 *   refused changes nothing.
 * - **D20** With the capability `transactions`, `transact` runs its body inside a transaction of the database, with a client
 *   that is bound to it, and writes the body's commit in that transaction, guarded as any (D3, D4, D16, D17): what the body
 *   wrote and the commit are there together or not at all. Nothing is there after a refused commit, a body that failed or
 *   was interrupted, or a transaction that the database had given up; success is reported for nothing but a COMMIT that
 *   was answered. A call runs its body at most once. What the client is asked once the body has ended is refused. The
 *   run's row is locked by the commit, not by the body.
 * - **D21** `listParked` gives the runs of the namespace that are in review with a reason to be parked, in order of their
 *   run ids, each once over all pages; never more than `limit`.
 * - **D22** `send` keeps a signal once: under an id that is there already it changes nothing, and says whether name and payload
 *   are the same. It adds one to `inbox` in the same transaction, and that is the signal's `position`: the order is total per
 *   run. A run that waits (`waiting`, or `review` without a reason to be parked) becomes `pending`; any other keeps its status
 *   and `updatedAt`. Neither `seq` nor `fence` moves. A run that is final takes none that is new.
 * - **D23** No wake-up is lost: a commit that would let a run wait as in D22, and names as `seenInbox` another `inbox` than
 *   stands, makes it `pending` instead, in the guarding statement; the committer is told. With a cancel asked for, so does one
 *   that would put it to sleep or into review for whatever reason; `previousUntil` is then now, as in D25.
 * - **D24** `loadSignals` gives the signals of the given names that nobody has consumed, in order of position, with the
 *   `inbox` of the same instant. A commit that consumes one takes it, together with everything else that it writes, and only
 *   if nobody has; it is not given again, and its id stays known.
 * - **D25** `requestCancel` marks a run once: the first time and reason stay. It adds one to `inbox`. A run that waits, sleeps or
 *   is in review becomes `pending`, without `parked`, and its `previousUntil` now: an operation that it was waiting for may
 *   still be under way. One in review is taken up as by `unpark` (D16). Any other keeps its status and `updatedAt`; neither `seq`
 *   nor `fence` moves. A run that is final is left alone.
 * - **D26** `storeId` is one text through every connection, from the day on which the tables were made; another database has
 *   another one.
 */
import type * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { StoreError, TransactionAborted } from "../model/Errors.js"
import type {
  AttemptRecord,
  EffectRecord,
  EffectState,
  HeldLease,
  Lease,
  RunRecord,
  RunStatus,
  SignalRecord,
  StepRecord,
} from "../model/Records.js"
import type { Capabilities } from "./Capabilities.js"

/**
 * A run as a row: like `RunRecord`, with `failure` and `parked` as JSON text.
 *
 * @category rows
 * @since 0.1.0
 */
export interface RunRow extends Omit<RunRecord, "failure" | "parked"> {
  readonly failure: string | null
  readonly parked: string | null
}

/**
 * Which run.
 *
 * @category rows
 * @since 0.1.0
 */
export interface RunKey {
  readonly namespace: string
  readonly runId: string
}

/**
 * An attempt as a row: `error` as JSON text.
 *
 * @category rows
 * @since 0.1.0
 */
export interface AttemptRow extends Omit<AttemptRecord, "error"> {
  readonly error: string
}

/**
 * A run that does not exist yet. It starts as `pending`, with `seq` 0 and `fence` 0.
 *
 * @category rows
 * @since 0.1.0
 */
export type NewRunRow = Pick<
  RunRow,
  "namespace" | "runId" | "workflow" | "version" | "planHash" | "input" | "inputHash"
>

/**
 * An intent or its change. It is inserted, or replaces the row of the same path and generation; `intentAt` and
 * `settledAt` are stamped by the store: the first when the row is inserted, the second when `state` is not `intended`. A
 * row that is settled already stays as it is (D17).
 *
 * @category rows
 * @since 0.1.0
 */
export type EffectWrite = Omit<EffectRecord, "intentAt" | "settledAt">

/**
 * What a commit makes of the run row.
 *
 * *Shape.* `wakeInMs` is a delay from the store's now, null for none: the store turns it into `wakeAt`. `release` gives
 * the lease up in the same statement. `seenInbox`: the `inbox` up to which the run has been looked at (D23); null where
 * nobody has looked: then the status is set whatever has arrived.
 *
 * @category rows
 * @since 0.1.0
 */
export interface RunPatch {
  readonly status: RunStatus
  readonly cursor: string | null
  readonly wakeInMs: number | null
  readonly output: string | null
  readonly failure: string | null
  readonly parked: string | null
  readonly release: boolean
  readonly seenInbox: number | null
}

/**
 * One commit of one run: the run row and what belongs to it, together or not at all.
 *
 * *Shape.* `base` is the `seq` it builds on, `seq` the one it sets. `retryInMs` of an attempt is a delay from the store's
 * now. Times of records (`committedAt`, `endedAt`) are stamped by the store. `consumes`: the signals that steps of this
 * commit take, each with the path of its step (D24).
 *
 * @category rows
 * @since 0.1.0
 */
export interface CommitRows {
  readonly lease: Lease
  readonly base: number
  readonly seq: number
  readonly run: RunPatch
  readonly steps: ReadonlyArray<Omit<StepRecord, "committedAt">>
  readonly effects: ReadonlyArray<EffectWrite>
  readonly attempts: ReadonlyArray<Omit<AttemptRow, "endedAt" | "retryAt"> & { readonly retryInMs: number | null }>
  readonly consumes: ReadonlyArray<{ readonly signalId: string; readonly path: string }>
}

/**
 * What became of a commit.
 *
 * *Shape.* `Committed`: durable, `at` the store's clock; `status` is the one that was set, or `pending` (D23). `Refused`: nothing was written; `run` is the row that stands
 * against it, or null if there is none.
 *
 * @category rows
 * @since 0.1.0
 */
export type CommitResult =
  | { readonly _tag: "Committed"; readonly at: number; readonly status: RunStatus }
  | {
      readonly _tag: "Refused"
      readonly run: Pick<RunRow, "seq" | "fence" | "claimToken" | "status" | "updatedAt"> | null
    }

/**
 * What a worker asks to own.
 *
 * *Shape.* `workflows`: names and versions that the worker can run. `runIds`: only these, or null for any. `claimToken`
 * is fresh for each call. At most `limit` runs come back, longest due first.
 *
 * @category rows
 * @since 0.1.0
 */
export interface ClaimRequest {
  readonly namespace: string
  readonly workerId: string
  readonly claimToken: string
  readonly workflows: ReadonlyArray<{ readonly name: string; readonly version: number }>
  readonly runIds: ReadonlyArray<string> | null
  readonly limit: number
}

/**
 * An outcome that arrives after the lease was lost (law X6).
 *
 * @category rows
 * @since 0.1.0
 */
export interface OutcomeRow {
  readonly namespace: string
  readonly runId: string
  readonly path: string
  readonly generation: number
  readonly idempotencyKey: string
  readonly payloadHash: string
  readonly claimToken: string
  readonly state: Exclude<EffectState, "intended">
  readonly outcome: string | null
}

/**
 * What a person says of an operation whose outcome is unknown.
 *
 * *Shape.* `seq` is that of the parked run which the person has seen. `attempt` accounts for the generation where the
 * operation did not happen (kind `refused`), null where it did.
 *
 * @category rows
 * @since 0.1.0
 */
export interface AnswerRow {
  readonly namespace: string
  readonly runId: string
  readonly seq: number
  readonly path: string
  readonly generation: number
  readonly state: Exclude<EffectState, "intended">
  readonly outcome: string | null
  readonly attempt: Omit<AttemptRow, "path" | "endedAt" | "retryAt"> | null
}

/**
 * Something to be sent to a run.
 *
 * @category rows
 * @since 0.1.0
 */
export type NewSignalRow = Omit<SignalRecord, "position" | "sentAt"> & Pick<RunRow, "namespace" | "runId">

/**
 * What became of a signal.
 *
 * *Shape.* `Sent`: kept. `Known`: it had been sent before, with the same name and payload. `Differs`: its id had been sent
 * with another one. `Ended`: the run is final. `Missing`: there is no such run. A known id is known also once the run is final.
 *
 * @category rows
 * @since 0.1.0
 */
export type SendResult =
  | { readonly _tag: "Sent"; readonly position: number }
  | { readonly _tag: "Known" }
  | { readonly _tag: "Differs" }
  | { readonly _tag: "Ended"; readonly status: RunStatus }
  | { readonly _tag: "Missing" }

/**
 * What became of a wish to cancel.
 *
 * @category rows
 * @since 0.1.0
 */
export type CancelResult = "Requested" | "Known" | "Ended" | "Missing"

/**
 * What waits for a run, read at one instant with its `inbox`.
 *
 * @category rows
 * @since 0.1.0
 */
export interface LoadedSignals {
  readonly inbox: number
  readonly signals: ReadonlyArray<SignalRecord>
}

/**
 * A page of parked runs.
 *
 * *Shape.* `after`: the last run id of the page before, null for the first page. `limit` from 1 up.
 *
 * @category rows
 * @since 0.1.0
 */
export interface ParkedPage {
  readonly namespace: string
  readonly after: string | null
  readonly limit: number
}

/**
 * A parked run, without its payloads. `updatedAt` is when it was parked.
 *
 * @category rows
 * @since 0.1.0
 */
export type ParkedRow = Pick<RunRow, "namespace" | "runId" | "workflow" | "version" | "seq" | "updatedAt"> & {
  readonly parked: string
}

/**
 * A run with what it has committed.
 *
 * @category rows
 * @since 0.1.0
 */
export interface LoadedRows {
  readonly run: RunRow
  readonly steps: ReadonlyArray<StepRecord>
}

/**
 * What is known of paths that are not committed.
 *
 * @category rows
 * @since 0.1.0
 */
export interface OpenRows {
  readonly effects: ReadonlyArray<EffectRecord>
  readonly attempts: ReadonlyArray<AttemptRow>
}

/**
 * What the body of `transact` has of the database, until it ends.
 *
 * *Shape.* `services`: what a step's effect may ask for (the `SqlClient` of `@effect/sql`, for stores that have one).
 * `query`: one statement, its parameters spelled as the database does; rows as it gives them.
 *
 * @category rows
 * @since 0.1.0
 */
export interface TransactionAccess {
  readonly services: Context.Context<any>
  readonly query: (text: string, parameters: ReadonlyArray<unknown>) => Effect.Effect<ReadonlyArray<unknown>, unknown>
}

/**
 * What a body leaves to be committed with what it wrote.
 *
 * @category rows
 * @since 0.1.0
 */
export interface TransactionEnd<C, A> {
  readonly commit: C
  readonly value: A
}

/**
 * How long a body is expected to take at most, in milliseconds. The body itself keeps to it; the database ends
 * statements, and transactions that are idle, after as long.
 *
 * @category rows
 * @since 0.1.0
 */
export interface TransactionLimits {
  readonly timeoutMs: number
}

/**
 * The contract of a database adapter. Every method is one atomic act of the database.
 *
 * *Errors.* `StoreError` only, with its reason; a driver retries nothing but what its own database asks for (a busy
 * file, a serialisation failure), and never after a commit whose outcome it does not know.
 *
 * *Laws.* D1 to D26, at the head of this file.
 *
 * @category models
 * @since 0.1.0
 */
export interface CheckpointDriver {
  readonly capabilities: Capabilities

  /** A text that tells this database from every other: made with its tables, never changed. */
  readonly storeId: Effect.Effect<string, StoreError>

  /** The store's clock, in milliseconds since 1970. */
  readonly now: Effect.Effect<number, StoreError>

  /** Creates a run, or returns the one of that id (D1). */
  readonly createRun: (run: NewRunRow) => Effect.Effect<{ readonly created: boolean; readonly run: RunRow }, StoreError>

  /**
   * The same for many runs, in one transaction (D1). Results stand in the order of the batch; where an id stands in it
   * twice, the first one creates.
   */
  readonly createRuns: (
    runs: ReadonlyArray<NewRunRow>,
  ) => Effect.Effect<ReadonlyArray<{ readonly created: boolean; readonly run: RunRow }>, StoreError>

  /** One run's row; null if there is none (D14). */
  readonly findRun: (namespace: string, runId: string) => Effect.Effect<RunRow | null, StoreError>

  /** How many runs stand, in the order of what is asked for; null where there is none (D14). Their inputs are not read. */
  readonly findRuns: (
    keys: ReadonlyArray<RunKey>,
  ) => Effect.Effect<ReadonlyArray<Omit<RunRow, "input"> | null>, StoreError>

  /** A run with its committed steps, read at one instant (D11). */
  readonly load: (namespace: string, runId: string) => Effect.Effect<LoadedRows | null, StoreError>

  /**
   * Intents and attempts of the given paths (D11). A resume asks for the paths that come next, never for all.
   *
   * *Shape.* Paths in any order, each once however often it was asked for; none at all where nothing is known.
   */
  readonly loadOpen: (
    namespace: string,
    runId: string,
    paths: ReadonlyArray<string>,
  ) => Effect.Effect<OpenRows, StoreError>

  /** Takes ownership of runs that are due (D6, D7, D8, D15). */
  readonly claim: (request: ClaimRequest) => Effect.Effect<ReadonlyArray<RunRow>, StoreError>

  /** Commits for different runs, in one transaction (D2 to D5, D16, D17, D23, D24). Results stand in the order of the batch. */
  readonly commit: (batch: ReadonlyArray<CommitRows>) => Effect.Effect<ReadonlyArray<CommitResult>, StoreError>

  /** Records what is known of an operation, without owning its run (D9). True if this call wrote it. */
  readonly recordOutcome: (outcome: OutcomeRow) => Effect.Effect<boolean, StoreError>

  /** One intent as it stands now; null if there is none. */
  readonly findEffect: (
    key: Pick<OutcomeRow, "namespace" | "runId" | "path" | "generation">,
  ) => Effect.Effect<EffectRecord | null, StoreError>

  /**
   * Starts or prolongs a worker's lease on everything that it owns: one row, no run row is touched (D8). Returns until
   * when, and the leases that the worker holds by the store's account, each with its run's `inbox`.
   */
  readonly beat: (
    workerId: string,
    leaseMs: number,
  ) => Effect.Effect<
    { readonly until: number; readonly now: number; readonly leases: ReadonlyArray<HeldLease> },
    StoreError
  >

  /** Whether a worker has no lease, or one that has ended by the store's clock (D8). */
  readonly leaseHasEnded: (workerId: string) => Effect.Effect<boolean, StoreError>

  /** Ends a worker's lease and gives up its runs: those that were running are due at once (D12). */
  readonly releaseWorker: (workerId: string) => Effect.Effect<void, StoreError>

  /**
   * A parked run becomes `pending`, without `parked` and with `recoveries` 0 (D16); `previousUntil` stays. False if it was
   * not parked.
   */
  readonly unpark: (namespace: string, runId: string) => Effect.Effect<boolean, StoreError>

  /** Settles an unknown outcome by a person's word, and unparks its run (D19). True if this call did. */
  readonly answer: (answer: AnswerRow) => Effect.Effect<boolean, StoreError>

  /** One page of parked runs (D21). */
  readonly listParked: (page: ParkedPage) => Effect.Effect<ReadonlyArray<ParkedRow>, StoreError>

  /** Sends a signal to a run (D22). */
  readonly send: (signal: NewSignalRow) => Effect.Effect<SendResult, StoreError>

  /** Signals of these names that nobody has consumed (D24); null if there is no such run. */
  readonly loadSignals: (
    namespace: string,
    runId: string,
    names: ReadonlyArray<string>,
  ) => Effect.Effect<LoadedSignals | null, StoreError>

  /** Asks that a run be canceled; its owner, or the next one, does it (D25). */
  readonly requestCancel: (
    namespace: string,
    runId: string,
    reason: string | null,
  ) => Effect.Effect<CancelResult, StoreError>

  /** Adds a listener for as long as the driver lives (D18). There where the capability `notify` is. */
  readonly onWakeUp?: (listener: () => void) => void

  /**
   * Runs a body and writes its commit in one transaction (D20). There where the capability `transactions` is.
   *
   * *Errors.* The body's own. `TransactionAborted`: the database has given the transaction up. `StoreError`: where it is
   * retryable after the body ended, the transaction may have been committed; the caller finds out before it goes on.
   */
  readonly transact?: <A, E>(
    limits: TransactionLimits,
    body: (access: TransactionAccess) => Effect.Effect<TransactionEnd<CommitRows, A>, E>,
  ) => Effect.Effect<{ readonly result: CommitResult; readonly value: A }, E | TransactionAborted | StoreError>
}
