/** Starting runs and waiting for them: what a client of workflows uses. Workers may live elsewhere. */
import { accept, answer, parked } from "./Answers.js"
import { cancel } from "./Cancel.js"
import { calls, cost, spend } from "./Costs.js"
import { pause, resume } from "./Lifecycle.js"
import { list, reviews } from "./Listings.js"
import { review } from "./Reviews.js"
import { schedule, schedules, unschedule } from "./Schedules.js"
import { attach, branchOff, events, live, retry, start, startMany } from "./Starting.js"
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
   * What a run's steps emit while they run, up to its end; for those who have no handle of it. Nothing of it is durable, and it is
   * of this process alone (see `RunHandle.live`).
   *
   * *Errors.* Those of `attach`; those of the iteration are thrown.
   */
  live,
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
   * it at once where the store tells it, otherwise within its `pollInterval`.
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
   *
   * @example
   * ```ts
   * import { Cairn, MemoryStore, Workflow } from "@cairn/core"
   * import { Schema } from "effect"
   *
   * const greet = Workflow.make("greet", { version: 1, input: Schema.String })
   *   .step("greeting", { effects: [], output: Schema.String }, ({ input }) => `Hello ${input}`)
   *   .output(Schema.String, ({ results }) => results.greeting)
   *   .compile()
   *
   * const cairn = await Cairn.open({ store: MemoryStore.layer, workflows: [greet] })
   * const run = await cairn.start(greet, "Ada", { runId: "g-1", delay: "1 minute" })
   * await cairn.pause({ runId: "g-1" })
   * // => true
   * ;(await cairn.list()).runs.map(({ runId, pausedAt }) => [runId, pausedAt !== null])
   * // => [["g-1", true]]
   * await cairn.resume({ runId: "g-1" })
   * // => true
   * await cairn.cancel({ runId: "g-1", reason: "not needed any more" })
   * // => true
   * await run.result().catch((error) => error._tag)
   * // => "RunCanceled"
   * await cairn.close()
   * ```
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
   *
   * @example
   * ```ts
   * import { Cairn, MemoryStore, Workflow } from "@cairn/core"
   * import { Schema } from "effect"
   *
   * const rates = { isUp: false }
   * const quote = Workflow.make("quote", { version: 1, input: Schema.Number })
   *   .step("rate", { effects: [], output: Schema.Number }, async () => {
   *     if (!rates.isUp) throw new Error("the rates are away")
   *     return 2
   *   })
   *   .output(Schema.Number, ({ input, results }) => input * results.rate)
   *   .compile()
   *
   * const cairn = await Cairn.open({ store: MemoryStore.layer, workflows: [quote] })
   * const run = await cairn.start(quote, 21, { runId: "q-1" })
   * await run.result().catch((error) => error._tag)
   * // => "RunFailed"
   * rates.isUp = true
   * await (await cairn.retry(quote, { runId: "q-1" })).result()
   * // => 42
   * await cairn.close()
   * ```
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
   *
   * @example
   * ```ts
   * import { Cairn, MemoryStore, Workflow } from "@cairn/core"
   * import { Schema } from "effect"
   *
   * let tone = "dry"
   * const write = Workflow.make("write", { version: 1, input: Schema.String })
   *   .step("outline", { effects: [], output: Schema.String }, ({ input }) => `outline of ${input}`)
   *   .step("draft", { effects: [], output: Schema.String }, ({ results }) => `${tone} ${results.outline}`)
   *   .output(Schema.String, ({ results }) => results.draft)
   *   .compile()
   *
   * const cairn = await Cairn.open({ store: MemoryStore.layer, workflows: [write] })
   * await (await cairn.start(write, "cairns", { runId: "w-1" })).result()
   * // => "dry outline of cairns"
   * tone = "lively"
   * const other = await cairn.fork(write, { runId: "w-1", step: "draft", newRunId: "w-2" })
   * await other.result()
   * // => "lively outline of cairns"
   * await cairn.close()
   * ```
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
   *
   * @example
   * ```ts
   * import { Cairn, MemoryStore, Workflow } from "@cairn/core"
   * import { Schema } from "effect"
   *
   * const parcel = Workflow.make("parcel", { version: 1, input: Schema.String })
   *   .signal("delivered", { schema: Schema.Struct({ at: Schema.String }) })
   *   .output(Schema.String, ({ results }) => results.delivered.at)
   *   .compile()
   *
   * const cairn = await Cairn.open({ store: MemoryStore.layer, workflows: [parcel] })
   * const run = await cairn.start(parcel, "p-1", { runId: "p-1" })
   * const sent = { runId: "p-1", signalId: "scan-77" }
   * await cairn.signal(parcel, sent, "delivered", { at: "Bern" })
   * // => true
   * await run.result()
   * // => "Bern"
   * await cairn.close()
   * ```
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
   *
   * @example
   * ```ts
   * import { Cairn, MemoryStore, Workflow } from "@cairn/core"
   * import { Schema } from "effect"
   *
   * const pay = Workflow.make("pay", { version: 1, input: Schema.Int })
   *   .review("approve", {
   *     decision: Schema.Struct({ cents: Schema.Int }),
   *     show: ({ input }) => ({ asked: input }),
   *     deadline: "2 days",
   *     onReject: "fail",
   *     onTimeout: "fail",
   *   })
   *   .output(Schema.Int, ({ results }) => results.approve.decision.cents)
   *   .compile()
   *
   * const cairn = await Cairn.open({ store: MemoryStore.layer, workflows: [pay] })
   * const run = await cairn.start(pay, 900)
   * for await (const event of run.events()) if (event._tag === "Waiting") break
   *
   * const { reviews } = await cairn.reviews()
   * reviews.map(({ step, shown }) => [step, shown])
   * // => [["approve", { asked: 900 }]]
   * const { reviewId, runId } = reviews[0]!
   * await cairn.review(pay, { runId, reviewId }, { by: "ada", approve: { cents: 800 } })
   * await run.result()
   * // => 800
   * await cairn.close()
   * ```
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
  /**
   * What paid calls have cost, summed by model, workflow, step, run, day or what became of their attempts; the dearest first.
   *
   * *Errors.* `InvalidValue`: an option that does not exist or does not fit. `InvalidId`. `StoreError`.
   *
   * *Laws.* X11; D41.
   *
   * @example
   * ```ts
   * import { Cairn, Effects, MemoryStore, Usage, Workflow } from "@cairn/core"
   * import { Schema } from "effect"
   *
   * const ask = Workflow.make("ask", { version: 1, input: Schema.String })
   *   .step("think", { effects: [Effects.read("model")], output: Schema.String }, ({ paid }) =>
   *     paid({ model: "small", usage: () => ({ inputTokens: 1_000, outputTokens: 200 }) }, async () => "an answer"),
   *   )
   *   .compile()
   *
   * const prices = { small: { input: 0.5, output: 2 } }
   * const cairn = await Cairn.open({ store: MemoryStore.layer, workflows: [ask], prices })
   * await (await cairn.start(ask, "why?", { runId: "q1" })).result()
   * const [sum] = await cairn.cost({ by: "step" })
   * ;[sum?.workflow, sum?.key, sum?.calls, sum?.microDollars]
   * // => ["ask", "think", 1, 900]
   * await cairn.close()
   * ```
   */
  cost,
  /** One page of a run's paid calls, in the order in which they began; its children's are theirs. */
  calls,
  /** What a run has spent, with all of its children. A run that is not there has spent nothing. */
  spend,
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
