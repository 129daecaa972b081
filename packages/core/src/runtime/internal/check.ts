/**
 * Asks an operation's check whether an earlier send happened (`checkFirst`).
 *
 * - X6: asked only after the intent is this worker's own again and was read once more: what is recorded is not asked for.
 * - A check that fails, does not answer in time or says neither leaves the outcome unknown: it is asked again.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { EffectWrite } from "../../store/CheckpointDriver.js"
import { errorDetails, primary, property, unwrapThrown } from "./errorDetails.js"
import { stopWith, type Outcome, type Send } from "./operationState.js"
import { answerOf, callHandler, happened, recordedPayload } from "./send.js"
import { shownMs } from "./session.js"

/** The outcome, or null if it did not happen. */
export const checkOutcome = (send: Send, intent: EffectWrite): Effect.Effect<Outcome | null> =>
  Effect.gen(function* () {
    const { state, member } = send
    const unknown = (problem: string) =>
      stopWith(state, { _tag: "Unknown", problem: `the check of '${member.name}' ${problem}`, sends: intent.sends })
    const timeout = Symbol("timeout")
    const payload = yield* recordedPayload(send, intent)
    const exit = yield* answerOf(send, callHandler(send, "check", intent, payload), timeout)
    if (Exit.isFailure(exit)) {
      const error = unwrapThrown(primary(exit.cause).error)
      return yield* unknown(
        error === timeout
          ? `did not answer within ${shownMs(member.timeoutMs)}`
          : `failed: ${errorDetails(error).message}`,
      )
    }
    switch (property(exit.value, "happened")) {
      case true:
        state.outcome = yield* happened(send, property(exit.value, "result"))
        return state.outcome
      case false:
        return null
      default:
        return yield* unknown("said neither happened: true nor happened: false")
    }
  })
