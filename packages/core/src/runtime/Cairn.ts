/** Starting runs and waiting for them: what a client of workflows uses. Workers may live elsewhere. */
import { accept, answer, parked } from "./Answers.js"
import { cancel } from "./Cancel.js"
import { pause, resume } from "./Lifecycle.js"
import { list, reviews } from "./Listings.js"
import { review } from "./Reviews.js"
import { schedule, schedules, unschedule } from "./Schedules.js"
import { attach, branchOff, events, retry, start, startMany } from "./Starting.js"
import { open } from "./Client.js"
import { signal } from "./Signals.js"

/**
 * Starts runs and waits for them.
 *
 * @category running
 * @since 0.1.0
 */
export const Cairn = {
  /**
   * Starts a run, or attaches to the one of that id (law X9). It is durable when this returns.
   *
   * *Errors.* `RunConflict`: the id is in use for another workflow or input. `InvalidValue`: the input. `InvalidId`.
   * `CompileError`. `StoreError`.
   */
  start,
  /** A handle of a run that was started elsewhere. */
  attach,
  /**
   * What a run comes to, as it becomes durable, up to its end; for those who have no handle of it.
   *
   * *Errors.* Those of `attach`; those of the iteration are thrown (see `RunHandle.events`).
   */
  events,
  /**
   * Starts many runs of a workflow: for each, in order, its handle or why it was not started. Those of one transaction of the
   * store are there together; a start that is refused does not touch the others. Asked again with the same ids it attaches (X9).
   */
  startMany,
  /**
   * One page of runs, newest first, without their inputs and outputs.
   *
   * *Shape.* `cursor` leads to the next page, null after the last. A run that was there when the first page was read comes once,
   * whatever is created meanwhile. A filter on status or workflow walks the runs of the namespace in that order until a page is full.
   *
   * *Errors.* `InvalidValue`: an option that does not exist or does not fit; a cursor that is none. `InvalidId`. `StoreError`.
   * A run whose failure cannot be read is listed all the same, with `unreadable`.
   *
   * *Laws.* D30.
   *
   * @example
   * ```ts
   * import { Cairn, MemoryStore, Workflow } from "@cairn/core"
   * import { Schema } from "effect"
   *
   * const note = Workflow.make("note", { version: 1, input: Schema.String })
   *   .step("keep", { effects: [], output: Schema.String }, ({ input }) => input)
   *   .compile()
   * const cairn = await Cairn.open({ store: MemoryStore.layer, workflows: [note] })
   * for (const text of ["a", "b", "c"]) await (await cairn.start(note, text, { runId: text })).result()
   *
   * const first = await cairn.list({ workflow: "note", status: "completed", limit: 2 })
   * const rest = await cairn.list({ workflow: "note", status: "completed", limit: 2, cursor: first.cursor! })
   * const seen = [...first.runs, ...rest.runs].map(({ runId }) => runId)
   * seen.sort()
   * // => ["a", "b", "c"]
   * await cairn.close()
   * ```
   */
  list,
  /**
   * One page of the reviews that wait for a decision, the oldest first: what is shown, whose affair it is by now, until when.
   *
   * *Errors.* As those of `list`.
   *
   * *Laws.* D31.
   */
  reviews,
  /**
   * Pauses a run: what is under way in it comes to its end and is kept, nothing further begins, and no worker takes it up until
   * `resume`. Signals and decisions are kept meanwhile; time goes on, and what is due by then is due at once afterwards. A cancel
   * waits as well, unless the run is at work.
   *
   * *Shape.* True: it is paused. False: it has ended already, or is to be canceled: a cancel ends a pause. Its worker lets go at its next turn; one in another process learns of
   * it by its next heartbeat.
   *
   * *Errors.* `RunNotFound`. `InvalidId`. `StoreError`.
   *
   * *Laws.* D32.
   */
  pause,
  /**
   * Lets a paused run go on, and a parked one, once the reason is dealt with. False if it was neither.
   *
   * *Errors.* `InvalidId`. `StoreError`.
   */
  resume,
  /**
   * Has a failed run tried again, from the step that failed: what is committed stays, retries are counted anew, and an operation that
   * is known not to have happened is performed under a new key. Where a child has failed, the child is tried again first.
   *
   * *Errors.* `RetryRefused`: it has not failed, or what it had done is taken back. `RunConflict`: it is a run of another workflow or
   * version. `RunNotFound`. `InvalidId`. `CompileError`. `StoreError`.
   *
   * *Laws.* D33: of several retries one succeeds. X5. A crash between child and run leaves the child at work and the run failed: ask
   * again.
   */
  retry,
  /**
   * A new run that begins with what another one had committed before a step, and goes its own way from there. The original is not
   * changed; it may still be under way.
   *
   * *Errors.* `ForkRefused`: the original has done something at or after that step that the fork would do again (its children
   * included), and `effects` does not say what is to become of it. `RunConflict`: it is a run of another workflow or version, or
   * `newRunId` is in use. `RunNotFound`. `InvalidValue`. `InvalidId`. `CompileError`. `StoreError`.
   *
   * *Laws.* D34; X4: an operation that would now be another than the reused one is not sent, the fork is parked (`IntentMismatch`).
   */
  fork: branchOff,
  /**
   * Asks that a run be canceled. The step that runs is interrupted; what the run has done is taken back, last first, as its
   * steps say how (`compensate`); then it is `canceled`, and who waits for it gets `RunCanceled`. An operation of unknown
   * outcome is resolved by its policy before that: a run may have to wait for a person even so.
   *
   * *Shape.* True: the run ends canceled, unless it ends otherwise before its worker hears of it, or fails already; asked
   * twice, the first reason stays. False: it has ended already, and nothing was changed.
   *
   * *Errors.* `RunNotFound`. `InvalidId`. `StoreError`.
   *
   * *Laws.* X5; D25.
   */
  cancel,
  /** One page of the runs that wait for a person, with what is unknown of each. */
  parked,
  /**
   * Sends a signal to a run. It is kept if nobody waits for it yet, and taken once, in the order in which they were sent. True if
   * it is new, false if it was sent before under the same id.
   *
   * *Errors.* `InvalidValue`: the payload does not fit the signal's schema. `SignalRefused`. `RunNotFound`. `RunConflict`: it is a
   * run of another workflow. `InvalidId`. `StoreError`.
   *
   * *Laws.* X13; D22.
   */
  signal,
  /**
   * Decides what a run shows for review.
   *
   * *Errors.* `InvalidValue`: the decision does not fit its schema; the run waits on. `DecisionRefused`: it waits for no such
   * decision, somebody was first, or its time is over. `RunConflict`: it is a run of another workflow or version. `RunNotFound`.
   * `StoreError`.
   *
   * *Laws.* D28: of several decisions the first is taken, and none once the deadline has passed.
   */
  review,
  /**
   * Says of an operation whose outcome is unknown that it happened, with its result, or that it did not: it is then
   * performed again, under a new key. The run goes on.
   *
   * *Errors.* `InvalidValue`: the result does not fit the operation's schema; the run stays parked. `AnswerRefused`: the
   * run is not parked for it, or somebody has answered already. `RunConflict`: it is a run of another workflow or version.
   * `RunNotFound`. `StoreError`.
   *
   * *Laws.* D19: of several answers the first is taken.
   */
  answer,
  /**
   * Starts a workflow again and again, at times of a calendar: any worker of that workflow and version starts the run of an
   * instant, once. Under an id that is in use it changes the schedule; where its times stay the same, nothing that was missed is
   * lost.
   *
   * *Errors.* `InvalidSchedule`: the specification, the time zone or an option. `InvalidValue`: the input. `InvalidId`.
   * `CompileError`. `StoreError`.
   *
   * *Laws.* D37: an instant is fired once, and its run bears it in its id.
   *
   * @example
   * ```ts
   * import { Cairn, MemoryStore, Workflow } from "@cairn/core"
   * import { Schema } from "effect"
   *
   * const report = Workflow.make("report", { version: 1, input: Schema.String })
   *   .step("write", { effects: [], output: Schema.String }, ({ input }) => `Report for ${input}`)
   *   .compile()
   *
   * const cairn = await Cairn.open({ store: MemoryStore.layer, workflows: [report] })
   * const nightly = { id: "nightly", cron: "30 2 * * *", timeZone: "Europe/Berlin", input: "sales" }
   * await cairn.schedule(report, nightly)
   * ;(await cairn.schedules()).map(({ id, cron }) => [id, cron])
   * // => [["nightly", "30 2 * * *"]]
   * await cairn.unschedule({ id: "nightly" })
   * // => true
   * await cairn.close()
   * ```
   */
  schedule,
  /** Removes a schedule; what it has started goes on. False if there is none. */
  unschedule,
  /** One page of schedules, in order of their ids. */
  schedules,
  /**
   * Gives the output of a step in the place of one that its schema has refused, for a run that is parked for it
   * (`onInvalid: { then: "review" }`). It is checked like any output; then the run goes on from there.
   *
   * *Errors.* `InvalidValue`: it does not fit either; the run stays parked. `AnswerRefused`: the run is not parked for it, or
   * somebody was first. `RunConflict`: it is a run of another workflow or version. `RunNotFound`. `StoreError`.
   *
   * *Laws.* X3; D24: it is taken in the commit of the step.
   */
  accept,
  /**
   * Store, worker and client in promise style, for callers who don't use Effect.
   *
   * @example
   * ```ts
   * import { Cairn, MemoryStore, Workflow } from "@cairn/core"
   * import { Schema } from "effect"
   *
   * const double = Workflow.make("double", { version: 1, input: Schema.Number })
   *   .step("twice", { effects: [], output: Schema.Number }, async ({ input }) => input * 2)
   *   .output(Schema.Number, ({ results }) => results.twice)
   *   .compile()
   *
   * const cairn = await Cairn.open({ store: MemoryStore.layer, workflows: [double] })
   * const handle = await cairn.start(double, 21)
   * await handle.result()
   * // => 42
   * await cairn.close()
   * ```
   */
  open,
} as const
