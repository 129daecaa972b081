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
import type { RunNotFound, StoreError } from "../../model/Errors.js"
import type { EffectRecord, FailureRecord, ParkRecord, RunRecord, RunState } from "../../model/Records.js"
import { isGuarded } from "./arrivals.js"
import { runAttempt, type AttemptEnd } from "./attempt.js"
import { afterFailure, afterRejection, afterStop, afterSuccess } from "./attemptEnds.js"
import { complete } from "./completion.js"
import { compensable, decide, type Attempt } from "./decide.js"
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

const obey = (session: RunSession, attempt: Attempt): Effect.Effect<Turn, Failure> => {
  const state = noOperation()
  if (isTransaction(attempt.node)) {
    return Effect.flatMap(runTransaction(session, attempt), (ended) =>
      ended._tag === "Committed" ? Effect.succeed(ended.turn) : afterEnd(session, attempt, ended.end, state),
    )
  }
  const obeyed = Effect.flatMap(runAttempt(session, attempt, state), (end) => afterEnd(session, attempt, end, state))
  // Refused or interrupted: the outcome outlives the attempt.
  return attempt.node.operations.length === 0 ? obeyed : Effect.onError(obeyed, () => recordKnown(session, state))
}

/** What a cancel has cut off under this very lease: when, by the store's clock, and which intents stood then. */
interface CutOff {
  readonly at: number
  readonly effects: ReadonlySet<EffectRecord>
}

/** Until when an operation of this intent was begun for certain; null where that is known without waiting. */
const begunUntil = (session: RunSession, effect: EffectRecord, cutOff: CutOff | null): number | null => {
  if (effect.claimToken !== session.lease.claimToken) return session.run.previousUntil
  return cutOff?.effects.has(effect) === true ? cutOff.at : null
}

/**
 * How long to wait before an attempt: its own backoff, and, where an operation that was cut off may still be under way, the
 * end of that owner's lease, or the moment at which a cancel cut it off here, plus the operation's timeout (X5).
 */
const waitMs = (session: RunSession, attempt: Attempt, nowMs: number, cutOff: CutOff | null): number => {
  const own = attempt.notBefore === null ? 0 : attempt.notBefore - nowMs
  const { effect, node } = attempt
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
    if (delayMs > inProcessMs) return yield* again(session, attempt, delayMs, { effects: [], attempts: [] })
    if (delayMs > 0) yield* Effect.sleep(delayMs)
    // W6: what a step reads may be paid for, and could not be kept while the store is away.
    if (reads(attempt)) yield* env.buffer.calm
    return null
  })

const begin = (session: RunSession, attempt: Attempt, cutOff: CutOff | null): Effect.Effect<Turn, Failure> => {
  // W7: a worker that stops begins nothing new.
  if (session.env.draining()) return Effect.succeed({ _tag: "Drained" })
  if (attempt.index >= 0) session.from = attempt.index
  if (attempt.notBefore === null && attempt.effect === null && !reads(attempt)) return obey(session, attempt)
  return Effect.flatMap(wait(session, attempt, cutOff), (end) =>
    end === null ? obey(session, attempt) : Effect.succeed(end),
  )
}

/** X5: the run is canceled by a commit of its owner; what it did is taken back from there on. */
const cancel = (session: RunSession, step: string): Effect.Effect<Turn, Failure> =>
  Effect.gen(function* () {
    const problem = session.cancelReason ?? "somebody asked for it"
    const failure: FailureRecord = { kind: "canceled", step, problem }
    const takesBack = compensable(session.env.plan, session) !== null
    const run = takesBack ? session.running(step) : leave("canceled", step)
    yield* session.reach("beforeCommit", step, 0)
    yield* session.commit({ run: { ...run, failure } })
    yield* session.reach("afterCommit", step, 0)
    return takesBack ? null : ({ _tag: "Final" } as const)
  })

const turn = (session: RunSession, cutOff: CutOff | null): Effect.Effect<Turn, Failure> => {
  const { arrivals, plan } = session.env
  // X5: a loop that is being interrupted begins nothing more.
  if (arrivals.cutOff) return Effect.never
  // X13: between this look at what has arrived and what is begun lies nothing that another fiber could use.
  session.heed()
  const decision = decide(plan, session)
  arrivals.guarded = isGuarded(session, decision)
  switch (decision._tag) {
    case "Finished":
      return Effect.succeed({ _tag: "Final" })
    case "Complete":
      return complete(session)
    case "Cancel":
      return cancel(session, decision.step)
    case "Failed": {
      const { failure } = decision
      const status = failure.kind === "canceled" ? "canceled" : "failed"
      return Effect.as(session.commit({ run: leave(status, failure.step, { failure }) }), { _tag: "Final" })
    }
    case "Incompatible": {
      const { problem, step } = decision
      const parked: ParkRecord = { reason: "IncompatibleCheckpoint", step, problem }
      return session
        .commit({ run: leave("review", step, { parked }) })
        .pipe(Effect.zipRight(Effect.logWarning(`parked for a person: ${problem}`)), Effect.as({ _tag: "Parked" }))
    }
    case "Attempt":
      return begin(session, decision, cutOff)
  }
}

/**
 * Runs a claimed run until it leaves this worker.
 *
 * *Shape.* `wasCutOff`: a loop of the same run and lease was interrupted just now; what it sent may still be under way.
 *
 * *Errors.* `LeaseLost`: it goes on elsewhere. `StoreError`: the store failed for longer than the lease could bear; the
 * lease ends by itself and another worker goes on.
 */
export const runLoop = (env: RunEnv, run: RunRecord, wasCutOff = false): Effect.Effect<LoopEnd, Failure> =>
  Effect.gen(function* () {
    yield* env.faults.reach("afterClaim", { runId: run.runId, step: "", attempt: 0 })
    // What the loop that was cut off has accepted is in the store before anybody reads there.
    if (wasCutOff) yield* env.buffer.durable(env.queue, env.queue.acceptedSeq)
    // A new run has nothing but its row.
    const load: Effect.Effect<RunState, RunNotFound | StoreError> =
      run.seq === 0 && run.failure === null && !wasCutOff
        ? Effect.succeed({ run, steps: [] })
        : persisting(env, env.store.load(run.namespace, run.runId))
    const state = yield* Effect.catchTag(load, "RunNotFound", () =>
      // Claimed a moment ago and gone: purged. There is nothing left to own.
      Effect.succeed(null),
    )
    if (state === null) return { _tag: "Final" } as const
    // Interrupted as it left: it is somebody else's by now, or nobody's.
    if (state.run.fence !== run.fence || state.run.claimToken !== run.claimToken) return { _tag: "Drained" } as const
    const session = new RunSession(env, run, state)
    // Whether it can be canceled follows from what is open.
    const next = decide(env.plan, { ...session, cancelAt: null })
    // X7: of a resumed run only the step that comes next can have left anything behind; a new run has nothing at all.
    if (next._tag === "Attempt" && session.seq > 0) {
      session.addOpen(yield* session.persist(env.store.loadOpen(run.namespace, run.runId, [next.node.path])))
    }
    const cutOff = wasCutOff
      ? { at: yield* session.persist(env.store.now), effects: new Set([...session.effects.values()].flat()) }
      : null
    if (run.recoveries > env.maxRecoveries && decide(env.plan, session)._tag !== "Cancel") {
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
          const end = yield* Effect.suspend(() => turn(session, cutOff))
          if (end !== null) return end
        }
      }),
    )
  })
