/**
 * What an adapter implements for a database: rows of text and integers, under numbered laws. `fromDriver` turns it into
 * the `CheckpointStore` that the runtime uses; the conformance kit proves the laws.
 *
 * Laws of every driver:
 *
 * - **D1** `createRun` is atomic. Of any number of creators of one id, one creates; all get the same row; an existing
 *   row is not changed. `createChild` creates only while its parent is held under the lease that it shows (D3), checked by the
 *   statement that writes: whoever claims the parent next finds the child there, or it is never created. An id that is there
 *   already is given whoever holds the parent.
 * - **D2** `commit` is atomic: run row, steps, effects and attempts, all or none, also when the process dies between two
 *   statements.
 * - **D3** A commit shows fence and claim token, checked by the statement that writes. Another owner's is refused and
 *   changes nothing. An owner whose lease has ended commits for as long as nobody has replaced it.
 * - **D4** A commit names the `seq` it builds on, checked by the same statement. An older or a skipping one is refused.
 * - **D5** The commits of one batch concern different runs and are independent: a refused one does not touch the others.
 * - **D6** `claim` is compare-and-set: of any number of claimers one gets a run. Each claim raises `fence` by one and sets
 *   the claimer's token.
 * - **D7** Only these are claimed: `pending` runs; those in `sleeping`, `waiting` or `review` whose `wakeAt` has come;
 *   `running` ones that nobody holds or whose owner's lease has ended. Never the run of a live owner, never one with a
 *   `pausedAt`, never a workflow or version that was not asked for, never a run of another namespace. Of what is due a higher
 *   `priority` comes first, then what has been due longest.
 * - **D8** All times are the store's clock, read when the statement runs, in whole milliseconds; parts of one are rounded
 *   up. A worker whose own lease has ended claims nothing until it beats again. The last beat says until when a lease
 *   lasts, also where that is sooner.
 * - **D9** `recordOutcome` needs no fence. It matches key, payload hash and claim token and writes only over `intended`;
 *   the first writer wins.
 * - **D10** Text comes back unit for unit: ids, paths and payloads with any character that the contract lets through.
 *   Equality is exact: no case folding, no trimming, no Unicode normalisation, no wildcards.
 * - **D11** `load` returns the run and the steps of scope `""` in order of `seq`, read at one instant. `loadSteps` returns the
 *   steps of exactly the scopes that it is asked for, or those of any scope that have an idempotency key, in order of `seq` and,
 *   where that is the same, of path; page after page each step comes once. `loadOpen` returns the effects and attempts of
 *   exactly the paths that it is asked for, in order of generation and attempt. What is not asked for is not read: that a run
 *   has more of it costs nothing.
 * - **D12** `releaseWorker` gives up exactly the runs that the worker holds (owner and claim token become null), and ends
 *   its lease. Neither `seq` nor `fence` moves. A run that was running becomes `pending`, and its `previousUntil` now: an
 *   operation that was cut off may still be under way. Any other keeps its status and `previousUntil`.
 * - **D13** Integers are exact up to 2^53 - 1; a stored number beyond is a `StoreError`, never a rounded value.
 * - **D14** Absent and unreadable are different: absent is null, unreadable is a `StoreError`. A run that cannot be read stops none
 *   of its neighbours: a claim goes without it, `findRuns` has the error in its place, a list marks it, a heartbeat has its lease
 *   as near as can be read, and a commit of its neighbours in one batch with one of its own goes through. A schedule likewise.
 * - **D15** A takeover of an unreleased lease keeps in `previousUntil` when that lease ended, and adds one to
 *   `recoveries`; a released run is claimed without either. A commit that releases leaves `previousUntil` as it is.
 *   `interruptions` counts such takeovers, and what D12 makes `pending`; it is never set back.
 * - **D16** A commit that adds a step sets `recoveries` to 0, and so does `unpark`.
 * - **D17** A settled effect (any state but `intended`) is never changed, by no commit and no `recordOutcome`: the rest of
 *   such a commit goes through.
 * - **D18** With the capability `notify`, each act by which runs become claimable at once, by any process, calls the listeners
 *   of `onWakeUp` once, and no earlier than a claim can find the runs: a `createRun` or `createChild` that created one which is not to begin
 *   later, an `unpark` or `answer` that succeeded, a `send`, `requestCancel` or `decideWait` that ended a run's wait or pause, a `commit`
 *   that ended a parent's, a `releaseWorker` that gave up a running run, a `setPaused` that resumed a pending one, a `reopenRun`
 *   that succeeded, a `forkRun` that created one which is not to begin later, a `fireSchedule` that created one. Nothing else
 *   does, and no call that failed. What is called while a connection is down is lost; the listeners are called once when it is back.
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
 * - **D25** `requestCancel` marks a run once: the first time and reason stay. It adds one to `inbox`, and ends a pause. A run that waits, sleeps or
 *   is in review becomes `pending`, without `parked`, and its `previousUntil` now: an operation that it was waiting for may
 *   still be under way. One in review is taken up as by `unpark` (D16). Any other keeps its status and `updatedAt`; neither `seq`
 *   nor `fence` moves. A run that is final is left alone.
 * - **D26** `storeId` is one text through every connection, from the day on which the tables were made; another database has
 *   another one.
 * - **D27** A commit removes the waits at the paths in `closes`, then opens those in `waits`; one that is opened where another one
 *   stands takes its place, and of several at one path the last counts. `openedAt`, and `wakeAt` where it is a delay, are by the
 *   store's clock. `loadWaits` gives those that stand, in order of their paths, with the `inbox` of the same instant.
 * - **D28** `decideWait` writes a decision once, into a review that is open under the given name and whose `wakeAt` has not come by
 *   the store's clock, of a run that is not final. In the same transaction it adds one to `inbox` and wakes the run as `send`
 *   does. `expireWait` closes an open wait for the run's owner (D3), and touches nothing else: from then on no decision is
 *   taken. Of the two exactly one wins, whatever the order, and both are told which. The row stays until a commit closes it.
 * - **D29** A commit that names a run in `wakesParent` adds one to that run's `inbox` and wakes it as `send` does, in the same
 *   transaction: each commit of a batch for itself, and also where the parent commits in that batch. A parent that is gone or
 *   final is left alone. A refused commit tells nobody.
 * - **D30** `listRuns` gives the runs that fit all of its filters, without what they were given and have put out, newest first
 *   (by `createdAt`, then by run id, both falling), never more than `limit`. Page after page, each after the last of the one before,
 *   a run that was there when the first was read comes once, whatever is created meanwhile.
 * - **D31** `listReviews` gives the reviews of a namespace that are open and whose `wakeAt` has not come by the store's clock, those
 *   first that were opened first (then by run id and path), each once over all pages; never more than `limit`.
 * - **D32** `setPaused` marks a run as paused, from the store's now on, and adds one to its `inbox`; or takes the mark away, and
 *   adds nothing. Neither `seq`, `fence`, `status` nor `updatedAt` moves. What is so already, a run
 *   that is final, and a pause of one that is to be canceled, is left alone.
 *   A paused run is not claimed (D7); what arrives for it is kept, and its owner commits as any.
 * - **D33** `reopenRun` makes a run that has failed at the named `seq` `pending` again: `failure`, `output`, `wakeAt` and a wish to
 *   cancel or to pause it are gone, and `recoveries` is 0. It adds the attempt in the same transaction. Of several calls one
 *   succeeds; one that is refused changes nothing. Steps, effects and earlier attempts stay as they are.
 * - **D34** `forkRun` creates a run (D1) from what another of its namespace has committed: the steps of all scopes whose `seq` is
 *   less than `beforeSeq`, and of the named paths the effects that succeeded, as the first generation; both otherwise as they are
 *   (the keys too), the steps with `committedAt` now. Its `seq` is the greatest of the copied ones, or 1, its `planHash` the
 *   source's, and `forkedFrom` says whose it is. All of it is there at once, or nothing; a run of that id that is there already is not changed, and neither is the
 *   source. `loadPerformed` gives what of a run has happened outside, or may have, read at one instant: its effects that are
 *   `intended` or `succeeded`, and the steps that were transactions or children.
 * - **D35** A claim takes no more than the `limits` of its workflows leave, whoever claims at the same time: of a workflow, in all
 *   versions, and of one `flowKey` of it no more runs are held than said. Held is a run that is `running` and whose owner's lease
 *   lasts. What a limit holds back is left as it is, and hides nothing that is due behind it, of its own workflow or another.
 * - **D36** With a `rate`, no more runs are claimed for the first time (`fence` 0) in any `perMs` milliseconds than said, of the
 *   workflow or of each key, whoever claims. What has begun is counted in the claim's own transaction, and is remembered for as
 *   long as it counts, also where its run has ended. A run that was claimed before is not held back by it.
 * - **D37** `fireSchedule` moves a schedule whose `nextAt` is still the named one, and creates its run (D1), in one transaction: of
 *   any number of callers one does. With `overlap` `skip`, and the run that it started last not final, it only moves. A run of that
 *   id that is there already is not changed. `putSchedule` leaves `nextAt` as it is where cron and time zone are the same, and
 *   `lastAt`, `lastRunId` and `createdAt` always. `nextSchedules` gives those of the named workflows and versions by `nextAt`.
 * - **D38** `loadHistory` gives what the commits of a run after `after` and up to `through` have left: its steps of all scopes, its
 *   attempts, and its waits that stand; of each the first `limit` in order of `seq`, which an attempt and a wait have from
 *   their commit. An attempt that is added beside commits (`answer`, `reopenRun`) has that of the run and one more: the run's
 *   next commit shows it. What stands before and after that stretch is not read: a page costs the same wherever it begins.
 * - **D39** `beginCall` writes a call once under its id: for the run's owner (D3), or with its `end` for anybody. In the same
 *   transaction `atMost` is reserved in each of its counters, or what it has cost is added, and it is counted. It is refused, and
 *   nothing is changed, where a counter with a limit has nothing left, or where what is spent and reserved in it and what comes
 *   are together more than the limit, whoever begins at the same time. A call of that id that is there already is `Begun`.
 * - **D40** `endCall` writes what a call has used, and needs no fence. It matches id and claim token and writes only over `begun`;
 *   the first writer wins. In the same transaction what was reserved is given back, in the counters of the day on which it began,
 *   and its cost added. Where the cost is unknown, what was reserved stays so: it may have cost as much.
 * - **D41** `findSpend` gives counters as they stand, in the order of what is asked for; `listCalls` the calls of a run, each once over all pages, and
 *   `sumCalls` their sums, the dearest first and then in order of key, never more than `limit`. All of them are exact: what is unknown is
 *   counted as unknown, and adds nothing to a sum. A sum or counter that has come to 2^53 - 1 stays there, and is that much or more: no
 *   further call fails for it. What a call's attempt came to, and who is left to end it, is told as it stands when it is read.
 * - **D42** `rewindRun` undoes what a run has committed from `toSeq` on, in one transaction, for its owner (D3) and from the `seq`
 *   that it names (D4), both checked by the statement that writes. The steps, waits and attempts of that stretch are gone, earlier
 *   attempts at the paths of those steps as well; attempts of kind `refused` stay, as all effects do, which they account for.
 *   Signals that steps of effect `signal` took there are given again (D24), in their old order. `mark` is added as a step, `seq` is
 *   the named one, which grows, and the run is `running`, with no `wakeAt`; neither `inbox` nor `fence` nor `recoveries` moves.
 *   Nothing is changed where something has happened outside from there on, or may have: a step with an idempotency key, a
 *   transaction or a child of that stretch; an effect that is `intended` or `succeeded`, and a child run, at a path without a step
 *   of before. Who does not own the run is refused whatever has happened.
 * - **D43** `forgetOutputs` takes away what attempts that were rejected have given, of those of a namespace that ended more than
 *   `olderThanMs` before the store's now and whose run is not in review, and says of how many: no more than `limit`. Nothing else of
 *   them changes.
 * - **D44** `loadReached` gives the leases that a worker holds of runs whose `inbox` is more than 0, as a heartbeat gives them, and
 *   writes nothing. With the capability `notify`, each act that adds to the `inbox` of a run which a worker holds, by any process,
 *   calls the listeners of `onReached` with the id of that worker, no earlier than `loadReached` tells of it: once, or once for several of
 *   one transaction. Nothing else does, and no call that failed. What is called while a connection is down is lost; a heartbeat
 *   tells of it.
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
  WaitRecord,
} from "../model/Records.js"
import type {
  BeginCallResult,
  CallRow,
  CallsPage,
  CallsQuery,
  CallSumRow,
  Counter,
  EndCallRow,
  NewCallRow,
  SpendRow,
} from "./CallRows.js"
import type { Capabilities } from "./Capabilities.js"
import type {
  ClaimLimits,
  FireResult,
  FireSchedule,
  NewScheduleRow,
  NextSchedules,
  SchedulePage,
  ScheduleRow,
} from "./FlowRows.js"
import type { HistoryQuery, HistoryRows } from "./HistoryRows.js"
import type { RewindResult, RewindRow } from "./RewindRows.js"

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
 * A run that does not exist yet. It starts with `seq` 0 and `fence` 0: as `pending`, or as `sleeping` where `wakeAt` says when it
 * is to begin, by the store's clock.
 *
 * @category rows
 * @since 0.1.0
 */
export type NewRunRow = Pick<
  RunRow,
  | "namespace"
  | "runId"
  | "workflow"
  | "version"
  | "planHash"
  | "input"
  | "inputHash"
  | "parentRunId"
  | "parentPath"
  | "flowKey"
  | "priority"
  | "wakeAt"
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
 * *Shape.* `wakeInMs` is a delay from the store's now, null for none: the store turns it into `wakeAt`. A run that is `parked`
 * for a fault is given none: it is taken up by a person, and not because time has passed (D7). `release` gives
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
 * now. Times of records (`committedAt`, `endedAt`) are stamped by the store. An attempt and a wait may have a `seq` of their own,
 * where the commit stands for several: theirs is one of those; that of the commit unless given. `consumes`: the signals that steps of this
 * commit take, each with the path of its step (D24). `waits` and `closes`: what the run begins to wait for, and the paths of
 * what it waits for no more (D27). `wakesParent`: the run of the same namespace that is told (D29).
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
  readonly attempts: ReadonlyArray<
    Omit<AttemptRow, "endedAt" | "retryAt"> & { readonly retryInMs: number | null; readonly seq?: number }
  >
  readonly consumes: ReadonlyArray<{ readonly signalId: string; readonly path: string }>
  readonly waits: ReadonlyArray<WaitWrite>
  readonly closes: ReadonlyArray<string>
  readonly wakesParent: string | null
}

/**
 * A wait that is opened.
 *
 * *Shape.* `wake`: when it is over by itself: so many milliseconds from the store's now, or at a time of its clock; null for
 * never.
 *
 * @category rows
 * @since 0.1.0
 */
export type WaitWrite = Pick<WaitRecord, "path" | "kind" | "name" | "data"> & {
  readonly wake: { readonly inMs: number } | { readonly at: number } | null
  readonly seq?: number
}

/**
 * Which steps are read (D11).
 *
 * *Shape.* `scopes`: those of these scopes; null for all that have an idempotency key, in whatever scope. In order of `seq`, then
 * of `path` as the store orders text; with `newestFirst` the other way round. `after`: only what comes after that place in the
 * order; null from the start. `limit`: null for all. Without `withResults` every `result` is null. A page of one scope that ends
 * in `[`, where turns and items stand, is a look-up in an index of that order.
 *
 * @category rows
 * @since 0.1.0
 */
export interface StepsQuery {
  readonly namespace: string
  readonly runId: string
  readonly scopes: ReadonlyArray<string> | null
  readonly newestFirst: boolean
  readonly after: { readonly seq: number; readonly path: string } | null
  readonly limit: number | null
  readonly withResults: boolean
}

/**
 * What a run waits for, read at one instant with its `inbox`.
 *
 * @category rows
 * @since 0.1.0
 */
export interface LoadedWaits {
  readonly inbox: number
  readonly waits: ReadonlyArray<WaitRecord>
}

/**
 * What a person has decided.
 *
 * *Shape.* `name` is that of the wait: a decision for an earlier occurrence names another one. `decision` is JSON.
 *
 * @category rows
 * @since 0.1.0
 */
export interface DecisionRow {
  readonly namespace: string
  readonly runId: string
  readonly path: string
  readonly name: string
  readonly decision: string
}

/**
 * What became of a decision.
 *
 * *Shape.* `Decided`: written by this call. `AlreadyDecided`: an earlier one stands under that name, and no commit has closed the
 * wait yet. `Closed`: no such review is open, its time is over, or the run is final. `Missing`: there is no such run.
 *
 * @category rows
 * @since 0.1.0
 */
export type DecideResult =
  | { readonly _tag: "Decided"; readonly at: number }
  | { readonly _tag: "AlreadyDecided"; readonly decision: string; readonly at: number }
  | { readonly _tag: "Closed" }
  | { readonly _tag: "Missing" }

/**
 * What became of a commit.
 *
 * *Shape.* `Committed`: durable, `at` the store's clock; `status` is the one that was set, or `pending` (D23). `Refused`:
 * nothing was written; `run` is the row that stands against it, or null if there is none.
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
 * is fresh for each call. At most `limit` runs come back, longest due first. `limits`: what is taken of the workflow at most
 * (D35, D36); left out where there are none, and then nothing is counted.
 *
 * @category rows
 * @since 0.1.0
 */
export interface ClaimRequest {
  readonly namespace: string
  readonly workerId: string
  readonly claimToken: string
  readonly workflows: ReadonlyArray<{ readonly name: string; readonly version: number; readonly limits?: ClaimLimits }>
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
 * *Shape.* `unreadable`: as in `ListedRow`.
 *
 * @category rows
 * @since 0.1.0
 */
export type ParkedRow = Pick<RunRow, "namespace" | "runId" | "workflow" | "version" | "seq" | "updatedAt"> & {
  readonly parked: string
  readonly unreadable?: StoreError
}

/**
 * A page of runs.
 *
 * *Shape.* A filter that is null lets everything through; `statuses` and `workflow` are compared exactly. `createdFrom` is the first
 * time that fits, `createdBefore` the first that does not. `after`: the last run of the page before, null for the first page.
 *
 * @category rows
 * @since 0.1.0
 */
export interface RunsPage {
  readonly namespace: string
  readonly workflow: string | null
  readonly statuses: ReadonlyArray<RunStatus> | null
  readonly parentRunId: string | null
  readonly createdFrom: number | null
  readonly createdBefore: number | null
  readonly after: { readonly createdAt: number; readonly runId: string } | null
  readonly limit: number
}

/**
 * A run as it is listed: without its input and output.
 *
 * *Shape.* `unreadable`: what is wrong with it, where a column cannot be read (D14); a number is then as near as one comes.
 *
 * @category rows
 * @since 0.1.0
 */
export type ListedRow = Omit<RunRow, "input" | "output"> & { readonly unreadable?: StoreError }

/**
 * A page of open reviews. `after`: the last one of the page before, null for the first page.
 *
 * @category rows
 * @since 0.1.0
 */
export interface ReviewsPage {
  readonly namespace: string
  readonly after: { readonly openedAt: number; readonly runId: string; readonly path: string } | null
  readonly limit: number
}

/**
 * An open review, with the run that waits for it.
 *
 * *Shape.* `unreadable`: as in `ListedRow`.
 *
 * @category rows
 * @since 0.1.0
 */
export type ReviewRow = Pick<RunRow, "namespace" | "runId" | "workflow" | "version"> &
  Pick<WaitRecord, "path" | "name" | "openedAt" | "wakeAt" | "data"> & { readonly unreadable?: StoreError }

/**
 * What became of a wish to pause a run, or to let it go on.
 *
 * *Shape.* `Done`: by this call. `Known`: it was so already. `Ended`: the run is final. `Missing`: there is no such run.
 *
 * @category rows
 * @since 0.1.0
 */
export type PauseResult = "Done" | "Known" | "Ended" | "Missing"

/**
 * A failed run that is to be tried again.
 *
 * *Shape.* `seq` is that of the run which the caller has seen. `attempt` stands for the retry, at `path` (kind `retried`).
 *
 * @category rows
 * @since 0.1.0
 */
export interface ReopenRow {
  readonly namespace: string
  readonly runId: string
  readonly seq: number
  readonly path: string
  readonly attempt: Omit<AttemptRow, "path" | "endedAt" | "retryAt">
}

/**
 * A run that begins with what another one of its namespace has committed.
 *
 * *Shape.* `run`: the new one; its `planHash` is not looked at. `from`: the other one. `effects`: paths of operations whose recorded
 * results the new run is to find.
 *
 * @category rows
 * @since 0.1.0
 */
export interface ForkRow {
  readonly run: NewRunRow
  readonly from: string
  readonly beforeSeq: number
  readonly effects: ReadonlyArray<string>
}

/**
 * Something that a run did outside of itself, or may have done.
 *
 * *Shape.* `seq`: of its committed step; null where none is. `operation` and `idempotencyKey` are null for what is no operation.
 * `isKnown`: false for an effect whose outcome is unknown.
 *
 * @category rows
 * @since 0.1.0
 */
export interface PerformedRow {
  readonly path: string
  readonly seq: number | null
  readonly kind: "operation" | "transaction" | "child"
  readonly operation: string | null
  readonly idempotencyKey: string | null
  readonly isKnown: boolean
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
 * `query`: one statement, its parameters spelled as the database does; rows as it gives them. `snapshot`: what the database calls
 * the state that a statement sees now, for people to read; left out where it has no name for it.
 *
 * @category rows
 * @since 0.1.0
 */
export interface TransactionAccess {
  readonly services: Context.Context<any>
  readonly query: (text: string, parameters: ReadonlyArray<unknown>) => Effect.Effect<ReadonlyArray<unknown>, unknown>
  readonly snapshot?: Effect.Effect<string, unknown>
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
 * Which rejected outputs are taken away (D43).
 *
 * @category rows
 * @since 0.1.0
 */
export interface OldOutputs {
  readonly namespace: string
  readonly olderThanMs: number
  readonly limit: number
}

/**
 * The contract of a database adapter. Every method is one atomic act of the database.
 *
 * *Errors.* `StoreError` only, with its reason; a driver retries nothing but what its own database asks for (a busy
 * file, a serialisation failure), and never after a commit whose outcome it does not know.
 *
 * *Laws.* D1 to D42, at the head of this file.
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

  /** The same of a child, for the owner of its parent (D1); null where that is somebody else by now, and it is not there. */
  readonly createChild: (
    child: NewRunRow,
    parent: Lease,
  ) => Effect.Effect<{ readonly created: boolean; readonly run: RunRow } | null, StoreError>

  /**
   * The same for many runs, in one transaction (D1). Results stand in the order of the batch; where an id stands in it
   * twice, the first one creates.
   */
  readonly createRuns: (
    runs: ReadonlyArray<NewRunRow>,
  ) => Effect.Effect<ReadonlyArray<{ readonly created: boolean; readonly run: RunRow }>, StoreError>

  /** One run's row; null if there is none (D14). */
  readonly findRun: (namespace: string, runId: string) => Effect.Effect<RunRow | null, StoreError>

  /**
   * How many runs stand, in the order of what is asked for; null where there is none, and what is wrong with it where one cannot
   * be read (D14). Their inputs are not read.
   */
  readonly findRuns: (
    keys: ReadonlyArray<RunKey>,
  ) => Effect.Effect<ReadonlyArray<Omit<RunRow, "input"> | StoreError | null>, StoreError>

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

  /** Committed steps of scopes, or those that have performed something (D11). */
  readonly loadSteps: (query: StepsQuery) => Effect.Effect<ReadonlyArray<StepRecord>, StoreError>

  /** What a stretch of a run's commits has left (D38). */
  readonly loadHistory: (query: HistoryQuery) => Effect.Effect<HistoryRows, StoreError>

  /** What a run waits for (D27); null if there is no such run. */
  readonly loadWaits: (namespace: string, runId: string) => Effect.Effect<LoadedWaits | null, StoreError>

  /** Writes a person's decision (D28). */
  readonly decideWait: (decision: DecisionRow) => Effect.Effect<DecideResult, StoreError>

  /**
   * Closes a wait unanswered, for the run's owner (D28). What stands then: `expired`, or `decided` if somebody was first; null
   * where there is no such wait or the lease is another one's.
   */
  readonly expireWait: (lease: Lease, path: string) => Effect.Effect<WaitRecord | null, StoreError>

  /**
   * Takes ownership of runs that are due (D6, D7, D8, D15). One that cannot be read is taken too, so that nobody asks for it again
   * and again, and not given back: its owner's log says what is wrong with it (D14).
   */
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

  /** Of the leases that a worker holds, those of runs that anything has reached (D44). */
  readonly loadReached: (workerId: string) => Effect.Effect<ReadonlyArray<HeldLease>, StoreError>

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

  /** One page of runs, newest first (D30). */
  readonly listRuns: (page: RunsPage) => Effect.Effect<ReadonlyArray<ListedRow>, StoreError>

  /** One page of open reviews (D31). */
  readonly listReviews: (page: ReviewsPage) => Effect.Effect<ReadonlyArray<ReviewRow>, StoreError>

  /** Pauses a run, or lets a paused one go on (D32). */
  readonly setPaused: (namespace: string, runId: string, paused: boolean) => Effect.Effect<PauseResult, StoreError>

  /** Lets a failed run go on (D33). True if this call did. */
  readonly reopenRun: (reopen: ReopenRow) => Effect.Effect<boolean, StoreError>

  /** Creates a run from what another one has committed, or returns the one of that id; null if there is no such other (D34). */
  readonly forkRun: (
    fork: ForkRow,
  ) => Effect.Effect<{ readonly created: boolean; readonly run: RunRow } | null, StoreError>

  /** What of a run has happened outside, or may have, in order of path (D34); null if there is no such run. */
  readonly loadPerformed: (
    namespace: string,
    runId: string,
  ) => Effect.Effect<ReadonlyArray<PerformedRow> | null, StoreError>

  /** Makes a schedule, or gives the one of that id other words (D37). */
  readonly putSchedule: (schedule: NewScheduleRow) => Effect.Effect<ScheduleRow, StoreError>

  /** Removes a schedule; the runs that it has started go on. False if there is none. */
  readonly removeSchedule: (namespace: string, scheduleId: string) => Effect.Effect<boolean, StoreError>

  /** One page of schedules, in order of their ids. */
  readonly listSchedules: (page: SchedulePage) => Effect.Effect<ReadonlyArray<ScheduleRow>, StoreError>

  /** The schedules that are due first, by `nextAt`, whether that has come or not (D37). */
  readonly nextSchedules: (asked: NextSchedules) => Effect.Effect<ReadonlyArray<ScheduleRow>, StoreError>

  /** Starts a schedule's run, and moves it on (D37). */
  readonly fireSchedule: (fire: FireSchedule) => Effect.Effect<FireResult, StoreError>

  /** Writes that a paid call begins, and reserves what it may cost (D39). */
  readonly beginCall: (call: NewCallRow) => Effect.Effect<BeginCallResult, StoreError>

  /** Writes what a call has used (D40). True if this call did. */
  readonly endCall: (call: EndCallRow) => Effect.Effect<boolean, StoreError>

  /** Counters as they stand today (D41). */
  readonly findSpend: (
    namespace: string,
    counters: ReadonlyArray<Counter>,
  ) => Effect.Effect<ReadonlyArray<SpendRow>, StoreError>

  /** A page of one run's calls (D41). */
  readonly listCalls: (page: CallsPage) => Effect.Effect<ReadonlyArray<CallRow>, StoreError>

  /** Sums over calls (D41). */
  readonly sumCalls: (query: CallsQuery) => Effect.Effect<ReadonlyArray<CallSumRow>, StoreError>

  /** Undoes the last commits of a run (D42). */
  readonly rewindRun: (rewind: RewindRow) => Effect.Effect<RewindResult, StoreError>

  /** Takes old rejected outputs away (D43). */
  readonly forgetOutputs: (old: OldOutputs) => Effect.Effect<number, StoreError>

  /** Adds a listener for as long as the driver lives (D18). There where the capability `notify` is. */
  readonly onWakeUp?: (listener: () => void) => void

  /** Adds a listener for as long as the driver lives (D44). There where the capability `notify` is. */
  readonly onReached?: (listener: (workerId: string) => void) => void

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
