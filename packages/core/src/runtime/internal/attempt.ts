/** One attempt of one node: its function is run and its output gated. Nothing is committed here. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Runtime from "effect/Runtime"
import * as FiberId from "effect/FiberId"
import * as FiberRef from "effect/FiberRef"
import * as Scope from "effect/Scope"
import type { PerformNode, StepNode, WorkNode } from "../../dsl/Definition.js"
import { CurrentStep, type CurrentStepService } from "../../dsl/internal/currentStep.js"
import { Ledger } from "../../dsl/internal/ledger.js"
import { Output } from "../../dsl/Output.js"
import type { PaidCall, PaidPromise } from "../../dsl/Usage.js"
import type { RejectedOutput } from "../../dsl/StepOptions.js"
import type { Gated } from "../../model/Codec.js"
import { performedNone } from "../../model/DiagnosticCode.js"
import { StepMisuse, StepThrew, StepTimeout, type InvalidValue } from "../../model/Errors.js"
import type { EffectRecord } from "../../model/Records.js"
import type { TransactionAccess } from "../../store/CheckpointDriver.js"
import { fromReturned, lazySignal } from "./asynchrony.js"
import { lookContext, stepContext, type ContextParts } from "./context.js"
import { readIn } from "./dataReads.js"
import type { Attempt } from "./decide.js"
import { primary } from "./errorDetails.js"
import { gate, rawText } from "./gate.js"
import { emitterOf } from "./emitting.js"
import { partsAt } from "./places.js"
import { noOperation, performEnded, type OperationState, type Rejected, type Stop } from "./operationState.js"
import { PaidCalls } from "./paid.js"
import { performIn } from "./perform.js"
import type { RunSession } from "./session.js"
import { isTransaction, transactionTimeoutMs } from "./transactionLimits.js"
import { windowIn } from "./window.js"

/** How an attempt ended. What it knows of its operation stands in `operation`. */
export type AttemptEnd =
  | { readonly _tag: "Passed"; readonly output: Gated<unknown>; readonly durationMs: number }
  | { readonly _tag: "Failed"; readonly error: unknown; readonly defect: boolean }
  | ({ readonly _tag: "Rejected" } & Rejected)
  | { readonly _tag: "Stopped"; readonly stop: Stop }

type Body = Effect.Effect<unknown, unknown, never>

const unreadable =
  (session: RunSession, state: OperationState) =>
  (step: string, error: InvalidValue): void => {
    const problem = `${error.message}; run '${session.run.runId}' was committed by other code`
    state.stop ??= { _tag: "Park", park: { reason: "IncompatibleCheckpoint", step, problem } }
  }

const contextParts = (session: RunSession, attempt: Attempt, state: OperationState): ContextParts =>
  partsAt(session.placeOf(attempt), unreadable(session, state))

/** Acts in promise style, as fibers of their own that end with the attempt. */
const promised = <Args extends ReadonlyArray<any>>(
  act: (...args: Args) => Effect.Effect<unknown, unknown>,
  fibers: Array<Fiber.RuntimeFiber<any, any>>,
) =>
  Effect.map(
    Effect.runtime<never>(),
    (runtime) =>
      (...args: Args) =>
        promiseOf(runtime, act(...args), fibers),
  )

const promiseOf = <A>(
  runtime: Runtime.Runtime<never>,
  effect: Effect.Effect<A, unknown>,
  fibers: Array<Fiber.RuntimeFiber<any, any>>,
): Promise<A> => {
  const fiber = Runtime.runFork(runtime)(effect)
  fibers.push(fiber)
  const promise = new Promise<A>((settle, reject) => {
    fiber.addObserver((exit) => {
      if (Exit.isSuccess(exit)) settle(exit.value)
      else reject(primary(exit.cause).error)
    })
  })
  // Who awaits it is told. For who does not, the attempt is: a rejection that nobody handles would end the process.
  promise.catch(() => {})
  return promise
}

/** `Usage.call` in promise style. */
const paidPromise =
  ({ runtime }: RunSession, ledger: PaidCalls, fibers: Array<Fiber.RuntimeFiber<any, any>>): PaidPromise =>
  (call, make) =>
    promiseOf(
      runtime,
      ledger.paid(call as PaidCall, Effect.tryPromise({ try: make, catch: (thrown) => thrown })),
      fibers,
    )

/**
 * Runs a step's function with the services that it may ask for. The fiber of a run is the loop's own: its services are
 * set for each attempt, and not restored, where nobody outside needs them back.
 */
const inServices = (
  session: RunSession,
  step: CurrentStepService,
  ledger: PaidCalls,
  access: TransactionAccess | null,
  scope: Scope.CloseableScope,
  run: Body,
): Body => {
  const services = new Map(session.env.context.unsafeMap)
  if (access !== null) for (const [key, service] of access.services.unsafeMap) services.set(key, service)
  services.set(CurrentStep.key, step)
  services.set(Ledger.key, ledger)
  services.set(Scope.Scope.key, scope)
  const context = Context.unsafeMake<never>(services)
  return access === null
    ? Effect.zipRight(FiberRef.set(FiberRef.currentContext, context), run)
    : Effect.mapInputContext<unknown, unknown, never, never>(run, () => context)
}

/** The output that the schema has refused last, as the next attempt sees it. */
const lastRejected = ({ frame, path }: Attempt): RejectedOutput | null => {
  const last = frame.attempts.get(path)?.findLast(({ kind }) => kind === "rejected")
  if (last === undefined) return null
  const raw: unknown = last.output === null ? undefined : JSON.parse(last.output)
  return { raw, issues: last.error.message, attempt: last.attempt }
}

const stepBody = (
  session: RunSession,
  attempt: Attempt,
  node: StepNode,
  state: OperationState,
  access: TransactionAccess | null,
): Body => {
  const perform = performIn(session, attempt, state)
  const fibers: Array<Fiber.RuntimeFiber<unknown, unknown>> = []
  const signal = lazySignal(() => {
    state.closed = true
    for (const fiber of fibers) fiber.unsafeInterruptAsFork(FiberId.none)
  })
  const read = readIn(session, attempt, state, access)
  const emit = emitterOf(session, attempt, state)
  const step: CurrentStepService = { perform, read, emit }
  const ledger = new PaidCalls(session, attempt, state, access === null ? "step" : "transaction")
  const parts = contextParts(session, attempt, state)
  const context = stepContext(
    parts,
    signal.get,
    () => lastRejected(attempt),
    emit,
    () => paidPromise(session, ledger, fibers),
  )
  if (session.env.definition.window !== undefined) windowIn(session, attempt, state, context, parts.onUnreadable)
  // One finalizer for all that a computation leaves: its signal, and what it has acquired.
  const provide = (computation: Body): Body =>
    Effect.flatMap(Scope.make(), (scope) =>
      Effect.zipRight(
        session.annotated(attempt),
        Effect.onExit(inServices(session, step, ledger, access, scope, computation), (exit) => {
          if (Exit.isInterrupted(exit)) signal.abort()
          return Scope.close(scope, exit)
        }),
      ),
    )
  const run = fromReturned(() => node.run(context), signal, node.name, provide)
  const performs = attempt.node.operations.length > 0
  const readsData = attempt.node.onStale !== undefined
  if (!performs && !readsData && access === null) return run
  return Effect.gen(function* () {
    if (performs)
      Object.defineProperty(context, "perform", { value: yield* promised(perform, fibers), enumerable: true })
    if (readsData) Object.defineProperty(context, "read", { value: yield* promised(read, fibers), enumerable: true })
    if (access !== null) {
      const query = (text: string, parameters: ReadonlyArray<unknown> = []) => access.query(text, parameters)
      Object.defineProperty(context, "query", { value: yield* promised(query, fibers), enumerable: true })
    }
    // A function that did not wait for what it performed: the attempt does, so that no outcome is lost.
    return yield* Effect.flatten(Effect.zipLeft(Effect.exit(run), Fiber.awaitAll(fibers))).pipe(
      Effect.onInterrupt(() => Fiber.interruptAll(fibers)),
    )
  })
}

const performBody = (session: RunSession, attempt: Attempt, node: PerformNode, state: OperationState): Body =>
  Effect.gen(function* () {
    yield* session.annotated(attempt)
    const context = lookContext(contextParts(session, attempt, state))
    const payload = yield* Effect.try({
      try: () => node.payload(context),
      catch: (thrown) => new StepThrew({ step: node.name, thrown }),
    }).pipe(Effect.orDie)
    if (payload === null && node.optional) return null
    const performed = performIn(session, attempt, state)(node.operation, payload)
    if (!node.settle) return yield* performed
    return yield* Effect.match(performed, {
      onSuccess: (value): unknown => ({ ok: true, value }),
      onFailure: (error): unknown => ({ ok: false, error }),
    })
  })

const withTimeout = (session: RunSession, body: Body, attempt: Attempt): Body => {
  const { name } = attempt.node
  const timeoutMs = isTransaction(attempt.node)
    ? transactionTimeoutMs(attempt.node, session.env.leaseMs)
    : attempt.node.timeoutMs
  return timeoutMs === null
    ? body
    : Effect.timeoutFail(body, { duration: timeoutMs, onTimeout: () => new StepTimeout({ step: name, timeoutMs }) })
}

/** A settled operation that is known not to have happened for another reason than a declared failure has no value. */
const unsettled = (node: PerformNode, state: OperationState): boolean =>
  node.settle && state.outcome?.state === "notPerformed"

/**
 * What ends an attempt although its function may have gone on: a stop, or an operation without a known outcome. The
 * latter first where the stop would fail the run: its policy resolves it before (X5).
 */
const stopOf = (state: OperationState): Stop | null =>
  state.intent !== null && state.outcome === null && (state.stop === null || state.stop._tag === "Misuse")
    ? { _tag: "Unknown", problem: "the step ended before its operation was answered", sends: state.intent.sends }
    : state.stop

/** X4: an operation was about to be sent, and this time the step performs none. */
const forgotten = (effect: EffectRecord): Stop => ({
  _tag: "Park",
  park: {
    reason: "IntentMismatch",
    step: effect.path,
    problem: `the intent under key ${effect.idempotencyKey} records operation '${effect.operation}', and the step would now perform nothing`,
  },
})

/** What the step's `repair` makes of a refused output; the first refusal where it cannot. */
const repaired = (
  session: RunSession,
  { attempt }: Attempt,
  node: WorkNode,
  given: unknown,
  error: InvalidValue,
): Effect.Effect<Gated<unknown>, InvalidValue> => {
  const repair = node.options.onInvalid?.repair
  if (repair === undefined) return Effect.fail(error)
  const text = rawText(given, session.env.maxValueLength)
  const rejected: RejectedOutput = { raw: text === null ? undefined : JSON.parse(text), issues: error.message, attempt }
  return Effect.try(() => repair(rejected)).pipe(
    Effect.flatMap((mended) => gate(session, node, Output.unvalidated(mended))),
    // It could not: what is told is what was wrong with the output itself.
    Effect.mapError(() => error),
  )
}

const finish = (
  session: RunSession,
  attempt: Attempt,
  state: OperationState,
  exit: Exit.Exit<unknown, unknown>,
  startedAt: number,
): Effect.Effect<AttemptEnd> => {
  const node = session.node(attempt.path)
  const stop = stopOf(state)
  if (stop !== null) return Effect.succeed({ _tag: "Stopped", stop })
  if (Exit.isFailure(exit)) return Effect.succeed({ _tag: "Failed", ...primary(exit.cause) })
  if (node.kind === "perform" && unsettled(node, state)) {
    return Effect.succeed({ _tag: "Failed", error: state.outcome!.value, defect: false })
  }
  if (attempt.effect !== null && state.performed === null) {
    return Effect.succeed({ _tag: "Stopped", stop: forgotten(attempt.effect) })
  }
  const declares = attempt.node.effects.find((effect) => effect.kind === "external")
  if (node.kind === "step" && declares !== undefined && state.performed === null) {
    const problem = performedNone(node.name, declares.name)
    return Effect.succeed({
      _tag: "Stopped",
      stop: { _tag: "Misuse", error: new StepMisuse({ step: node.name, code: "CRN109", problem }) },
    })
  }
  const passed = (output: Gated<unknown>): AttemptEnd => ({
    _tag: "Passed",
    output,
    durationMs: Math.max(0, Math.round(performance.now() - startedAt)),
  })
  const gated = gate(session, node, exit.value)
  // Most schemas answer at once: then so does the gate.
  if (Either.isEither(gated) && Either.isRight(gated) && !session.isWatched)
    return Effect.succeed(passed(gated.right as Gated<unknown>))
  const rejected = (error: InvalidValue): AttemptEnd => ({
    _tag: "Rejected",
    error,
    raw: rawText(exit.value, session.env.maxValueLength),
  })
  const mended = Effect.catchAll(gated, (error) => repaired(session, attempt, node, exit.value, error))
  return Effect.matchEffect(mended, {
    onFailure: (error) => Effect.succeed(rejected(error)),
    onSuccess: (output) => Effect.as(session.reach("afterGate", attempt.path, attempt.attempt), passed(output)),
  })
}

/** What a step has put into a fiber of its own ends with the attempt, too. */
const abandon = (state: OperationState): Effect.Effect<void> =>
  Effect.suspend(() => {
    state.closed = true
    if (state.underWay === null) return Effect.void
    const { fiber, ended } = state.underWay
    return Effect.zipRight(Fiber.interruptFork(fiber), ended.await)
  })

/**
 * Runs one attempt.
 *
 * *Errors.* None but interruption, which is no outcome of a step (X5): it goes through.
 */
export const runAttempt = (
  session: RunSession,
  attempt: Attempt,
  state: OperationState = noOperation(),
  access: TransactionAccess | null = null,
): Effect.Effect<AttemptEnd> =>
  Effect.suspend(() => {
    const startedAt = performance.now()
    const node = session.node(attempt.path)
    const body =
      node.kind === "step"
        ? stepBody(session, attempt, node, state, access)
        : performBody(session, attempt, node, state)
    const timed = withTimeout(session, body, attempt)
    const ended = Effect.flatMap(Effect.exit(timed), (exit) => {
      state.closed = true
      return state.underWay === null
        ? finish(session, attempt, state, exit, startedAt)
        : Effect.zipRight(
            performEnded(state),
            Effect.suspend(() => finish(session, attempt, state, exit, startedAt)),
          )
    })
    return attempt.node.operations.length === 0 ? ended : Effect.onInterrupt(ended, () => abandon(state))
  })
