/**
 * An attempt from its beginning to what it came to.
 *
 * - X5: before what may have happened is resolved, whoever began it must have come to an end.
 * - X8: delays over a second are durable.
 */
import * as Effect from "effect/Effect"
import type { EffectRecord } from "../../model/Records.js"
import { mayBeAccepted, takeAccepted } from "./accepted.js"
import { runAttempt, type AttemptEnd } from "./attempt.js"
import { afterFailure, afterRejection, afterStop, afterSuccess } from "./attemptEnds.js"
import type { CutOff } from "./course.js"
import type { Attempt } from "./decide.js"
import { again, type Failure, type Turn } from "./leave.js"
import { told } from "./emitting.js"
import { noOperation, recordKnown, type OperationState } from "./operationState.js"
import { inProcessMs } from "./retry.js"
import type { RunSession } from "./session.js"
import { asEffect, andThen, type Soon } from "./soon.js"
import { runTransaction } from "./transaction.js"
import { isTransaction } from "./transactionLimits.js"

/** What follows from an end that committed nothing yet. */
const afterEnd = (
  session: RunSession,
  attempt: Attempt,
  end: AttemptEnd,
  state: OperationState,
): Soon<Turn, Failure> => {
  switch (end._tag) {
    case "Passed":
      return afterSuccess(session, attempt, end, state)
    case "Failed":
      return afterFailure(session, attempt, end, state)
    case "Rejected":
      return afterRejection(session, attempt, end, state)
    case "Stopped":
      return afterStop(session, attempt, end.stop, state)
  }
}

const obey = (session: RunSession, attempt: Attempt): Soon<Turn, Failure> => {
  const state = noOperation()
  if (isTransaction(attempt.node)) {
    return Effect.flatMap(runTransaction(session, attempt), (ended) =>
      asEffect(
        ended._tag === "Committed"
          ? told(session, attempt, true, ended.turn)
          : told(session, attempt, false, afterEnd(session, attempt, ended.end, state)),
      ),
    )
  }
  const obeyed = andThen(runAttempt(session, attempt, state), (end) =>
    told(session, attempt, end._tag === "Passed", afterEnd(session, attempt, end, state)),
  )
  // Refused or interrupted: the outcome outlives the attempt.
  return attempt.node.operations.length === 0
    ? obeyed
    : Effect.onError(asEffect(obeyed), () => recordKnown(session, state))
}

/** Until when an operation of this intent was begun for certain; null where that is known without waiting. */
const begunUntil = (session: RunSession, effect: EffectRecord, cutOff: CutOff | null): number | null => {
  if (effect.claimToken !== session.lease.claimToken) return session.run.previousUntil
  return cutOff?.effects.has(effect) === true ? cutOff.at : null
}

/**
 * How long to wait before an attempt: its own backoff, by this process's clock where it has failed here just now; and, where an operation that was cut off may still be under way, the
 * end of that owner's lease, or the moment at which a cancel cut it off here, plus the operation's timeout (X5).
 */
const waitMs = (session: RunSession, attempt: Attempt, nowMs: number, cutOff: CutOff | null): number => {
  const { effect, node, notBefore } = attempt
  const due = session.timers.get(attempt.path)
  const own = due !== undefined ? Math.ceil(due - session.nowMs) : notBefore === null ? 0 : notBefore - nowMs
  const until = effect?.state === "intended" ? begunUntil(session, effect, cutOff) : null
  if (until === null) return Math.max(0, own)
  const timeoutMs = Math.max(...node.operations.map((operation) => operation.timeoutMs))
  return Math.max(0, own, until + timeoutMs - nowMs)
}

const reads = ({ node }: Attempt): boolean => node.effects.some(({ kind }) => kind === "read")

/** Waits for what an attempt has to wait for, here or elsewhere; null once it may begin. */
const wait = (session: RunSession, attempt: Attempt, cutOff: CutOff | null): Effect.Effect<Turn, Failure> =>
  Effect.gen(function* () {
    const { env } = session
    const needsClock = attempt.notBefore !== null || attempt.effect !== null
    const delayMs = needsClock ? waitMs(session, attempt, yield* session.persist(env.store.now), cutOff) : 0
    session.timers.delete(attempt.path)
    if (delayMs > inProcessMs) return yield* again(session, attempt, delayMs, { effects: [], attempts: [] })
    if (delayMs > 0) yield* Effect.sleep(delayMs)
    // W6: what a step reads may be paid for, and could not be kept while the store is away.
    if (reads(attempt)) yield* env.buffer.calm
    return null
  })

/** Runs the attempt; or, where a person has given the output that it could not, takes that. */
const attemptOrAccepted = (session: RunSession, attempt: Attempt): Soon<Turn, Failure> =>
  mayBeAccepted(attempt)
    ? andThen(takeAccepted(session, attempt), (taken) => (taken === undefined ? obey(session, attempt) : taken))
    : obey(session, attempt)

/** Begins an attempt, once it may. */
export const begin = (session: RunSession, attempt: Attempt, cutOff: CutOff | null): Soon<Turn, Failure> => {
  // W7: a worker that stops begins nothing new.
  if (session.env.draining()) return { _tag: "Drained" }
  if (attempt.notBefore === null && attempt.effect === null && !reads(attempt))
    return attemptOrAccepted(session, attempt)
  return andThen(wait(session, attempt, cutOff), (end) => (end === null ? attemptOrAccepted(session, attempt) : end))
}
