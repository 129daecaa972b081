/** What the runtime uses of a store: typed records, refusals as errors. Made from a driver by `fromDriver`. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Either from "effect/Either"
import type { LeaseLost, RunNotFound, StoreError, TransactionAborted } from "../model/Errors.js"
import type {
  AttemptRecord,
  EffectRecord,
  FailureRecord,
  HeldLease,
  Lease,
  OpenState,
  ParkRecord,
  RunOutcome,
  RunRecord,
  RunState,
  StepRecord,
  WaitRecord,
} from "../model/Records.js"
import type { CheckpointDriver } from "./CheckpointDriver.js"
import type { Capabilities } from "./Capabilities.js"
import type { FireResult, FireSchedule, NewScheduleRow, NextSchedules, SchedulePage, ScheduleRow } from "./FlowRows.js"
import type { History, HistoryQuery } from "./HistoryRows.js"
import type { LocalSignals } from "./LocalSignals.js"
import type { RewindRow } from "./RewindRows.js"
import type {
  AnswerRow,
  CancelResult,
  ClaimRequest,
  CommitRows,
  DecideResult,
  DecisionRow,
  EffectWrite,
  ForkRow,
  ListedRow,
  LoadedSignals,
  LoadedWaits,
  NewRunRow,
  NewSignalRow,
  OutcomeRow,
  ParkedPage,
  ParkedRow,
  PauseResult,
  PerformedRow,
  ReopenRow,
  ReviewRow,
  ReviewsPage,
  RunKey,
  RunPatch,
  RunsPage,
  SendResult,
  StepsQuery,
  TransactionAccess,
  TransactionEnd,
  TransactionLimits,
} from "./CheckpointDriver.js"

export type { RunKey }

/**
 * One commit of one run, typed.
 *
 * @category models
 * @since 0.1.0
 */
export interface Commit extends Pick<
  CommitRows,
  "lease" | "base" | "seq" | "steps" | "consumes" | "waits" | "closes" | "wakesParent"
> {
  readonly run: Omit<RunPatch, "failure" | "parked"> & {
    readonly failure: FailureRecord | null
    readonly parked: ParkRecord | null
  }
  readonly effects: ReadonlyArray<EffectWrite>
  readonly attempts: ReadonlyArray<
    Omit<AttemptRecord, "endedAt" | "retryAt"> & { readonly retryInMs: number | null; readonly seq?: number }
  >
}

/**
 * What a person says of an unknown outcome, typed.
 *
 * @category models
 * @since 0.1.0
 */
export interface Answer extends Omit<AnswerRow, "attempt"> {
  readonly attempt: Omit<AttemptRecord, "path" | "endedAt" | "retryAt"> | null
}

/**
 * A parked run, typed. `parked`: why, or what of its row cannot be read.
 *
 * @category models
 * @since 0.1.0
 */
export interface ParkedRecord extends Omit<ParkedRow, "parked" | "unreadable"> {
  readonly parked: Either.Either<ParkRecord, StoreError>
}

/**
 * A run as it is listed, typed. `why` holds what is JSON: unreadable, it hides neither the run nor its neighbours.
 *
 * @category models
 * @since 0.1.0
 */
export interface ListedRecord extends Omit<ListedRow, "failure" | "parked"> {
  readonly why: Either.Either<Pick<RunRecord, "failure" | "parked">, StoreError>
}

/**
 * A failed run that is to be tried again, typed.
 *
 * @category models
 * @since 0.1.0
 */
export interface Reopen extends Omit<ReopenRow, "attempt"> {
  readonly attempt: Omit<AttemptRecord, "path" | "endedAt" | "retryAt">
}

/**
 * The store as the runtime sees it.
 *
 * *Errors.* `StoreError` where the database could not; `LeaseLost` where another worker owns the run.
 *
 * @category models
 * @since 0.1.0
 */
export interface CheckpointStoreService extends Pick<
  CheckpointDriver,
  "forgetOutputs" | "beginCall" | "endCall" | "findSpend" | "listCalls" | "sumCalls"
> {
  readonly capabilities: Capabilities
  /** Wake-ups among the users of this very store object. */
  readonly signals: LocalSignals
  /** Which database it is, whatever the address it is reached at. */
  readonly storeId: Effect.Effect<string, StoreError>
  readonly now: Effect.Effect<number, StoreError>
  readonly createRun: (
    run: NewRunRow,
  ) => Effect.Effect<{ readonly created: boolean; readonly run: RunRecord }, StoreError>
  /** Creates a child of a run that is held under that lease. `LeaseLost`: it is not, and there is none. */
  readonly createChild: (
    child: NewRunRow,
    parent: Lease,
  ) => Effect.Effect<{ readonly created: boolean; readonly run: RunRecord }, LeaseLost | StoreError>
  readonly findRun: (namespace: string, runId: string) => Effect.Effect<RunRecord, RunNotFound | StoreError>
  /** How many runs stand, each by itself: one that cannot be read does not hide the others. */
  readonly findRuns: (
    keys: ReadonlyArray<RunKey>,
  ) => Effect.Effect<ReadonlyArray<Either.Either<RunOutcome | null, StoreError>>, StoreError>
  readonly load: (namespace: string, runId: string) => Effect.Effect<RunState, RunNotFound | StoreError>
  readonly loadOpen: (
    namespace: string,
    runId: string,
    paths: ReadonlyArray<string>,
  ) => Effect.Effect<OpenState, StoreError>
  readonly loadSteps: (query: StepsQuery) => Effect.Effect<ReadonlyArray<StepRecord>, StoreError>
  readonly loadHistory: (query: HistoryQuery) => Effect.Effect<History, StoreError>
  readonly loadWaits: (namespace: string, runId: string) => Effect.Effect<LoadedWaits, RunNotFound | StoreError>
  readonly decideWait: (decision: DecisionRow) => Effect.Effect<DecideResult, StoreError>
  readonly expireWait: (lease: Lease, path: string) => Effect.Effect<WaitRecord | null, StoreError>
  readonly claim: (request: ClaimRequest) => Effect.Effect<ReadonlyArray<RunRecord>, StoreError>
  /** Commits of different runs in one transaction; for each, in their order, the store's clock at it or the refusal. */
  readonly commit: (
    batch: ReadonlyArray<Commit>,
  ) => Effect.Effect<ReadonlyArray<Either.Either<number, LeaseLost>>, StoreError>
  /** Where the store has transactions: what the body does and its commit, together (D20). Refused is `LeaseLost`. */
  readonly transact?: <A, E>(
    limits: TransactionLimits,
    body: (access: TransactionAccess) => Effect.Effect<TransactionEnd<Commit, A>, E>,
  ) => Effect.Effect<{ readonly at: number; readonly value: A }, E | LeaseLost | TransactionAborted | StoreError>
  readonly recordOutcome: (outcome: OutcomeRow) => Effect.Effect<boolean, StoreError>
  readonly findEffect: (
    key: Pick<OutcomeRow, "namespace" | "runId" | "path" | "generation">,
  ) => Effect.Effect<EffectRecord | null, StoreError>
  readonly beat: (
    workerId: string,
    leaseMs: number,
  ) => Effect.Effect<
    { readonly until: number; readonly now: number; readonly leases: ReadonlyArray<HeldLease> },
    StoreError
  >
  /** Of the leases that a worker holds, those of runs that anything has reached (D44). */
  readonly loadReached: (workerId: string) => Effect.Effect<ReadonlyArray<HeldLease>, StoreError>
  /** Whether a worker has no lease, or one that has ended. */
  readonly leaseHasEnded: (workerId: string) => Effect.Effect<boolean, StoreError>
  readonly releaseWorker: (workerId: string) => Effect.Effect<void, StoreError>
  readonly unpark: (namespace: string, runId: string) => Effect.Effect<boolean, StoreError>
  readonly answer: (answer: Answer) => Effect.Effect<boolean, StoreError>
  readonly listParked: (page: ParkedPage) => Effect.Effect<ReadonlyArray<ParkedRecord>, StoreError>
  readonly send: (signal: NewSignalRow) => Effect.Effect<SendResult, StoreError>
  readonly loadSignals: (
    namespace: string,
    runId: string,
    names: ReadonlyArray<string>,
  ) => Effect.Effect<LoadedSignals, RunNotFound | StoreError>
  readonly requestCancel: (
    namespace: string,
    runId: string,
    reason: string | null,
  ) => Effect.Effect<CancelResult, StoreError>
  readonly listRuns: (page: RunsPage) => Effect.Effect<ReadonlyArray<ListedRecord>, StoreError>
  readonly listReviews: (page: ReviewsPage) => Effect.Effect<ReadonlyArray<ReviewRow>, StoreError>
  readonly putSchedule: (schedule: NewScheduleRow) => Effect.Effect<ScheduleRow, StoreError>
  readonly removeSchedule: (namespace: string, scheduleId: string) => Effect.Effect<boolean, StoreError>
  readonly listSchedules: (page: SchedulePage) => Effect.Effect<ReadonlyArray<ScheduleRow>, StoreError>
  readonly nextSchedules: (asked: NextSchedules) => Effect.Effect<ReadonlyArray<ScheduleRow>, StoreError>
  readonly fireSchedule: (fire: FireSchedule) => Effect.Effect<FireResult, StoreError>
  readonly setPaused: (namespace: string, runId: string, paused: boolean) => Effect.Effect<PauseResult, StoreError>
  readonly reopenRun: (reopen: Reopen) => Effect.Effect<boolean, StoreError>
  /** The store's clock at it; null where it would undo what has happened outside. */
  readonly rewindRun: (rewind: RewindRow) => Effect.Effect<number | null, LeaseLost | StoreError>
  readonly forkRun: (
    fork: ForkRow,
  ) => Effect.Effect<{ readonly created: boolean; readonly run: RunRecord }, RunNotFound | StoreError>
  readonly loadPerformed: (
    namespace: string,
    runId: string,
  ) => Effect.Effect<ReadonlyArray<PerformedRow>, RunNotFound | StoreError>
}

/**
 * The store, as a service. `MemoryStore.layer`, `SqliteStore.layer` and others provide it: changing one line changes the
 * database.
 *
 * @category services
 * @since 0.1.0
 */
export class CheckpointStore extends Context.Tag("@cairn/core/CheckpointStore")<
  CheckpointStore,
  CheckpointStoreService
>() {}
