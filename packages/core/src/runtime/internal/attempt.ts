/** One attempt of one node: its function is run and its output gated. Nothing is committed here. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Runtime from "effect/Runtime"
import * as FiberId from "effect/FiberId"
import type { PerformNode, StepNode } from "../../dsl/Definition.js"
import { CurrentStep } from "../../dsl/internal/currentStep.js"
import { codecOf, type Gated } from "../../model/Codec.js"
import { performedNone } from "../../model/DiagnosticCode.js"
import { StepMisuse, StepThrew, StepTimeout, type InvalidValue } from "../../model/Errors.js"
import type { EffectRecord } from "../../model/Records.js"
import type { TransactionAccess } from "../../store/CheckpointDriver.js"
import { fromReturned, lazySignal } from "./asynchrony.js"
import { stepContext } from "./context.js"
import type { Attempt } from "./decide.js"
import { primary } from "./errorDetails.js"
import { gate, rawText } from "./gate.js"
import { noOperation, performEnded, type OperationState, type Rejected, type Stop } from "./operationState.js"
import { performIn } from "./perform.js"
import type { RunSession } from "./session.js"
import { isTransaction, transactionTimeoutMs } from "./transactionLimits.js"

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

/** Acts in promise style, as fibers of their own that end with the attempt. */
const promised = <Args extends ReadonlyArray<any>>(
  act: (...args: Args) => Effect.Effect<unknown, unknown>,
  fibers: Array<Fiber.RuntimeFiber<any, any>>,
) =>
  Effect.map(Effect.runtime<never>(), (runtime) => (...args: Args): Promise<unknown> => {
    const fiber = Runtime.runFork(runtime)(act(...args))
    fibers.push(fiber)
    const promise = new Promise((settle, reject) => {
      fiber.addObserver((exit) => {
        if (Exit.isSuccess(exit)) settle(exit.value)
        else reject(primary(exit.cause).error)
      })
    })
    // Who awaits it is told. For who does not, the attempt is: a rejection that nobody handles would end the process.
    promise.catch(() => {})
    return promise
  })

const stepBody = (
  session: RunSession,
  attempt: Attempt,
  node: StepNode,
  state: OperationState,
  access: TransactionAccess | null,
): Body =>
  Effect.gen(function* () {
    const perform = performIn(session, attempt, state)
    const fibers: Array<Fiber.RuntimeFiber<unknown, unknown>> = []
    const signal = lazySignal(() => {
      state.closed = true
      for (const fiber of fibers) fiber.unsafeInterruptAsFork(FiberId.none)
    })
    const context = stepContext({
      input: { text: session.run.input, codec: codecOf(session.env.definition.input) },
      available: session.available,
      onUnreadable: unreadable(session, state),
    })
    Object.defineProperty(context, "signal", { get: signal.get, enumerable: true })
    if (attempt.node.operations.length > 0) {
      Object.defineProperty(context, "perform", { value: yield* promised(perform, fibers), enumerable: true })
    }
    if (access !== null) {
      const query = (text: string, parameters: ReadonlyArray<unknown> = []) => access.query(text, parameters)
      Object.defineProperty(context, "query", { value: yield* promised(query, fibers), enumerable: true })
    }
    const services = (access === null ? session.env.context : Context.merge(session.env.context, access.services)).pipe(
      Context.add(CurrentStep, { perform }),
    )
    const ended = fromReturned(() => node.run(context), signal, node.name).pipe(
      Effect.scoped,
      Effect.provide(services),
      Effect.exit,
    )
    // A function that did not wait for what it performed: the attempt does, so that no outcome is lost.
    return yield* Effect.flatten(Effect.zipLeft(ended, Fiber.awaitAll(fibers))).pipe(
      Effect.onInterrupt(() => Fiber.interruptAll(fibers)),
    )
  })

const performBody = (session: RunSession, attempt: Attempt, node: PerformNode, state: OperationState): Body =>
  Effect.gen(function* () {
    const context = stepContext({
      input: { text: session.run.input, codec: codecOf(session.env.definition.input) },
      available: session.available,
      onUnreadable: unreadable(session, state),
    })
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

const finish = (
  session: RunSession,
  attempt: Attempt,
  state: OperationState,
  exit: Exit.Exit<unknown, unknown>,
  startedAt: number,
): Effect.Effect<AttemptEnd> =>
  Effect.gen(function* () {
    const node = session.node(attempt.node.path)
    const stop = stopOf(state)
    if (stop !== null) return { _tag: "Stopped", stop }
    if (Exit.isFailure(exit)) return { _tag: "Failed", ...primary(exit.cause) }
    if (node.kind === "perform" && unsettled(node, state)) {
      return { _tag: "Failed", error: state.outcome!.value, defect: false }
    }
    if (attempt.effect !== null && state.performed === null) {
      return { _tag: "Stopped", stop: forgotten(attempt.effect) }
    }
    const declares = attempt.node.effects.find((effect) => effect.kind === "external")
    if (node.kind === "step" && declares !== undefined && state.performed === null) {
      const problem = performedNone(node.name, declares.name)
      return {
        _tag: "Stopped",
        stop: { _tag: "Misuse", error: new StepMisuse({ step: node.name, code: "CRN109", problem }) },
      }
    }
    const gated = yield* Effect.either(gate(session, node, exit.value))
    if (Either.isLeft(gated))
      return { _tag: "Rejected", error: gated.left, raw: rawText(exit.value, session.env.maxValueLength) }
    yield* session.reach("afterGate", node.name, attempt.attempt)
    return { _tag: "Passed", output: gated.right, durationMs: Math.max(0, Math.round(performance.now() - startedAt)) }
  })

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
  Effect.gen(function* () {
    const startedAt = performance.now()
    const node = session.node(attempt.node.path)
    const body =
      node.kind === "step"
        ? stepBody(session, attempt, node, state, access)
        : performBody(session, attempt, node, state)
    const exit = yield* withTimeout(session, body, attempt).pipe(
      Effect.annotateLogs({ step: node.name, attempt: attempt.attempt }),
      Effect.exit,
    )
    state.closed = true
    yield* performEnded(state)
    return yield* finish(session, attempt, state, exit, startedAt)
  }).pipe(Effect.onInterrupt(() => abandon(state)))
