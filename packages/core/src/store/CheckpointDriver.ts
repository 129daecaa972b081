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
 *   of `onWakeUp` once, and no earlier than a claim can find the runs: a `createRun` that created, an `unpark` that
 *   succeeded, a `releaseWorker` that gave up a running run. Nothing else does, and no call that failed. What is called
 *   while a connection is down is lost; the listeners are called once when it is back.
 */
import type * as Effect from "effect/Effect"
import type { StoreError } from "../model/Errors.js"
import type {
  AttemptRecord,
  EffectRecord,
  EffectState,
  Lease,
  RunRecord,
  RunStatus,
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
 * the lease up in the same statement.
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
}

/**
 * One commit of one run: the run row and what belongs to it, together or not at all.
 *
 * *Shape.* `base` is the `seq` it builds on, `seq` the one it sets. `retryInMs` of an attempt is a delay from the store's
 * now. Times of records (`committedAt`, `endedAt`) are stamped by the store.
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
}

/**
 * What became of a commit.
 *
 * *Shape.* `Committed`: durable, `at` the store's clock. `Refused`: nothing was written; `run` is the row that stands
 * against it, or null if there is none.
 *
 * @category rows
 * @since 0.1.0
 */
export type CommitResult =
  | { readonly _tag: "Committed"; readonly at: number }
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
 * The contract of a database adapter. Every method is one atomic act of the database.
 *
 * *Errors.* `StoreError` only, with its reason; a driver retries nothing but what its own database asks for (a busy
 * file, a serialisation failure), and never after a commit whose outcome it does not know.
 *
 * *Laws.* D1 to D18, at the head of this file.
 *
 * @category models
 * @since 0.1.0
 */
export interface CheckpointDriver {
  readonly capabilities: Capabilities

  /** The store's clock, in milliseconds since 1970. */
  readonly now: Effect.Effect<number, StoreError>

  /** Creates a run, or returns the one of that id (D1). */
  readonly createRun: (run: NewRunRow) => Effect.Effect<{ readonly created: boolean; readonly run: RunRow }, StoreError>

  /** One run's row; null if there is none (D14). */
  readonly findRun: (namespace: string, runId: string) => Effect.Effect<RunRow | null, StoreError>

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

  /** Commits for different runs, in one transaction (D2 to D5, D16, D17). Results stand in the order of the batch. */
  readonly commit: (batch: ReadonlyArray<CommitRows>) => Effect.Effect<ReadonlyArray<CommitResult>, StoreError>

  /** Records what is known of an operation, without owning its run (D9). True if this call wrote it. */
  readonly recordOutcome: (outcome: OutcomeRow) => Effect.Effect<boolean, StoreError>

  /** One intent as it stands now; null if there is none. */
  readonly findEffect: (
    key: Pick<OutcomeRow, "namespace" | "runId" | "path" | "generation">,
  ) => Effect.Effect<EffectRecord | null, StoreError>

  /**
   * Starts or prolongs a worker's lease on everything that it owns: one row, no run row is touched (D8). Returns until
   * when, and the leases that the worker holds by the store's account.
   */
  readonly beat: (
    workerId: string,
    leaseMs: number,
  ) => Effect.Effect<
    { readonly until: number; readonly now: number; readonly leases: ReadonlyArray<Lease> },
    StoreError
  >

  /** Ends a worker's lease and gives up its runs: those that were running are due at once (D12). */
  readonly releaseWorker: (workerId: string) => Effect.Effect<void, StoreError>

  /**
   * A parked run becomes `pending`, without `parked` and with `recoveries` 0 (D16); `previousUntil` stays. False if it was
   * not parked.
   */
  readonly unpark: (namespace: string, runId: string) => Effect.Effect<boolean, StoreError>

  /** Adds a listener for as long as the driver lives (D18). There where the capability `notify` is. */
  readonly onWakeUp?: (listener: () => void) => void
}
