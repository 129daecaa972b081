/**
 * Resolves an intent that was recorded before: by an earlier attempt, or by an earlier owner of the run.
 *
 * - X4: another operation or payload than the recorded one is never sent in its place.
 * - X6: before an unknown outcome is resolved, what another worker may have recorded of it is read again.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { NotPerformed } from "../../model/Errors.js"
import type { EffectRecord } from "../../model/Records.js"
import type { EffectWrite } from "../../store/CheckpointDriver.js"
import { checkOutcome } from "./check.js"
import { lost, parkAt, type Outcome, type Send } from "./operationState.js"
import { recordIntent, sendIntent } from "./send.js"
import { shownMs } from "./session.js"

/** Time kept free at the end of a key window, for clocks that differ and for the way to the provider. */
const keyMarginMs = 5_000

const readAgain = (send: Send): Effect.Effect<EffectRecord | null> => {
  const { session, attempt, state } = send
  const { namespace, runId } = session.lease
  return Effect.catchAll(
    session.persist(
      session.env.store.findEffect({ namespace, runId, path: attempt.path, generation: attempt.generation }),
    ),
    lost(state),
  )
}

/**
 * Whether the policy still sends or asks by itself, or leaves it to a person. The store's clock decides whether the key
 * can be trusted, before each send but the first.
 */
const checkLimits = (send: Send, known: EffectRecord): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { session, state, member } = send
    if (member.onUnknown.policy === "review") {
      return yield* parkAt(
        send,
        "OutcomeUnknown",
        `'${member.name}' may have happened under key ${known.idempotencyKey}, and its policy never sends it again; ask the provider, then answer with Cairn.answer`,
      )
    }
    const { keyWindowMs, maxSends, policy } = member.onUnknown
    if (known.sends >= maxSends) {
      const what = policy === "checkFirst" ? "sent or asked about" : "sent"
      return yield* parkAt(
        send,
        "OutcomeUnknown",
        `'${member.name}' was ${what} ${known.sends} times under key ${known.idempotencyKey} and never answered for certain; ask the provider whether it happened`,
      )
    }
    if (keyWindowMs === null) return
    const now = yield* Effect.catchAll(session.persist(session.env.store.now), lost(state))
    if (now + member.timeoutMs + keyMarginMs > known.intentAt + keyWindowMs) {
      yield* parkAt(
        send,
        "OutcomeUnknown",
        `the provider's memory of key ${known.idempotencyKey} (${shownMs(keyWindowMs)}) may end before '${member.name}' is answered; ask the provider whether it happened`,
      )
    }
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

/** What becomes of an intent that stands already: read, asked about, sent again, or left to a person. */
export const resolve = (send: Send, known: EffectRecord, payloadHash: string): Effect.Effect<Outcome> =>
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
    yield* checkLimits(send, known)
    const again: EffectWrite = { ...known, claimToken: session.lease.claimToken, sends: known.sends + 1 }
    yield* recordIntent(send, again)
    if (foreign) {
      // From the commit on, the earlier owner's outcome can't match any more; what it wrote just before still counts.
      const current = yield* readAgain(send)
      if (current !== null && current.state !== "intended") return yield* replay(send, current)
    }
    if (member.onUnknown.policy === "checkFirst") {
      const found = yield* checkOutcome(send, again)
      if (found !== null) return found
    }
    return yield* sendIntent(send, again)
  })
