/**
 * The loop of one run: it asks `decide` what comes next and obeys (X1). Laws kept here:
 *
 * - X5: interruption is no outcome; an operation that it cut off stays an intent, which its policy resolves.
 * - X6: a refused commit ends this fiber before any further effect; an outcome that is known all the same is recorded
 *   without the fence, for the new owner to read.
 * - X7: a resume reads what is in scope, not the history.
 *
 * What an attempt came to is committed by `attemptEnds`, the end of the run by `completion` (X2, X3); how a run waits
 * or leaves stands in `leave` (X8).
 */
import * as Effect from "effect/Effect"
import type { ParkRecord, RunRecord } from "../../model/Records.js"
import { runAttempt, type AttemptEnd } from "./attempt.js"
import { afterFailure, afterRejection, afterStop, afterSuccess } from "./attemptEnds.js"
import { complete } from "./completion.js"
import { decide, type Attempt } from "./decide.js"
import { again, leave, type Failure, type LoopEnd, type Turn } from "./leave.js"
import { noOperation, recordKnown, type OperationState } from "./operationState.js"
import { inProcessMs } from "./retry.js"
import { persisting, RunSession, type RunEnv } from "./session.js"
import { runTransaction } from "./transaction.js"
import { isTransaction } from "./transactionLimits.js"

/** What follows from an end that committed nothing yet. */
const afterEnd = (
  session: RunSession,
  attempt: Attempt,
  end: AttemptEnd,
  state: OperationState,
): Effect.Effect<Turn, Failure> => {
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

const obey = (session: RunSession, attempt: Attempt): Effect.Effect<Turn, Failure> =>
  Effect.suspend(() => {
    const state = noOperation()
    if (isTransaction(attempt.node)) {
      return Effect.flatMap(runTransaction(session, attempt), (ended) =>
        ended._tag === "Committed" ? Effect.succeed(ended.turn) : afterEnd(session, attempt, ended.end, state),
      )
    }
    return runAttempt(session, attempt, state).pipe(
      Effect.flatMap((end) => afterEnd(session, attempt, end, state)),
      // Refused or interrupted: the outcome outlives the attempt.
      Effect.onError(() => recordKnown(session, state)),
    )
  })

/**
 * How long to wait before an attempt: its own backoff, and, where an earlier owner's operation may still be under way,
 * the end of that owner's lease plus the operation's timeout (X5).
 */
const waitMs = (session: RunSession, attempt: Attempt, nowMs: number): number => {
  const own = attempt.notBefore === null ? 0 : attempt.notBefore - nowMs
  const { effect, node } = attempt
  if (effect === null || effect.state !== "intended" || effect.claimToken === session.lease.claimToken) {
    return Math.max(0, own)
  }
  const timeoutMs = Math.max(...node.operations.map((operation) => operation.timeoutMs))
  return Math.max(0, own, session.run.previousUntil + timeoutMs - nowMs)
}

const turn = (session: RunSession): Effect.Effect<Turn, Failure> =>
  Effect.gen(function* () {
    const { env } = session
    const decision = decide(env.plan, session)
    switch (decision._tag) {
      case "Finished":
        return { _tag: "Final" } as const
      case "Complete":
        return yield* complete(session)
      case "Failed":
        yield* session.commit({ run: leave("failed", decision.failure.step, { failure: decision.failure }) })
        return { _tag: "Final" } as const
      case "Incompatible": {
        const parked: ParkRecord = { reason: "IncompatibleCheckpoint", step: decision.step, problem: decision.problem }
        yield* session.commit({ run: leave("review", decision.step, { parked }) })
        yield* Effect.logWarning(`parked for a person: ${decision.problem}`)
        return { _tag: "Parked" } as const
      }
      case "Attempt": {
        // W7: a worker that stops begins nothing new.
        if (env.draining()) return { _tag: "Drained" } as const
        const needsClock = decision.notBefore !== null || decision.effect !== null
        const delayMs = needsClock ? waitMs(session, decision, yield* session.persist(env.store.now)) : 0
        if (delayMs > inProcessMs) return yield* again(session, decision, delayMs, { effects: [], attempts: [] })
        if (delayMs > 0) yield* Effect.sleep(delayMs)
        return yield* obey(session, decision)
      }
    }
  })

/**
 * Runs a claimed run until it leaves this worker.
 *
 * *Errors.* `LeaseLost`: it goes on elsewhere. `StoreError`: the store failed for longer than the lease could bear; the
 * lease ends by itself and another worker goes on.
 */
export const runLoop = (env: RunEnv, run: RunRecord): Effect.Effect<LoopEnd, Failure> =>
  Effect.gen(function* () {
    yield* env.faults.reach("afterClaim", { runId: run.runId, step: "", attempt: 0 })
    const load = persisting(env, env.store.load(run.namespace, run.runId))
    const state = yield* Effect.catchTag(load, "RunNotFound", () =>
      // Claimed a moment ago and gone: purged. There is nothing left to own.
      Effect.succeed(null),
    )
    if (state === null) return { _tag: "Final" } as const
    const session = new RunSession(env, run, state)
    const next = decide(env.plan, session)
    // X7: of a resumed run only the step that comes next can have left anything behind; a new run has nothing at all.
    if (next._tag === "Attempt" && session.seq > 0) {
      session.addOpen(yield* session.persist(env.store.loadOpen(run.namespace, run.runId, [next.node.path])))
    }
    if (run.recoveries > env.maxRecoveries) {
      const problem = `it brought down its worker ${run.recoveries} times without progress; look at the step before you resume it`
      // The step that was about to be tried, not the last one that went well.
      const step = next._tag === "Attempt" ? next.node.path : (run.cursor ?? "")
      const parked: ParkRecord = { reason: "TooManyRecoveries", step, problem }
      yield* session.commit({ run: leave("review", step, { parked }) })
      return { _tag: "Parked" } as const
    }
    return yield* session.logged(
      Effect.gen(function* () {
        for (;;) {
          const end = yield* turn(session)
          if (end !== null) return end
        }
      }),
    )
  })
