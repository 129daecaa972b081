/**
 * Sends one operation: intent, lease check, handler, and what its answer means.
 *
 * - X4: the handler starts only when the intent, with key and payload, is durable. What is sent is the recorded payload.
 * - An operation ends in success, in known-not-to-have-happened (a declared failure, `NotPerformed`), or unknown:
 *   anything else.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import { CurrentStep } from "../../dsl/internal/currentStep.js"
import { handlerTag, type HandlerContext } from "../../dsl/Operation.js"
import { StepThrew } from "../../model/Errors.js"
import type { EffectWrite } from "../../store/CheckpointDriver.js"
import { fromPromise, lazySignal } from "./asynchrony.js"
import { errorDetails, primary, property, unwrapThrown } from "./errorDetails.js"
import { rawText } from "./gate.js"
import { lost, parkAt, stopWith, type Outcome, type Send } from "./operationState.js"
import { shownMs } from "./session.js"

/** Writes the intent, or that it is sent once more; nothing is sent before this is durable. */
export const recordIntent = (send: Send, write: EffectWrite): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { session, attempt, state } = send
    yield* session.reach("beforeIntent", attempt.node.name, attempt.attempt)
    // One piece: a timeout between the two would leave an intent that this attempt does not know of.
    yield* session.commit({ run: session.running(attempt.node.path), effects: [write] }).pipe(
      Effect.tap(() => Effect.sync(() => (state.intent = write))),
      Effect.uninterruptible,
      Effect.catchAll(lost(state)),
    )
    yield* session.reach("afterIntent", attempt.node.name, attempt.attempt)
  })

const classify = (send: Send, exit: Exit.Exit<unknown, unknown>): Effect.Effect<Outcome> =>
  Effect.gen(function* () {
    const { member, state, operation } = send
    const place = `of operation '${member.name}'`
    if (Exit.isSuccess(exit)) {
      const { maxValueLength: maxLength } = send.session.env
      const given = member.case === null ? exit.value : { case: member.case, result: exit.value }
      const gated = yield* Effect.either(operation.codecs.success.gate(given, { place: `result ${place}`, maxLength }))
      if (Either.isRight(gated)) return { state: "succeeded", ...gated.right } satisfies Outcome
      const problem = `it was performed, and its answer does not fit its schema: ${gated.left.message}`
      // What the provider answered can't be asked for again: a person decides by it whether the operation happened.
      const rejected = { error: gated.left, raw: rawText(exit.value, maxLength) }
      return yield* parkAt(send, "OutputInvalid", problem, rejected)
    }
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

const callHandler = (send: Send, payload: unknown, context: Omit<HandlerContext, "signal">) =>
  Effect.suspend((): Effect.Effect<unknown, unknown> => {
    const handler = Context.unsafeGet(send.session.env.context, handlerTag(send.member.name))
    const signal = lazySignal()
    const handlerContext: HandlerContext = {
      ...context,
      get signal() {
        return signal.get()
      },
    }
    const step = send.attempt.node.name
    let result: ReturnType<typeof handler.run>
    try {
      result = handler.run(payload, handlerContext)
    } catch (thrown) {
      return Effect.fail(new StepThrew({ step, thrown }))
    }
    if (!Effect.isEffect(result)) return fromPromise(Promise.resolve(result), signal, step)
    // A handler is no part of the step: what it performed would have no intent of its own.
    return Effect.mapInputContext(
      Effect.onInterrupt(result, () => Effect.sync(signal.abort)),
      (context: Context.Context<never>) => Context.omit(CurrentStep)(context as never) as Context.Context<never>,
    )
  })

/** The handler's end. An answer that came in while it was being interrupted is an answer all the same (X6). */
const answerOf = (
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
    const { session, attempt, state, member, operation } = send
    const timeout = Symbol("timeout")
    // The recorded payload is what is sent, on the first attempt as on a resume.
    const decoded = operation.codecs.payload.decode(intent.payload, `recorded payload of '${member.name}'`)
    if (Either.isLeft(decoded)) return yield* parkAt(send, "IncompatibleCheckpoint", decoded.left.message)
    const payload: unknown = member.case === null ? decoded.right : (decoded.right as { payload: unknown }).payload
    // Between this check and the handler lies no other await: a lease that has ended starts nothing.
    yield* session.reach("beforeEffect", attempt.node.name, attempt.attempt)
    if (session.env.leaseRemainingMs() <= 0) {
      return yield* stopWith(state, { _tag: "Lost", error: session.leaseLost() })
    }
    const call = callHandler(send, payload, {
      idempotencyKey: intent.idempotencyKey,
      fence: session.lease.fence,
      attempt: attempt.attempt,
    })
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
    yield* session.reach("afterEffect", attempt.node.name, attempt.attempt)
    return outcome
  })
