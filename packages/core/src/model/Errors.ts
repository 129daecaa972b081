/**
 * The errors of Cairn: tagged, with a closed `reason`, and `isRetryable` where a caller could try again.
 *
 * They are told apart by `_tag`, never by `instanceof`, so that two copies of the package understand each other.
 */
import * as Data from "effect/Data"
import type { Diagnostic } from "./DiagnosticCode.js"

/**
 * A namespace, run id or name that no store could keep apart from all others.
 *
 * *Errors.* Not retryable: choose another id.
 *
 * @category errors
 * @since 0.1.0
 */
export class InvalidId extends Data.TaggedError("InvalidId")<{
  readonly kind: "namespace" | "run id" | "workflow name" | "worker id" | "signal id" | "limit key" | "schedule id"
  readonly id: string
  readonly problem: string
}> {
  readonly isRetryable = false
  override get message() {
    return `The ${this.kind} ${JSON.stringify(this.id)} cannot be used: ${this.problem}.`
  }
}

/**
 * A schedule that could never be due as it is meant: its cron specification, time zone or an option. Nothing was stored.
 *
 * *Errors.* Not retryable: correct what `problem` names.
 *
 * @category errors
 * @since 0.1.0
 */
export class InvalidSchedule extends Data.TaggedError("InvalidSchedule")<{
  readonly id: string
  readonly problem: string
}> {
  readonly isRetryable = false
  override get message() {
    return `Schedule '${this.id}' cannot be made: ${this.problem}.`
  }
}

/**
 * A value that its schema refuses, or that JSON cannot carry. Nothing of it was stored.
 *
 * *Shape.* `place` reads like `output of step 'extract'`; `field` is a path such as `.lines[3].due`, empty for the whole
 * value.
 *
 * *Errors.* `SchemaMismatch`: the schema refuses it. `NotJson`: bigint, function, symbol, NaN, an instance of a class
 * and so on. `Circular`: it contains itself. `TooLarge`: past the size limit. None is retried, except by `onInvalid`.
 *
 * @category errors
 * @since 0.1.0
 */
export class InvalidValue extends Data.TaggedError("InvalidValue")<{
  readonly place: string
  readonly field: string
  readonly reason: "SchemaMismatch" | "NotJson" | "Circular" | "TooLarge"
  readonly problem: string
}> {
  readonly isRetryable = false
  override get message() {
    const where = this.field === "" ? this.place : `${this.place}, at ${this.field}`
    return `${where}: ${this.problem}`
  }
}

/**
 * A workflow that `compile()` refuses, with everything that is wrong with it.
 *
 * *Errors.* Not retryable: each diagnostic names the step and the remedy, and has a page in `docs/diagnostics/`.
 *
 * @category errors
 * @since 0.1.0
 */
export class CompileError extends Data.TaggedError("CompileError")<{
  readonly workflow: string
  readonly diagnostics: ReadonlyArray<Diagnostic>
}> {
  readonly isRetryable = false
  override get message() {
    const count = this.diagnostics.length
    return [
      `Workflow '${this.workflow}' has ${count} ${count === 1 ? "problem" : "problems"}:`,
      ...this.diagnostics.map((d) => `  ${d.message}`),
    ].join("\n")
  }
}

/**
 * The store could not do what was asked.
 *
 * *Errors.* Retryable: `Busy` (another process writes), `Unavailable` (connection lost, server away). Not retryable
 * without help: `Full` (no space left), `Corrupt` (unreadable data), `Permission`, `SchemaVersion` (tables of another
 * version), `Constraint` and `Unknown`. `cause` is the driver's own error.
 *
 * @category errors
 * @since 0.1.0
 */
export class StoreError extends Data.TaggedError("StoreError")<{
  readonly reason:
    "Busy" | "Unavailable" | "Full" | "Corrupt" | "Permission" | "SchemaVersion" | "Constraint" | "Unknown"
  readonly operation: string
  readonly problem: string
  readonly cause?: unknown
}> {
  get isRetryable() {
    return this.reason === "Busy" || this.reason === "Unavailable"
  }
  override get message() {
    return `The store could not ${this.operation} (${this.reason}): ${this.problem}`
  }
}

/**
 * Another worker owns the run now. This worker stops the run's fiber and starts no further effect (law X6).
 *
 * *Errors.* Not retryable here: the run goes on at its new owner.
 *
 * @category errors
 * @since 0.1.0
 */
export class LeaseLost extends Data.TaggedError("LeaseLost")<{
  readonly namespace: string
  readonly runId: string
  readonly fence: number
}> {
  readonly isRetryable = false
  override get message() {
    return `Run '${this.runId}' was taken over by another worker (this one held fence ${this.fence}); it goes on there.`
  }
}

/**
 * A client that was closed, by its own `close()`, was asked for something, or was still to answer.
 *
 * *Errors.* Not retryable here: open another client with `Cairn.open`. The runs are in the store, and go on at the next worker.
 *
 * @category errors
 * @since 0.1.0
 */
export class ClientClosed extends Data.TaggedError("ClientClosed") {
  readonly isRetryable = false
  override get message() {
    return "This client is closed. Open another one with Cairn.open; the runs are in the store, and go on at the next worker."
  }
}

/**
 * A run id that is in use for something else (law X9).
 *
 * *Errors.* `WorkflowDiffers`, `InputDiffers`: choose another run id, or start with what the first start gave. The
 * existing run is untouched.
 *
 * @category errors
 * @since 0.1.0
 */
export class RunConflict extends Data.TaggedError("RunConflict")<{
  readonly namespace: string
  readonly runId: string
  readonly reason: "WorkflowDiffers" | "InputDiffers"
  readonly problem: string
}> {
  readonly isRetryable = false
  override get message() {
    return `Run '${this.runId}' exists already and differs: ${this.problem}. Use another run id, or the same workflow and input to attach to it.`
  }
}

/**
 * No run of that id in that namespace.
 *
 * @category errors
 * @since 0.1.0
 */
export class RunNotFound extends Data.TaggedError("RunNotFound")<{
  readonly namespace: string
  readonly runId: string
}> {
  readonly isRetryable = false
  override get message() {
    return `There is no run '${this.runId}' in namespace '${this.namespace}'.`
  }
}

/**
 * What is left of any thrown value once it has crossed a process: enough to read, nothing to instantiate.
 *
 * @category models
 * @since 0.1.0
 */
export interface ErrorDetails {
  readonly name: string
  readonly message: string
  readonly tag: string | null
  readonly stack: string | null
  readonly cause: ErrorDetails | null
}

/**
 * The run ended in a failure that the workflow does not declare.
 *
 * *Shape.* `step` is the path of the step that failed; `details` is the error as it was stored.
 *
 * *Errors.* Not retryable by itself: the run is final.
 *
 * @category errors
 * @since 0.1.0
 */
export class RunFailed extends Data.TaggedError("RunFailed")<{
  readonly runId: string
  readonly step: string
  readonly problem: string
  readonly details: ErrorDetails
}> {
  readonly isRetryable = false
  override get message() {
    return `Run '${this.runId}' failed at step '${this.step}': ${this.problem}`
  }
}

/**
 * The run was canceled: what it had done is taken back as far as its steps say how.
 *
 * *Shape.* `reason` is what was given with the first wish to cancel it, null if nothing was.
 *
 * *Errors.* Not retryable: the run is final.
 *
 * @category errors
 * @since 0.1.0
 */
export class RunCanceled extends Data.TaggedError("RunCanceled")<{
  readonly runId: string
  readonly reason: string | null
}> {
  readonly isRetryable = false
  override get message() {
    return `Run '${this.runId}' was canceled${this.reason === null ? "" : `: ${this.reason}`}`
  }
}

/**
 * Why a run waits for a person. Nothing was lost; the run goes on after `Cairn.resume` once the reason is dealt with.
 *
 * @category models
 * @since 0.1.0
 */
export type ParkReason =
  /** The outcome of an operation is unknown and its key can no longer be trusted to prevent a second effect. */
  | "OutcomeUnknown"
  /** The code would now perform another operation or payload than was recorded. */
  | "IntentMismatch"
  /**
   * This code cannot go on with what the run has: a stored value that it cannot read, or, after a deploy, something that was committed or
   * begun and has no place in its plan, or would come after what has not happened. Nothing was done.
   */
  | "IncompatibleCheckpoint"
  /**
   * An output kept failing its schema and the step says `onInvalid: { then: "review" }`; or an operation was performed
   * and its answer does not fit its schema. The raw value stands in the attempt's record.
   */
  | "OutputInvalid"
  /**
   * The store refuses for good what a step would commit (a limit of the database, a trigger), or cannot read the account that its paid
   * call is to be counted in: its next attempt would end the same.
   */
  | "CommitRefused"
  /**
   * Neither a step nor the store has failed: the run itself was broken, by a fault of Cairn or of the engine under it. It would be again
   * and again; what its steps have committed is kept.
   */
  | "Defect"
  /** The run brought its worker down again and again, without progress (law X12). */
  | "TooManyRecoveries"
  /** The run fails, and an operation that takes an earlier one back failed as well. */
  | "CompensationFailed"
  /**
   * A budget has no room for the next paid call, which was not made. Where it is a day's budget, the run goes on by itself when the
   * day is over.
   */
  | "BudgetExceeded"
  /**
   * Data that a committed step has read has moved since, or nobody can tell whether it has; the step says `onStale: "review"`, or
   * something has happened outside since. `Cairn.resume` lets the run go on with what it has.
   */
  | "DataStale"

/**
 * The run is parked for a person: it has not failed, and it will not go on by itself.
 *
 * *Errors.* Not retryable by waiting; `reason` and the message say what to look at.
 *
 * @category errors
 * @since 0.1.0
 */
export class RunParked extends Data.TaggedError("RunParked")<{
  readonly runId: string
  readonly reason: ParkReason
  readonly step: string
  readonly problem: string
}> {
  readonly isRetryable = false
  override get message() {
    return `Run '${this.runId}' waits for a person at step '${this.step}' (${this.reason}): ${this.problem}`
  }
}

/**
 * A person's answer to an unknown outcome was not taken. Nothing was changed.
 *
 * *Errors.* `NotParked`: the run waits for nobody, or was resumed meanwhile. `AlreadyAnswered`: the outcome is known by
 * now, by an earlier answer or by a worker that recorded it late; if the run is still parked, resume it. `NothingUnknown`:
 * it is parked for something else. `StepDiffers`: it is parked at another step than the answer is for. `IntentDiffers`:
 * the workflow would now perform something else than what is recorded. None is worth a retry.
 *
 * @category errors
 * @since 0.1.0
 */
export class AnswerRefused extends Data.TaggedError("AnswerRefused")<{
  readonly namespace: string
  readonly runId: string
  readonly reason: "NotParked" | "AlreadyAnswered" | "NothingUnknown" | "StepDiffers" | "IntentDiffers"
  readonly problem: string
}> {
  readonly isRetryable = false
  override get message() {
    return `The answer for run '${this.runId}' was not taken (${this.reason}): ${this.problem}.`
  }
}

/**
 * A signal was not taken. Nothing was kept of it.
 *
 * *Errors.* `Unknown`: the workflow waits for no signal of that name. `Ended`: the run is final. `IdTaken`: the id was used for
 * another signal. None is worth a retry.
 *
 * @category errors
 * @since 0.1.0
 */
export class SignalRefused extends Data.TaggedError("SignalRefused")<{
  readonly namespace: string
  readonly runId: string
  readonly signal: string
  readonly reason: "Unknown" | "Ended" | "IdTaken"
  readonly problem: string
}> {
  readonly isRetryable = false
  override get message() {
    return `Signal '${this.signal}' for run '${this.runId}' was not taken (${this.reason}): ${this.problem}`
  }
}

/**
 * A decision was not taken. Nothing was changed.
 *
 * *Errors.* `NotWaiting`: the run waits for no such decision: not yet, or not any more. `AlreadyDecided`: somebody was first.
 * `Closed`: it was decided, or its time is over. `Ambiguous`: the run waits for several; name one. None is worth a retry as it is.
 *
 * @category errors
 * @since 0.1.0
 */
export class DecisionRefused extends Data.TaggedError("DecisionRefused")<{
  readonly namespace: string
  readonly runId: string
  readonly reason: "NotWaiting" | "AlreadyDecided" | "Closed" | "Ambiguous"
  readonly problem: string
}> {
  readonly isRetryable = false
  override get message() {
    return `The decision for run '${this.runId}' was not taken (${this.reason}): ${this.problem}`
  }
}

/**
 * A run was not tried again. Nothing was changed.
 *
 * *Errors.* `NotFailed`: it has not failed, or somebody has had it tried again already. `Compensated`: what it had done is taken back,
 * at least in part: start a new run. `ChildCanceled`: a child that it needs was canceled and would end it at once. None is worth a
 * retry as it is.
 *
 * @category errors
 * @since 0.1.0
 */
export class RetryRefused extends Data.TaggedError("RetryRefused")<{
  readonly namespace: string
  readonly runId: string
  readonly reason: "NotFailed" | "Compensated" | "ChildCanceled"
  readonly problem: string
}> {
  readonly isRetryable = false
  override get message() {
    return `Run '${this.runId}' was not tried again (${this.reason}): ${this.problem}`
  }
}

/**
 * Something that a run did, or may have done, and that a fork of it would do again.
 *
 * *Shape.* `runId`: the run itself, or the child that did it. `operation`: `transaction` for a transaction of the store's own database.
 * `idempotencyKey`: the key it was sent under, null for a transaction. `isKnown`: false where nobody knows whether it happened.
 *
 * @category models
 * @since 0.1.0
 */
export interface RepeatedEffect {
  readonly runId: string
  readonly path: string
  readonly operation: string
  readonly idempotencyKey: string | null
  readonly isKnown: boolean
}

/**
 * A run was not forked. Nothing was created.
 *
 * *Errors.* `EffectsWouldRepeat`: the fork would do again what is in `effects`; say what is to become of them. `NotReusable`: these have
 * no recorded result that a fork could go on with. `Compensated`: these stand before the step and were taken back. `UnknownStep`: the workflow has no such step. None is worth a retry as it is.
 *
 * @category errors
 * @since 0.1.0
 */
export class ForkRefused extends Data.TaggedError("ForkRefused")<{
  readonly namespace: string
  readonly runId: string
  readonly reason: "EffectsWouldRepeat" | "NotReusable" | "Compensated" | "UnknownStep"
  readonly effects: ReadonlyArray<RepeatedEffect>
  readonly problem: string
}> {
  readonly isRetryable = false
  override get message() {
    return `Run '${this.runId}' was not forked (${this.reason}): ${this.problem}`
  }
}

/**
 * The operation is known not to have happened: the provider refused it before it did anything, or it was never sent.
 * Handlers fail with it so that the step may be tried again under a new key.
 *
 * *Errors.* Only for what surely did nothing (a 429, a refused connection). A 409 (the key's first request is still under
 * way) or a 422 (the key was used with another payload) is not `NotPerformed`: the key's own request may have happened,
 * and under the next generation's key it could happen twice. Throw those: the outcome is then unknown, and `onUnknown`
 * resolves it under the same key.
 *
 * @example
 * ```ts
 * import { NotPerformed } from "@cairn/core"
 *
 * const refused = new NotPerformed({ problem: "the provider answered 429 before doing anything" })
 * refused._tag
 * // => "NotPerformed"
 * ```
 *
 * @category errors
 * @since 0.1.0
 */
export class NotPerformed extends Data.TaggedError("NotPerformed")<{
  readonly problem: string
  /** Earliest next try, in milliseconds from now: what the provider asked for. */
  readonly retryAfterMs?: number
  readonly cause?: unknown
}> {
  readonly isRetryable = true
  override get message() {
    return `Not performed: ${this.problem}`
  }
}

/**
 * A step's function threw, or its promise was rejected. `thrown` is that value, whatever it is.
 *
 * @category errors
 * @since 0.1.0
 */
export class StepThrew extends Data.TaggedError("StepThrew")<{ readonly step: string; readonly thrown: unknown }> {}

/**
 * A step took longer than its `timeout` and was interrupted (fiber and `AbortSignal`).
 *
 * @category errors
 * @since 0.1.0
 */
export class StepTimeout extends Data.TaggedError("StepTimeout")<{
  readonly step: string
  readonly timeoutMs: number
}> {
  readonly isRetryable = true
  override get message() {
    return `Step '${this.step}' took longer than ${this.timeoutMs} ms and was interrupted.`
  }
}

/**
 * The database had given the transaction of a step up, or refused its COMMIT: nothing of it is there. The attempt counts as
 * failed, whatever the step's function gave.
 *
 * *Errors.* Retryable: the step may be tried again, nothing has happened. It is found where a function keeps the failure of
 * a statement to itself (Postgres commits nothing of such a transaction), leaves a nested transaction open, or breaks a
 * constraint that is checked at the end.
 *
 * @category errors
 * @since 0.1.0
 */
export class TransactionAborted extends Data.TaggedError("TransactionAborted")<{
  readonly problem: string
  readonly cause?: unknown
}> {
  readonly isRetryable = true
  override get message() {
    return `The step's transaction was rolled back: ${this.problem}.`
  }
}

/**
 * A misuse that types would have shown and that was found at run time. `code` has a page in `docs/diagnostics/`.
 *
 * @category errors
 * @since 0.1.0
 */
export class StepMisuse extends Data.TaggedError("StepMisuse")<{
  readonly step: string
  readonly code: Diagnostic["code"]
  readonly problem: string
}> {
  readonly isRetryable = false
  override get message() {
    return this.problem
  }
}
