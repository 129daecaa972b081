/**
 * What a step's perform does: the guard, then an intent of its own or the one that stands.
 *
 * - The guard: a second perform, or an undeclared one, never reaches a handler (CRN109, CRN102).
 * - X4: what is sent goes through `send`, what stands already through `resolve`: nothing else calls a handler.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as Fiber from "effect/Fiber"
import type { WorkNode } from "../../dsl/Definition.js"
import type { AnyOperation, MemberOperation } from "../../dsl/Operation.js"
import { performedOutside, performedTwice, undeclaredOperation } from "../../model/DiagnosticCode.js"
import { StepMisuse } from "../../model/Errors.js"
import { fingerprint, idempotencyKey } from "../../model/Ids.js"
import { canonicalText } from "../../model/internal/json.js"
import type { EffectWrite } from "../../store/CheckpointDriver.js"
import type { Attempt } from "./decide.js"
import { performEnded, stopWith, type OperationState, type Outcome, type Send } from "./operationState.js"
import { resolve } from "./resolve.js"
import { recordIntent, sendIntent } from "./send.js"
import type { RunSession } from "./session.js"

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
    const { generation } = attempt
    const intent: EffectWrite = {
      path: attempt.path,
      generation,
      operation: member.name,
      idempotencyKey: idempotencyKey({ namespace, runId, path: attempt.path, generation }),
      payload: gated.right.text,
      payloadHash,
      state: "intended",
      outcome: null,
      claimToken: session.lease.claimToken,
      sends: 1,
    }
    yield* recordIntent(full, intent)
    return yield* handOn(yield* sendIntent(full, intent))
  })

/** The operation itself, not another one of its name: that one's payload has another schema. */
const declares = (node: WorkNode, operation: AnyOperation): boolean =>
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
      if (!declares(session.node(attempt.path), operation)) {
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
