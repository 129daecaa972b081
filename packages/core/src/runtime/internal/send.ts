/**
 * Sends one operation: intent, lease check, handler, and what its answer means.
 *
 * - X4: the handler starts only when the intent, with key and payload, is durable. What is sent is the recorded payload.
 * - An operation ends in success, in known-not-to-have-happened (a declared failure, `NotPerformed`), or unknown:
 *   anything else.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import { CurrentStep } from "../../dsl/internal/currentStep.js"
import { Ledger } from "../../dsl/internal/ledger.js"
import { handlerTag, type HandlerContext } from "../../dsl/Operation.js"
import { StepThrew } from "../../model/Errors.js"
import type { EffectWrite } from "../../store/CheckpointDriver.js"
import { fromPromise, lazySignal } from "./asynchrony.js"
import { errorDetails, primary, property, unwrapThrown } from "./errorDetails.js"
import { rawText } from "./gate.js"
import { PaidCalls } from "./paid.js"
import { readAt } from "./lookedAt.js"
import { lost, parkAt, recordOutcome, stopWith, type Outcome, type Send } from "./operationState.js"
import { shownMs } from "./session.js"

/** Writes the intent, or that it is sent once more; nothing is sent before this is durable. */
export const recordIntent = (send: Send, write: EffectWrite): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { session, attempt, state } = send
    yield* session.reach("beforeIntent", attempt.path, attempt.attempt)
    // One piece: a timeout between the two would leave an intent that this attempt does not know of.
    yield* session.commit({ run: session.running(attempt.path), effects: [write] }).pipe(
      Effect.tap(() => Effect.sync(() => (state.intent = write))),
      Effect.uninterruptible,
      Effect.catchAll(lost(state)),
    )
    yield* session.reach("afterIntent", attempt.path, attempt.attempt)
  })

/** The outcome of an operation that happened, with what the provider said of it. */
export const happened = (send: Send, result: unknown): Effect.Effect<Outcome> =>
  Effect.gen(function* () {
    const { member, operation } = send
    const { maxValueLength: maxLength } = send.session.env
    const given = member.case === null ? result : { case: member.case, result }
    const place = `result of operation '${member.name}'`
    const gated = yield* Effect.either(operation.codecs.success.gate(given, { place, maxLength }))
    if (Either.isRight(gated)) return { state: "succeeded", ...gated.right } satisfies Outcome
    const problem = `it was performed, and its answer does not fit its schema: ${gated.left.message}`
    // What the provider answered can't be asked for again: a person decides by it whether the operation happened.
    const rejected = { error: gated.left, raw: rawText(result, maxLength) }
    return yield* parkAt(send, "OutputInvalid", problem, rejected)
  })

const classify = (send: Send, exit: Exit.Exit<unknown, unknown>): Effect.Effect<Outcome> =>
  Effect.gen(function* () {
    const { member, state, operation } = send
    const place = `of operation '${member.name}'`
    if (Exit.isSuccess(exit)) return yield* happened(send, exit.value)
    if (Cause.isInterruptedOnly(exit.cause)) return yield* Effect.failCause(exit.cause as Cause.Cause<never>)
    const { defect, error: failed } = primary(exit.cause)
    const error = unwrapThrown(failed)
    if (!defect && property(error, "_tag") === "NotPerformed") {
      return { state: "notPerformed", text: JSON.stringify(errorDetails(error)), value: error }
    }
    if (!defect && operation.codecs.failure !== null) {
      const gated = yield* Effect.either(operation.codecs.failure.gate(error, { place: `failure ${place}` }))
      if (Either.isRight(gated)) return { state: "failed", ...gated.right }
    }
    const problem = errorDetails(error).message
    return yield* stopWith(state, { _tag: "Unknown", problem, sends: state.intent?.sends ?? 1 })
  })

/** The recorded payload is what is sent and what is asked about, on the first attempt as on a resume. */
export const recordedPayload = (send: Send, intent: EffectWrite): Effect.Effect<unknown> => {
  const { member, operation } = send
  const decoded = operation.codecs.payload.decode(intent.payload, `recorded payload of '${member.name}'`)
  if (Either.isLeft(decoded)) return parkAt(send, "IncompatibleCheckpoint", decoded.left.message)
  return Effect.succeed(member.case === null ? decoded.right : (decoded.right as { payload: unknown }).payload)
}

/** Calls what the application gave: the handler itself, or its check. */
export const callHandler = (send: Send, what: "run" | "check", intent: EffectWrite, payload: unknown) =>
  Effect.suspend((): Effect.Effect<unknown, unknown> => {
    const { session, attempt, member } = send
    const handler = Context.unsafeGet(session.env.context, handlerTag(member.name))
    const signal = lazySignal()
    const handlerContext = readAt(
      { idempotencyKey: intent.idempotencyKey, fence: session.lease.fence, attempt: attempt.attempt },
      { signal: signal.get },
    ) as HandlerContext
    const step = attempt.node.name
    let result: ReturnType<typeof handler.run>
    try {
      // That there is a check was seen to when the worker started.
      result = handler[what]!(payload, handlerContext)
    } catch (thrown) {
      return Effect.fail(new StepThrew({ step, thrown }))
    }
    if (!Effect.isEffect(result)) return fromPromise(Promise.resolve(result), signal, step)
    // A handler is no part of the step: what it performed would have no intent of its own.
    return Effect.mapInputContext(
      Effect.onInterrupt(result, () => Effect.sync(signal.abort)),
      (context: Context.Context<never>) =>
        Context.add(
          Context.omit(CurrentStep)(context as never) as Context.Context<never>,
          Ledger,
          new PaidCalls(session, attempt, send.state, "handler"),
        ) as Context.Context<never>,
    )
  })

/** The handler's end. An answer that came in while it was being interrupted is an answer all the same (X6). */
export const answerOf = (
  send: Send,
  call: Effect.Effect<unknown, unknown>,
  timeout: unknown,
): Effect.Effect<Exit.Exit<unknown, unknown>> =>
  Effect.suspend(() => {
    const heard: Array<Exit.Exit<unknown, unknown>> = []
    return call.pipe(
      Effect.onExit((exit) => Effect.sync(() => void heard.push(exit))),
      Effect.timeoutFail({ duration: send.member.timeoutMs, onTimeout: () => timeout }),
      Effect.interruptible,
      Effect.exit,
      Effect.map((exit) => heard.find(Exit.isSuccess) ?? exit),
    )
  })

/** Hands a recorded intent to the handler, and says what its answer means. */
export const sendIntent = (send: Send, intent: EffectWrite): Effect.Effect<Outcome> =>
  Effect.gen(function* () {
    const { session, attempt, state, member } = send
    const timeout = Symbol("timeout")
    const payload = yield* recordedPayload(send, intent)
    // Between this check and the handler lies no other await: a lease that has ended starts nothing.
    yield* session.reach("beforeEffect", attempt.path, attempt.attempt)
    if (session.env.leaseRemainingMs() <= 0) {
      return yield* stopWith(state, { _tag: "Lost", error: session.leaseLost() })
    }
    if (member.onUnknown.policy === "checkFirst") {
      state.mayEndAt = (yield* Clock.currentTimeNanos) + BigInt(member.timeoutMs) * 1_000_000n
    }
    const call = callHandler(send, "run", intent, payload)
    // No interruption between the answer and what this attempt knows of it: from there on it is recorded, whatever comes.
    const outcome = yield* answerOf(send, call, timeout).pipe(
      Effect.flatMap((exit) =>
        Exit.isFailure(exit) && primary(exit.cause).error === timeout
          ? stopWith(state, {
              _tag: "Unknown",
              problem: `no answer within ${shownMs(member.timeoutMs)}`,
              sends: intent.sends,
            })
          : classify(send, exit),
      ),
      Effect.tap((known) => Effect.sync(() => (state.outcome = known))),
      Effect.uninterruptible,
    )
    yield* session.reach("afterEffect", attempt.path, attempt.attempt)
    if (member.onUnknown.policy === "recordFirst") yield* recordOutcome(send, intent, outcome)
    return outcome
  })
