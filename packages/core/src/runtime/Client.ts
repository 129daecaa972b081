/** Store, worker and client in one object, in promise style. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import type { AnyWorkflow, givenOfWorkflow, needsOfWorkflow, outputOfWorkflow } from "../builder/Workflow.js"
import { ClientClosed, StoreError, type CompileError, type InvalidId } from "../model/Errors.js"
import type { StoreWithTransactions } from "../model/StoreWithTransactions.js"
import { CheckpointStore } from "../store/CheckpointStore.js"
import {
  accept,
  answer,
  parked,
  type AcceptedOutput,
  type AnswerOptions,
  type OutcomeAnswer,
  type ParkedOptions,
  type ParkedRun,
} from "./Answers.js"
import { cancel, type CancelOptions } from "./Cancel.js"
import {
  calls,
  cost,
  spend,
  type CallsOptions,
  type CostOptions,
  type CostSum,
  type PaidCallSummary,
  type RunSpend,
} from "./Costs.js"
import type { EventsOptions, RunEvent } from "./Events.js"
import { inContextOfBuilder } from "./internal/asyncContext.js"
import { iterable, releasing, type Fork } from "./internal/pulling.js"
import { pause, resume, type ForkOptions, type RunOptions } from "./Lifecycle.js"
import { list, reviews, type ListOptions, type OpenReview, type ReviewsOptions, type RunSummary } from "./Listings.js"
import { review, type ReviewDecision, type ReviewOptions } from "./Reviews.js"
import {
  schedule,
  schedules,
  unschedule,
  type Schedule,
  type ScheduleOptions,
  type SchedulesOptions,
  type UnscheduleOptions,
} from "./Schedules.js"
import type { LiveEvent } from "./LiveOutput.js"
import type { Handle, RunEventsOptions, RunHandle, RunSnapshot } from "./RunHandle.js"
import {
  attach,
  attachedLive,
  attachedPull,
  branchOff,
  retry,
  start,
  startMany,
  type StartError,
  type StartOne,
  type StartOptions,
} from "./Starting.js"
import { Worker, type WorkerOptions } from "./Worker.js"
import { signal, type SignalOptions } from "./Signals.js"

/**
 * A started run, in promise style.
 *
 * @category models
 * @since 0.1.0
 */
export interface PromiseRunHandle<W extends AnyWorkflow> {
  readonly namespace: string
  readonly runId: string
  readonly created: boolean
  /** Resolves with the output; rejects with the declared failure, `RunFailed`, `RunCanceled` or `RunParked`. */
  readonly result: () => Promise<outputOfWorkflow<W>>
  readonly poll: () => Promise<RunSnapshot<W>>
  /** What the run comes to, as it becomes durable, up to its end. */
  readonly events: (options?: EventsOptions) => AsyncIterable<RunEvent<W>>
  /** What the run's steps emit while they run, up to its end: not durable, and of this process alone. */
  readonly live: () => AsyncIterable<LiveEvent>
}

/**
 * A store and a worker in one object, in promise style.
 *
 * @category models
 * @since 0.1.0
 */
export interface CairnClient {
  readonly start: <W extends AnyWorkflow>(
    workflow: W,
    input: givenOfWorkflow<W>,
    options?: StartOptions,
  ) => Promise<PromiseRunHandle<W>>
  readonly attach: <W extends AnyWorkflow>(
    workflow: W,
    options: { readonly runId: string; readonly namespace?: string },
  ) => Promise<PromiseRunHandle<W>>
  /** What a run comes to, as it becomes durable, up to its end. What `attach` rejects with is thrown by the iteration. */
  readonly events: <W extends AnyWorkflow>(workflow: W, of: RunEventsOptions) => AsyncIterable<RunEvent<W>>
  /** What a run's steps emit while they run. What `attach` rejects with is thrown by the iteration. */
  readonly live: (workflow: AnyWorkflow, of: RunOptions) => AsyncIterable<LiveEvent>
  /** Starts many runs; for each, in order, its handle or why it was not started. */
  readonly startMany: <W extends AnyWorkflow>(
    workflow: W,
    runs: ReadonlyArray<StartOne<W>>,
  ) => Promise<ReadonlyArray<Either.Either<PromiseRunHandle<W>, StartError>>>
  /** One page of runs, newest first. */
  readonly list: (options?: ListOptions) => Promise<{
    readonly runs: ReadonlyArray<RunSummary>
    readonly cursor: string | null
  }>
  /** One page of the reviews that wait for a decision, the oldest first. */
  readonly reviews: (options?: ReviewsOptions) => Promise<{
    readonly reviews: ReadonlyArray<OpenReview>
    readonly cursor: string | null
  }>
  /** Pauses a run. False if it has ended already. */
  readonly pause: (options: RunOptions) => Promise<boolean>
  /** Lets a paused or parked run go on. False if it was neither. */
  readonly resume: (options: RunOptions) => Promise<boolean>
  /** Has a failed run tried again; rejects with `RetryRefused` where that cannot be. */
  readonly retry: <W extends AnyWorkflow>(workflow: W, options: RunOptions) => Promise<PromiseRunHandle<W>>
  /** A new run from what another has committed; rejects with `ForkRefused` where something would be done twice. */
  readonly fork: <W extends AnyWorkflow>(workflow: W, options: ForkOptions) => Promise<PromiseRunHandle<W>>
  /** Asks that a run be canceled. False if it has ended already. */
  readonly cancel: (options: CancelOptions) => Promise<boolean>
  /** One page of the runs that wait for a person. */
  readonly parked: (options?: ParkedOptions) => Promise<ReadonlyArray<ParkedRun>>
  /** Gives a step's output in the place of a refused one; rejects with `AnswerRefused` where the run does not wait for it. */
  readonly accept: (workflow: AnyWorkflow, of: AnswerOptions, given: AcceptedOutput) => Promise<void>
  /** Sends a signal to a run. False if it was sent before under the same id. */
  readonly signal: (workflow: AnyWorkflow, to: SignalOptions, name: string, payload?: unknown) => Promise<boolean>
  /** Decides what a run shows for review; rejects with `DecisionRefused` where that cannot be. */
  readonly review: (workflow: AnyWorkflow, of: ReviewOptions, said: ReviewDecision) => Promise<void>
  /** Says whether an operation of unknown outcome happened; rejects with `AnswerRefused` where it cannot be said. */
  readonly answer: (workflow: AnyWorkflow, of: AnswerOptions, said: OutcomeAnswer) => Promise<void>
  /** Starts a workflow again and again, at times of a calendar. */
  readonly schedule: <W extends AnyWorkflow>(workflow: W, options: ScheduleOptions<W>) => Promise<Schedule>
  /** Removes a schedule. False if there is none. */
  readonly unschedule: (options: UnscheduleOptions) => Promise<boolean>
  /** One page of schedules, in order of their ids. */
  readonly schedules: (options?: SchedulesOptions) => Promise<ReadonlyArray<Schedule>>
  /** What paid calls have cost, summed, the dearest first. */
  readonly cost: (options: CostOptions) => Promise<ReadonlyArray<CostSum>>
  /** One page of a run's paid calls, in the order in which they began. */
  readonly calls: (options: CallsOptions) => Promise<{
    readonly calls: ReadonlyArray<PaidCallSummary>
    readonly cursor: string | null
  }>
  /** What a run has spent, with all of its children. */
  readonly spend: (options: RunOptions) => Promise<RunSpend>
  /** Stops the worker (it drains), then closes the store. What still waits, and every later call, rejects with `ClientClosed`. */
  readonly close: () => Promise<void>
}

/**
 * What `Cairn.open` takes: a store, workflows, and what they need.
 *
 * @category options
 * @since 0.1.0
 */
export type OpenOptions<Ws extends ReadonlyArray<AnyWorkflow>> = WorkerOptions<Ws> & {
  /** A workflow with transaction steps needs a store that has transactions (CRN106). */
  readonly store: Layer.Layer<
    CheckpointStore | Extract<needsOfWorkflow<Ws[number]>, StoreWithTransactions<any>>,
    StoreError
  >
} & ([handlersOf<Ws>] extends [never]
    ? { readonly handlers?: Layer.Layer<never> }
    : {
        /** Handlers and services: `Layer.mergeAll(ChargeCard.toLayer(..), SendEmail.toLayer(..))`. */
        readonly handlers: Layer.Layer<handlersOf<Ws>>
      })

/** What workflows need beside their store. */
type handlersOf<Ws extends ReadonlyArray<AnyWorkflow>> = Exclude<
  needsOfWorkflow<Ws[number]>,
  StoreWithTransactions<any>
>

/** How long a client that closes waits for calls under way, beyond its worker's end, in milliseconds since it was told to. */
const answerMs = 600

export const open = async <const Ws extends ReadonlyArray<AnyWorkflow>>(
  options: OpenOptions<Ws>,
): Promise<CairnClient> => {
  const { store, handlers, ...worker } = options as WorkerOptions<Ws> & {
    readonly store: Layer.Layer<CheckpointStore, StoreError>
    readonly handlers?: Layer.Layer<any>
  }
  /** Calls under way, and when the client was told to close. */
  const waiting = new Set<Fiber.RuntimeFiber<any, any>>()
  let closedAt: number | null = null
  // After the worker's end and before the store's: a call that has reached the database is not cut off, unless that has stopped answering.
  const callsEnd = Layer.scopedDiscard(
    Effect.addFinalizer(() =>
      Effect.suspend(() => {
        const left = Math.max(0, (closedAt ?? 0) + answerMs - performance.now())
        return Effect.timeoutOption(Effect.interruptible(Fiber.awaitAll(waiting)), left)
      }),
    ),
  )
  const layer = Worker.layer(worker).pipe(
    Layer.provide(handlers ?? Layer.empty),
    Layer.provideMerge(Layer.provideMerge(callsEnd, store)),
  ) as Layer.Layer<Worker | CheckpointStore, CompileError | InvalidId | StoreError>
  // The store may take turns of the event loop to open: the worker's context is the caller's all the same.
  const runtime = ManagedRuntime.make(inContextOfBuilder(layer))
  // The failure itself is thrown, not a wrapper of it: callers tell errors apart by their tags.
  const fork: Fork<Worker | CheckpointStore> = (effect) => {
    // The runtime would say so with a text, which is no error.
    if (closedAt !== null) return Effect.runFork(Effect.fail(new ClientClosed()))
    const fiber = runtime.runFork(effect)
    waiting.add(fiber)
    fiber.addObserver(() => waiting.delete(fiber))
    return fiber
  }
  const thrown = (cause: Cause.Cause<unknown>): unknown =>
    closedAt !== null && Cause.isInterruptedOnly(cause) ? new ClientClosed() : Cause.squash(cause)
  const settled = <A>(
    exit: Exit.Exit<A, unknown>,
    resolve: (value: A) => void,
    reject: (error: unknown) => void,
  ): void => {
    if (Exit.isSuccess(exit)) resolve(exit.value)
    else reject(thrown(exit.cause))
  }
  // Without a second fiber that awaits the first: a thousand callers may wait at once.
  const run = <A, E>(effect: Effect.Effect<A, E, Worker | CheckpointStore>): Promise<A> =>
    new Promise((resolve, reject) => {
      fork(effect).addObserver((exit) => settled(exit, resolve, reject))
    })
  // Nor with a fiber that waits for a result.
  const listening = new Map<() => void, (error: unknown) => void>()
  const resultOf = <W extends AnyWorkflow>(handle: Handle<W>): Promise<outputOfWorkflow<W>> =>
    new Promise((resolve, reject) => {
      if (closedAt !== null) return reject(new ClientClosed())
      const leave = handle.hearEnd((exit) => {
        listening.delete(leave)
        settled(exit, resolve, reject)
      })
      listening.set(leave, reject)
    })
  const eventsOf: CairnClient["events"] = (workflow, of) => iterable(() => attachedPull(workflow, of), fork, thrown)
  const liveOf: CairnClient["live"] = (workflow, of) => releasing(attachedLive(workflow, of), fork, thrown)
  const promised = <W extends AnyWorkflow>(workflow: W, handle: RunHandle<W>): PromiseRunHandle<W> => ({
    namespace: handle.namespace,
    runId: handle.runId,
    created: handle.created,
    result: () => resultOf(handle as Handle<W>),
    poll: () => run(handle.poll),
    events: (of) => eventsOf(workflow, { namespace: handle.namespace, runId: handle.runId, ...of }),
    live: () => liveOf(workflow, { namespace: handle.namespace, runId: handle.runId }),
  })
  try {
    await run(Effect.void)
  } catch (error) {
    await runtime.dispose()
    throw error
  }
  return {
    start: async (workflow, input, startOptions) => promised(workflow, await run(start(workflow, input, startOptions))),
    attach: async (workflow, of) => promised(workflow, await run(attach(workflow, of))),
    events: eventsOf,
    live: liveOf,
    startMany: async (workflow, runs) =>
      (await run(startMany(workflow, runs))).map(Either.map((handle) => promised(workflow, handle))),
    list: (of) => run(list(of)),
    reviews: (of) => run(reviews(of)),
    pause: (of) => run(pause(of)),
    resume: (of) => run(resume(of)),
    retry: async (workflow, of) => promised(workflow, await run(retry(workflow, of))),
    fork: async (workflow, of) => promised(workflow, await run(branchOff(workflow, of))),
    cancel: (of) => run(cancel(of)),
    parked: (of) => run(parked(of)),
    cost: (of) => run(cost(of)),
    calls: (of) => run(calls(of)),
    spend: (of) => run(spend(of)),
    answer: (workflow, of, said) => run(answer(workflow, of, said)),
    accept: (workflow, of, given) => run(accept(workflow, of, given)),
    signal: (workflow, to, name, payload) => run(signal(workflow, to, name, payload)),
    review: (workflow, of, said) => run(review(workflow, of, said)),
    schedule: (workflow, scheduled) => run(schedule(workflow, scheduled)),
    unschedule: (of) => run(unschedule(of)),
    schedules: (of) => run(schedules(of)),
    close: async () => {
      closedAt ??= performance.now()
      for (const [leave, reject] of listening) {
        leave()
        reject(new ClientClosed())
      }
      // What still waits would poll a store that is gone, and keep the process alive.
      for (const fiber of waiting) fiber.unsafeInterruptAsFork(fiber.id())
      await runtime.dispose()
    },
  }
}
