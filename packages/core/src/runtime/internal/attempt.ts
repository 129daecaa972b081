/** One attempt of one node: its function is run and its output gated. Nothing is committed here. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type { PerformNode, StepNode, WorkNode } from "../../dsl/Definition.js"
import { Output } from "../../dsl/Output.js"
import type { RejectedOutput } from "../../dsl/StepOptions.js"
import type { Gated } from "../../model/Codec.js"
import { performedNone } from "../../model/DiagnosticCode.js"
import { StepMisuse, StepThrew, StepTimeout, type InvalidValue } from "../../model/Errors.js"
import type { EffectRecord } from "../../model/Records.js"
import type { TransactionAccess } from "../../store/CheckpointDriver.js"
import { fromReturned } from "./asynchrony.js"
import { lookContext } from "./context.js"
import type { Attempt } from "./decide.js"
import { primary } from "./errorDetails.js"
import { gate, rawText } from "./gate.js"
import { partsAt } from "./places.js"
import { noOperation, performEnded, type OperationState, type Rejected, type Stop } from "./operationState.js"
import { performIn } from "./perform.js"
import type { RunSession } from "./session.js"
import { asEffect, type Soon } from "./soon.js"
import { parkUnread, StepTools } from "./stepTools.js"
import { isTransaction, transactionTimeoutMs } from "./transactionLimits.js"
import { windowIn } from "./window.js"

/** How an attempt ended. What it knows of its operation stands in `operation`. */
export type AttemptEnd =
  | { readonly _tag: "Passed"; readonly output: Gated<unknown>; readonly durationMs: number }
  | { readonly _tag: "Failed"; readonly error: unknown; readonly defect: boolean }
  | ({ readonly _tag: "Rejected" } & Rejected)
  | { readonly _tag: "Stopped"; readonly stop: Stop }

type Body = Effect.Effect<unknown, unknown, never>

const stepBody = (
  session: RunSession,
  attempt: Attempt,
  node: StepNode,
  state: OperationState,
  access: TransactionAccess | null,
): Body => {
  const tools = new StepTools(session, attempt, state, access)
  const context = tools.context()
  if (session.env.definition.window !== undefined) windowIn(session, attempt, state, context, tools.onUnreadable)
  const run = () => fromReturned(() => node.run(context), tools, node.name)
  const performs = attempt.node.operations.length > 0
  const readsData = attempt.node.onStale !== undefined
  if (!performs && !readsData && access === null) return run()
  const add = (name: string, value: unknown): unknown =>
    Object.defineProperty(context, name, { value, enumerable: true })
  return Effect.gen(function* () {
    yield* session.annotated(attempt)
    if (performs) add("perform", yield* tools.promised(tools.perform.bind(tools)))
    if (readsData) add("read", yield* tools.promised(tools.read.bind(tools)))
    if (access !== null) {
      const query = (text: string, parameters: ReadonlyArray<unknown> = []) => access.query(text, parameters)
      add("query", yield* tools.promised(query))
    }
    return yield* tools.withPromises(run)
  })
}

const performBody = (session: RunSession, attempt: Attempt, node: PerformNode, state: OperationState): Body =>
  session.attempted(
    attempt,
    Effect.gen(function* () {
      const context = lookContext(partsAt(session.placeOf(attempt), parkUnread(session, state)))
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
    }),
  )

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
): Soon<AttemptEnd> => {
  const node = session.node(attempt.path)
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
  const durationMs = Math.max(0, Math.round(performance.now() - startedAt))
  const gated = gate(session, node, exit.value)
  // Most schemas answer at once: then so does the gate.
  if (Either.isEither(gated) && Either.isRight(gated) && !session.isWatched) {
    return { _tag: "Passed", output: gated.right as Gated<unknown>, durationMs }
  }
  const mended = Effect.catchAll(gated, (error) => repaired(session, attempt, node, exit.value, error))
  return Effect.matchEffect(mended, {
    onFailure: (error) =>
      Effect.succeed<AttemptEnd>({
        _tag: "Rejected",
        error,
        raw: rawText(exit.value, session.env.maxValueLength),
      }),
    onSuccess: (output) =>
      Effect.as(session.reach("afterGate", attempt.path, attempt.attempt), {
        _tag: "Passed",
        output,
        durationMs: Math.max(0, Math.round(performance.now() - startedAt)),
      } as const),
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
 * Runs one attempt. What its function gives at once has ended at once.
 *
 * *Errors.* None but interruption, which is no outcome of a step (X5): it goes through.
 */
export const runAttempt = (
  session: RunSession,
  attempt: Attempt,
  state: OperationState = noOperation(),
  access: TransactionAccess | null = null,
): Soon<AttemptEnd> => {
  const startedAt = performance.now()
  const node = session.node(attempt.path)
  const body =
    node.kind === "step" ? stepBody(session, attempt, node, state, access) : performBody(session, attempt, node, state)
  if (Exit.isExit(body)) {
    state.closed = true
    return finish(session, attempt, state, body, startedAt)
  }
  const ended = Effect.flatMap(Effect.exit(withTimeout(session, body, attempt)), (exit) => {
    state.closed = true
    const finished = Effect.suspend(() => asEffect(finish(session, attempt, state, exit, startedAt)))
    return state.underWay === null ? finished : Effect.zipRight(performEnded(state), finished)
  })
  return attempt.node.operations.length === 0 ? ended : Effect.onInterrupt(ended, () => abandon(state))
}
