/** Starting runs and waiting for them: what a client of workflows uses. Workers may live elsewhere. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Option from "effect/Option"
import { randomUUID } from "node:crypto"
import type {
  AnyWorkflow,
  failureOfWorkflow,
  givenOfWorkflow,
  needsOfWorkflow,
  outputOfWorkflow,
} from "../builder/Workflow.js"
import type { Definition } from "../dsl/Definition.js"
import { isOperation } from "../dsl/Operation.js"
import { codecOf, type Codec } from "../model/Codec.js"
import {
  RunCanceled,
  RunConflict,
  RunFailed,
  RunParked,
  StoreError,
  type CompileError,
  type InvalidId,
  type InvalidValue,
  type RunNotFound,
} from "../model/Errors.js"
import { checkId, defaultNamespace, fingerprint } from "../model/Ids.js"
import { canonicalText } from "../model/internal/json.js"
import type { FailureRecord, RunOutcome, RunRecord, RunStatus } from "../model/Records.js"
import type { StoreWithTransactions } from "../model/StoreWithTransactions.js"
import { CheckpointStore, type CheckpointStoreService } from "../store/CheckpointStore.js"
import { ended, runnable } from "../store/LocalSignals.js"
import {
  answer,
  parked,
  type AnswerOptions,
  type OutcomeAnswer,
  type ParkedOptions,
  type ParkedRun,
} from "./Answers.js"
import { cancel, type CancelOptions } from "./Cancel.js"
import { untilOver } from "./internal/waiting.js"
import { Worker, type WorkerOptions } from "./Worker.js"

/**
 * Which run is meant.
 *
 * *Shape.* `runId`: any text of 1 to 255 characters; starting it twice with the same workflow and input gives the same
 * run. Without it a random one is made. `namespace`: `default` unless given.
 *
 * @category options
 * @since 0.1.0
 */
export interface StartOptions {
  readonly runId?: string
  readonly namespace?: string
}

/**
 * What a client receives when it waits for a run: the output, a failure that the workflow declares, or how the run
 * ended otherwise.
 *
 * @category models
 * @since 0.1.0
 */
export type ResultError<W extends AnyWorkflow> =
  failureOfWorkflow<W> | RunFailed | RunCanceled | RunParked | RunNotFound | InvalidValue | StoreError

/**
 * Where a run stands, for someone who looks in.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunSnapshot<W extends AnyWorkflow> {
  readonly status: RunStatus
  /** Path of the step that was committed or tried last. */
  readonly cursor: string | null
  /** Set once the run is final or parked. */
  readonly result: Option.Option<Exit.Exit<outputOfWorkflow<W>, ResultError<W>>>
}

/**
 * A started run.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunHandle<W extends AnyWorkflow> {
  readonly namespace: string
  readonly runId: string
  /** False if the run was there already and this start attached to it (law X9). */
  readonly created: boolean
  /**
   * Waits until the run is final.
   *
   * *Errors.* The workflow's declared failures, with their own tags; `RunFailed` for any other failure; `RunCanceled`
   * if it was canceled; `RunParked` if the run waits for a person because something is wrong with it.
   */
  readonly result: Effect.Effect<outputOfWorkflow<W>, ResultError<W>>
  /**
   * Commits of the run so far, those included that its worker has accepted and not yet made durable, where that worker lives
   * in this process. A killed process may take these back.
   */
  readonly seq: Effect.Effect<number, RunNotFound | StoreError>
  /** Commits of the run that are durable. */
  readonly durableSeq: Effect.Effect<number, RunNotFound | StoreError>
  /** Looks once. */
  readonly poll: Effect.Effect<RunSnapshot<W>, RunNotFound | StoreError>
}

// ---- reading a run's end ---------------------------------------------------------------------------------------

const failureCodec = (
  definition: Definition,
  failure: Extract<FailureRecord, { kind: "declared" }>,
): Codec<unknown> | null => {
  if (failure.operation === null) return definition.failure === null ? null : codecOf(definition.failure)
  for (const node of definition.nodes) {
    const declared = node.kind === "perform" ? [node.operation] : node.effects.filter(isOperation)
    const operation = declared.find(({ name }) => name === failure.operation)
    if (operation !== undefined) return operation.codecs.failure
  }
  return null
}

const undeclared = (run: RunOutcome, step: string, problem: string): RunFailed =>
  new RunFailed({
    runId: run.runId,
    step,
    problem,
    details: { name: "Error", message: problem, tag: null, stack: null, cause: null },
  })

const failureOf = (definition: Definition, run: RunOutcome): unknown => {
  const { failure } = run
  if (failure === null) return undeclared(run, run.cursor ?? "", `it is ${run.status}`)
  if (failure.kind === "canceled") return new RunCanceled({ runId: run.runId, reason: run.cancelReason })
  if (failure.kind === "undeclared") {
    return new RunFailed({ runId: run.runId, step: failure.step, problem: failure.problem, details: failure.details })
  }
  const decoded = failureCodec(definition, failure)?.decode(failure.value, `failure of step '${failure.step}'`)
  // Written by code that declared another failure: its text is still the best that can be said.
  return decoded !== undefined && Either.isRight(decoded)
    ? decoded.right
    : undeclared(run, failure.step, failure.problem)
}

const endOf = (definition: Definition, run: RunOutcome): Option.Option<Exit.Exit<any, any>> => {
  switch (run.status) {
    case "completed": {
      const place = "stored output of the workflow"
      const decoded =
        definition.output === null
          ? Either.right(undefined)
          : codecOf(definition.output.schema).decode(run.output, place)
      return Option.some(Either.match(decoded, { onLeft: Exit.fail, onRight: Exit.succeed }) as Exit.Exit<any, any>)
    }
    case "failed":
    case "canceled":
      return Option.some(Exit.fail(failureOf(definition, run)))
    case "review":
      return run.parked === null
        ? Option.none()
        : Option.some(Exit.fail(new RunParked({ runId: run.runId, ...run.parked })))
    default:
      return Option.none()
  }
}

const waitFor = (store: CheckpointStoreService, definition: Definition, namespace: string, runId: string) =>
  Effect.flatMap(untilOver(store, { namespace, runId }), (run) => Option.getOrThrow(endOf(definition, run)))

const handleOf = (
  store: CheckpointStoreService,
  workflow: AnyWorkflow,
  namespace: string,
  runId: string,
  created: boolean,
): RunHandle<any> => ({
  namespace,
  runId,
  created,
  result: waitFor(store, workflow.definition, namespace, runId),
  seq: Effect.suspend(() => {
    const underWay = store.signals.underWay.get(ended(namespace, runId))
    return underWay === undefined
      ? Effect.map(store.findRun(namespace, runId), ({ seq }) => seq)
      : Effect.succeed(underWay.acceptedSeq)
  }),
  durableSeq: Effect.map(store.findRun(namespace, runId), ({ seq }) => seq),
  poll: Effect.map(store.findRun(namespace, runId), (run) => ({
    status: run.status,
    cursor: run.cursor,
    result: endOf(workflow.definition, run),
  })),
})

// ---- starting --------------------------------------------------------------------------------------------------

const conflict = (run: RunRecord, workflow: string, inputHash: string): RunConflict | null => {
  const of = { namespace: run.namespace, runId: run.runId }
  if (run.workflow !== workflow) {
    const problem = `it runs workflow '${run.workflow}', not '${workflow}'`
    return new RunConflict({ ...of, reason: "WorkflowDiffers", problem })
  }
  return run.inputHash === inputHash
    ? null
    : new RunConflict({ ...of, reason: "InputDiffers", problem: "it was started with another input" })
}

const start = <W extends AnyWorkflow>(workflow: W, input: givenOfWorkflow<W>, options: StartOptions = {}) =>
  Effect.gen(function* () {
    const store = yield* CheckpointStore
    const plan = yield* workflow.plan
    const namespace = yield* checkId("namespace", options.namespace ?? defaultNamespace)
    const runId = yield* checkId("run id", options.runId ?? randomUUID())
    const gated = yield* codecOf(workflow.definition.input).gate(input, {
      place: `input of workflow '${plan.workflow}'`,
    })
    const inputHash = fingerprint(canonicalText(gated.text))
    const { created, run } = yield* store.createRun({
      namespace,
      runId,
      workflow: plan.workflow,
      version: plan.version,
      planHash: plan.hash,
      input: gated.text,
      inputHash,
    })
    const refused = created ? null : conflict(run, plan.workflow, inputHash)
    if (refused !== null) return yield* refused
    yield* store.signals.send(runnable)
    return handleOf(store, workflow, namespace, runId, created) as RunHandle<W>
  })

const attach = <W extends AnyWorkflow>(workflow: W, options: { readonly runId: string; readonly namespace?: string }) =>
  Effect.gen(function* () {
    const store = yield* CheckpointStore
    const namespace = yield* checkId("namespace", options.namespace ?? defaultNamespace)
    const runId = yield* checkId("run id", options.runId)
    const run = yield* store.findRun(namespace, runId)
    const refused = conflict(run, workflow.name, run.inputHash)
    if (refused !== null) return yield* refused
    return handleOf(store, workflow, namespace, runId, false) as RunHandle<W>
  })

const resume = (options: { readonly runId: string; readonly namespace?: string }) =>
  Effect.gen(function* () {
    const store = yield* CheckpointStore
    const resumed = yield* store.unpark(options.namespace ?? defaultNamespace, options.runId)
    if (resumed) yield* store.signals.send(runnable)
    return resumed
  })

// ---- for callers who don't use Effect --------------------------------------------------------------------------

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
  /** Lets a parked run go on. False if it was not parked. */
  readonly resume: (options: { readonly runId: string; readonly namespace?: string }) => Promise<boolean>
  /** Asks that a run be canceled. False if it has ended already. */
  readonly cancel: (options: CancelOptions) => Promise<boolean>
  /** One page of the runs that wait for a person. */
  readonly parked: (options?: ParkedOptions) => Promise<ReadonlyArray<ParkedRun>>
  /** Says whether an operation of unknown outcome happened; rejects with `AnswerRefused` where it cannot be said. */
  readonly answer: (workflow: AnyWorkflow, of: AnswerOptions, said: OutcomeAnswer) => Promise<void>
  /** Stops the worker (it drains), then closes the store. What still waits for a result is rejected. */
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

const open = async <const Ws extends ReadonlyArray<AnyWorkflow>>(options: OpenOptions<Ws>): Promise<CairnClient> => {
  const { store, handlers, ...worker } = options as WorkerOptions<Ws> & {
    readonly store: Layer.Layer<CheckpointStore, StoreError>
    readonly handlers?: Layer.Layer<any>
  }
  const layer = Worker.layer(worker).pipe(
    Layer.provide(handlers ?? Layer.empty),
    Layer.provideMerge(store),
  ) as Layer.Layer<Worker | CheckpointStore, CompileError | InvalidId | StoreError>
  const runtime = ManagedRuntime.make(layer)
  // The failure itself is thrown, not a wrapper of it: callers tell errors apart by their tags.
  // What still waits when the client closes would poll a store that is gone, and keep the process alive.
  const waiting = new Set<Fiber.RuntimeFiber<any, any>>()
  const run = async <A, E>(effect: Effect.Effect<A, E, Worker | CheckpointStore>): Promise<A> => {
    const fiber = runtime.runFork(effect)
    waiting.add(fiber)
    const exit = await Effect.runPromise(Fiber.await(fiber))
    waiting.delete(fiber)
    if (Exit.isSuccess(exit)) return exit.value
    throw Cause.squash(exit.cause)
  }
  const promised = <W extends AnyWorkflow>(handle: RunHandle<W>): PromiseRunHandle<W> => ({
    namespace: handle.namespace,
    runId: handle.runId,
    created: handle.created,
    result: () => run(handle.result),
    poll: () => run(handle.poll),
  })
  try {
    await run(Effect.void)
  } catch (error) {
    await runtime.dispose()
    throw error
  }
  return {
    start: async (workflow, input, startOptions) => promised(await run(start(workflow, input, startOptions))),
    attach: async (workflow, of) => promised(await run(attach(workflow, of))),
    resume: (of) => run(resume(of)),
    cancel: (of) => run(cancel(of)),
    parked: (of) => run(parked(of)),
    answer: (workflow, of, said) => run(answer(workflow, of, said)),
    close: async () => {
      await Effect.runPromise(Fiber.interruptAll(waiting))
      await runtime.dispose()
    },
  }
}

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
  /** Lets a parked run go on, once the reason is dealt with. False if it was not parked. */
  resume,
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
