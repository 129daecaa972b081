/**
 * One operation of one attempt: guard, intent, lease check, handler, outcome.
 *
 * - The guard: a second perform, or an undeclared one, never reaches a handler (CRN109, CRN102).
 * - X4: the handler starts only when the intent, with key and payload, is durable. What is sent is the recorded payload.
 * - X6: before an unknown outcome is resolved, what another worker may have recorded of it is read again.
 * - An operation ends in success, in known-not-to-have-happened (a declared failure, `NotPerformed`), or unknown:
 *   anything else.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import { CurrentStep } from "../../dsl/internal/currentStep.js"
import type { Node } from "../../dsl/Definition.js"
import { handlerTag, type AnyOperation, type HandlerContext, type MemberOperation } from "../../dsl/Operation.js"
import { performedOutside, performedTwice, undeclaredOperation } from "../../model/DiagnosticCode.js"
import {
  NotPerformed,
  StepMisuse,
  StepThrew,
  type InvalidValue,
  type LeaseLost,
  type StoreError,
} from "../../model/Errors.js"
import { fingerprint, idempotencyKey } from "../../model/Ids.js"
import { canonicalText } from "../../model/internal/json.js"
import type { EffectRecord, EffectState, ParkRecord } from "../../model/Records.js"
import type { EffectWrite } from "../../store/CheckpointDriver.js"
import { fromPromise, lazySignal } from "./asynchrony.js"
import type { Attempt } from "./decide.js"
import { errorDetails, primary, property, unwrapThrown } from "./errorDetails.js"
import { shownMs, type RunSession } from "./session.js"

/** Time kept free at the end of a key window, for clocks that differ and for the way to the provider. */
const keyMarginMs = 5_000

/** Why an attempt ends whatever its function makes of it. */
export type Stop =
  | { readonly _tag: "Misuse"; readonly error: StepMisuse }
  | { readonly _tag: "Park"; readonly park: ParkRecord }
  | { readonly _tag: "Unknown"; readonly problem: string; readonly sends: number }
  | { readonly _tag: "Refused"; readonly error: InvalidValue }
  | { readonly _tag: "Lost"; readonly error: LeaseLost | StoreError }

export interface Outcome {
  readonly state: Exclude<EffectState, "intended">
  readonly text: string | null
  /** What the step's function is given: the decoded result, or the failure. */
  readonly value: unknown
}

/** What an attempt knows of its operation. */
export interface OperationState {
  performed: string | null
  intent: EffectWrite | null
  outcome: Outcome | null
  stop: Stop | null
  /** The perform that has begun and not ended, in whatever fiber its step has put it. */
  underWay: { readonly fiber: Fiber.RuntimeFiber<any, any>; readonly ended: Effect.Latch } | null
  /** The step has ended or is being interrupted: nothing more may be performed in its name. */
  closed: boolean
}

export const noOperation = (): OperationState => ({
  performed: null,
  intent: null,
  outcome: null,
  stop: null,
  underWay: null,
  closed: false,
})

/** Waits for a perform that its step did not wait for, so that no outcome is lost. */
export const performEnded = (state: OperationState): Effect.Effect<void> =>
  Effect.suspend(() => (state.underWay === null ? Effect.void : state.underWay.ended.await))

/** Ends the step's function. The loop looks at `stop`, not at what the function makes of this defect. */
class StepStopped {
  readonly _tag = "StepStopped"
}

const stopWith = (state: OperationState, stop: Stop): Effect.Effect<never> =>
  Effect.suspend(() => {
    state.stop ??= stop
    return Effect.die(new StepStopped())
  })

const lost = (state: OperationState) => (error: LeaseLost | StoreError) => stopWith(state, { _tag: "Lost", error })

interface Send {
  readonly session: RunSession
  readonly attempt: Attempt
  readonly state: OperationState
  readonly operation: AnyOperation
  readonly member: MemberOperation
}

const parkAt = (send: Send, reason: ParkRecord["reason"], problem: string): Effect.Effect<never> =>
  stopWith(send.state, { _tag: "Park", park: { reason, step: send.attempt.node.path, problem } })

/** Writes the intent, or that it is sent once more; nothing is sent before this is durable. */
const recordIntent = (send: Send, write: EffectWrite): Effect.Effect<void> =>
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

const readAgain = (send: Send): Effect.Effect<EffectRecord | null> => {
  const { session, attempt, state } = send
  const { namespace, runId } = session.lease
  return Effect.catchAll(
    session.persist(
      session.env.store.findEffect({ namespace, runId, path: attempt.node.path, generation: attempt.generation }),
    ),
    lost(state),
  )
}

/** Whether the key can still be trusted: the store's clock decides, before each send but the first. */
const checkWindow = (send: Send, known: EffectRecord): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { session, state, member } = send
    const { keyWindowMs, maxSends } = member.onUnknown
    if (known.sends >= maxSends) {
      return yield* parkAt(
        send,
        "OutcomeUnknown",
        `'${member.name}' was sent ${known.sends} times under key ${known.idempotencyKey} and never answered for certain; ask the provider whether it happened`,
      )
    }
    const now = yield* Effect.catchAll(session.persist(session.env.store.now), lost(state))
    if (now + member.timeoutMs + keyMarginMs > known.intentAt + keyWindowMs) {
      yield* parkAt(
        send,
        "OutcomeUnknown",
        `the provider's memory of key ${known.idempotencyKey} (${shownMs(keyWindowMs)}) may end before '${member.name}' is answered; ask the provider whether it happened`,
      )
    }
  })

const classify = (send: Send, exit: Exit.Exit<unknown, unknown>): Effect.Effect<Outcome> =>
  Effect.gen(function* () {
    const { member, state, operation } = send
    const place = `of operation '${member.name}'`
    if (Exit.isSuccess(exit)) {
      const given = member.case === null ? exit.value : { case: member.case, result: exit.value }
      const gated = yield* Effect.either(
        operation.codecs.success.gate(given, { place: `result ${place}`, maxLength: send.session.env.maxValueLength }),
      )
      if (Either.isRight(gated)) return { state: "succeeded", ...gated.right } satisfies Outcome
      const problem = `it was performed, and its answer does not fit its schema: ${gated.left.message}`
      return yield* parkAt(send, "OutputInvalid", problem)
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

const perform = (send: Send, intent: EffectWrite): Effect.Effect<Outcome> =>
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

/** An outcome that was recorded before: by an earlier attempt, or by a worker that had lost its lease. */
const replay = (send: Send, known: EffectRecord): Effect.Effect<Outcome> => {
  const { operation, state, attempt, member } = send
  const codec = known.state === "succeeded" ? operation.codecs.success : operation.codecs.failure
  const settled = (value: unknown): Outcome => ({
    state: known.state as Outcome["state"],
    text: known.outcome,
    value,
  })
  if (known.state === "notPerformed") {
    state.outcome = settled(new NotPerformed({ problem: `'${member.name}' was not performed` }))
    return Effect.succeed(state.outcome)
  }
  const place = `recorded outcome of '${known.operation}' in step '${attempt.node.name}'`
  const decoded = codec?.decode(known.outcome, place)
  if (decoded === undefined || Either.isLeft(decoded)) {
    return parkAt(send, "IncompatibleCheckpoint", decoded?.left.message ?? `${place} has no schema any more`)
  }
  state.outcome = settled(decoded.right)
  return Effect.succeed(state.outcome)
}

const resolve = (send: Send, known: EffectRecord, payloadHash: string): Effect.Effect<Outcome> =>
  Effect.gen(function* () {
    const { session, member, state } = send
    state.intent = known
    if (known.operation !== member.name || known.payloadHash !== payloadHash) {
      const differs = known.operation !== member.name ? `operation '${known.operation}'` : "another payload"
      return yield* parkAt(
        send,
        "IntentMismatch",
        `the intent under key ${known.idempotencyKey} records ${differs}, and the step would now send '${member.name}'; nothing was sent`,
      )
    }
    if (known.state !== "intended") return yield* replay(send, known)
    const foreign = known.claimToken !== session.lease.claimToken
    if (foreign) {
      const current = yield* readAgain(send)
      if (current !== null && current.state !== "intended") return yield* replay(send, current)
    }
    yield* checkWindow(send, known)
    const again: EffectWrite = { ...known, claimToken: session.lease.claimToken, sends: known.sends + 1 }
    yield* recordIntent(send, again)
    if (foreign) {
      // From the commit on, the earlier owner's outcome can't match any more; what it wrote just before still counts.
      const current = yield* readAgain(send)
      if (current !== null && current.state !== "intended") return yield* replay(send, current)
    }
    return yield* perform(send, again)
  })

const handOn = (outcome: Outcome): Effect.Effect<unknown, unknown> =>
  outcome.state === "succeeded" ? Effect.succeed(outcome.value) : Effect.fail(outcome.value)

const memberOf = (operation: AnyOperation, payload: unknown): MemberOperation | undefined =>
  operation.members.length === 1 && operation.members[0]!.case === null
    ? operation.members[0]
    : operation.members.find((member) => member.case === (payload as { case?: unknown } | null)?.case)

const begin = (send: Omit<Send, "member">, payload: unknown): Effect.Effect<unknown, unknown> =>
  Effect.gen(function* () {
    const { session, attempt, state, operation } = send
    const { namespace, runId } = session.lease
    const gated = yield* Effect.either(
      operation.codecs.payload.gate(payload, {
        place: `payload of step '${attempt.node.name}' for operation '${operation.name}'`,
        maxLength: session.env.maxValueLength,
      }),
    )
    if (Either.isLeft(gated)) return yield* stopWith(state, { _tag: "Refused", error: gated.left })
    const member = memberOf(operation, gated.right.value)!
    const payloadHash = fingerprint(canonicalText(gated.right.text))
    const full: Send = { ...send, member }
    if (attempt.effect !== null) return yield* handOn(yield* resolve(full, attempt.effect, payloadHash))
    const { generation, node } = attempt
    const intent: EffectWrite = {
      path: node.path,
      generation,
      operation: member.name,
      idempotencyKey: idempotencyKey({ namespace, runId, path: node.path, generation }),
      payload: gated.right.text,
      payloadHash,
      state: "intended",
      outcome: null,
      claimToken: session.lease.claimToken,
      sends: 1,
    }
    yield* recordIntent(full, intent)
    return yield* handOn(yield* perform(full, intent))
  })

/** The operation itself, not another one of its name: that one's payload has another schema. */
const declares = (node: Node, operation: AnyOperation): boolean =>
  node.kind === "perform" ? node.operation === operation : node.effects.includes(operation)

/** What `Op.perform(payload)` does in this attempt. */
export const performIn =
  (session: RunSession, attempt: Attempt, state: OperationState) =>
  (operation: AnyOperation, payload: unknown): Effect.Effect<unknown, unknown> =>
    Effect.withFiberRuntime((fiber) => {
      const step = attempt.node.name
      const refusal = (code: "CRN102" | "CRN109", problem: string) => new StepMisuse({ step, code, problem })
      const misuse = (error: StepMisuse) => {
        state.stop ??= { _tag: "Misuse", error }
        // The first one is heard out: dying at once would interrupt it halfway, and its outcome would be unknown.
        return Effect.zipRight(performEnded(state), stopWith(state, { _tag: "Misuse", error }))
      }
      const name = operation.name as string
      if (state.closed) return Effect.die(refusal("CRN109", performedOutside(name)))
      if (!declares(session.node(attempt.node.path), operation)) {
        return misuse(refusal("CRN102", undeclaredOperation(step, name)))
      }
      if (state.performed !== null) return misuse(refusal("CRN109", performedTwice(step, name)))
      state.performed = name
      const ended = Effect.unsafeMakeLatch()
      state.underWay = { fiber: fiber as Fiber.RuntimeFiber<any, any>, ended }
      return Effect.ensuring(
        begin({ session, attempt, state, operation }, payload),
        Effect.suspend(() => {
          state.underWay = null
          return ended.open
        }),
      )
    })
