/**
 * The loop of one run: it asks `decide` what comes next and obeys (X1). Laws kept here:
 *
 * - X2: commit before advance. A step's value is handed on when its record is durable, never before.
 * - X3: what is committed has passed the gate.
 * - X5: interruption is no outcome; an operation that it cut off stays an intent, which its policy resolves.
 * - X6: a refused commit ends this fiber before any further effect; an outcome that is known all the same is recorded
 *   without the fence, for the new owner to read.
 * - X8: delays over a second are durable, by the store's clock.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import { codecOf, type Gated } from "../../model/Codec.js"
import type { LeaseLost, StoreError } from "../../model/Errors.js"
import { effectOf } from "../../model/Plan.js"
import type { AttemptRecord, FailureRecord, ParkRecord, RunRecord, StepRecord } from "../../model/Records.js"
import type { Commit } from "../../store/CheckpointStore.js"
import type { EffectWrite } from "../../store/CheckpointDriver.js"
import { runAttempt, type AttemptEnd } from "./attempt.js"
import { stepContext } from "./context.js"
import { decide, type Attempt } from "./decide.js"
import { errorDetails, unwrapThrown } from "./errorDetails.js"
import { noOperation, type OperationState, type Stop } from "./perform.js"
import { inProcessMs, resendDelayMs, retryDelayMs } from "./retry.js"
import { persisting, RunSession, shownMs, type RunEnv } from "./session.js"

/** How a run left this worker. `wakeInMs`: when it is due again, null for not by itself. */
export type LoopEnd =
  | { readonly _tag: "Final" }
  | { readonly _tag: "Parked" }
  | { readonly _tag: "Sleeping"; readonly wakeInMs: number }
  | { readonly _tag: "Drained" }

type Failure = LeaseLost | StoreError

/** What a turn of the loop says: go on, or the run has left. */
type Turn = LoopEnd | null

const leave = (status: RunRecord["status"], cursor: string, rest: Partial<Commit["run"]> = {}): Commit["run"] => ({
  status,
  cursor,
  wakeInMs: null,
  output: null,
  failure: null,
  parked: null,
  release: true,
  ...rest,
})

// ---- the operation's row ---------------------------------------------------------------------------------------

/** The row of a settled operation, to be committed with whatever the attempt came to. */
const settledEffect = (state: OperationState): ReadonlyArray<EffectWrite> =>
  state.intent === null || state.outcome === null
    ? []
    : [{ ...state.intent, state: state.outcome.state, outcome: state.outcome.text }]

/** X6: what this worker knows is not thrown away when it may no longer write the run. */
const recordKnown = (session: RunSession, state: OperationState): Effect.Effect<void> => {
  const { intent, outcome } = state
  if (intent === null || outcome === null) return Effect.void
  return session.env.store
    .recordOutcome({
      namespace: session.lease.namespace,
      runId: session.lease.runId,
      path: intent.path,
      generation: intent.generation,
      idempotencyKey: intent.idempotencyKey,
      payloadHash: intent.payloadHash,
      claimToken: intent.claimToken,
      state: outcome.state,
      outcome: outcome.text,
    })
    .pipe(
      Effect.retry({ times: 3, schedule: Schedule.exponential("50 millis"), while: (error) => error.isRetryable }),
      // The store is away as well: the intent stays unknown, and the policy of the operation resolves it.
      Effect.catchAll((error) => Effect.logWarning("a known outcome could not be recorded", error)),
      Effect.asVoid,
    )
}

// ---- failures --------------------------------------------------------------------------------------------------

const failureRecord = (session: RunSession, attempt: Attempt, error: unknown, state: OperationState) =>
  Effect.gen(function* () {
    const step = attempt.node.path
    const thrown = unwrapThrown(error)
    const details = errorDetails(thrown)
    const problem = details.message === "" ? details.name : details.message
    if (attempt.node.kind === "perform" && state.outcome?.state === "failed") {
      const operation = attempt.node.effects[0]!.name
      return { kind: "declared", step, operation, value: state.outcome.text, problem } satisfies FailureRecord
    }
    const { failure } = session.env.definition
    if (failure !== null) {
      const gated = yield* Effect.either(codecOf(failure).gate(thrown, { place: `failure of step '${step}'` }))
      if (Either.isRight(gated)) {
        return { kind: "declared", step, operation: null, value: gated.right.text, problem } satisfies FailureRecord
      }
    }
    return { kind: "undeclared", step, problem, details } satisfies FailureRecord
  })

/** Commits between the two fault points that surround every commit of a step. */
const committed = (session: RunSession, attempt: Attempt, parts: Parameters<RunSession["commit"]>[0]) =>
  Effect.gen(function* () {
    yield* session.reach("beforeCommit", attempt.node.name, attempt.attempt)
    yield* session.commit(parts)
    yield* session.reach("afterCommit", attempt.node.name, attempt.attempt)
  })

const attemptRow = (
  attempt: Attempt,
  kind: AttemptRecord["kind"],
  error: unknown,
  retryInMs: number | null,
  output: string | null = null,
): Commit["attempts"][number] => ({
  path: attempt.node.path,
  attempt: attempt.attempt,
  kind,
  error: errorDetails(unwrapThrown(error)),
  output,
  retryInMs,
})

/** Waits here if the delay is short, and hands the run back with a wake-up time if it is not (X8). */
const again = (
  session: RunSession,
  attempt: Attempt,
  delayMs: number,
  rows: Pick<Commit, "effects" | "attempts">,
): Effect.Effect<Turn, Failure> =>
  Effect.gen(function* () {
    const short = delayMs <= inProcessMs
    const run = short ? session.running(attempt.node.path) : leave("sleeping", attempt.node.path, { wakeInMs: delayMs })
    if (!short || rows.effects.length + rows.attempts.length > 0) yield* committed(session, attempt, { run, ...rows })
    if (!short) return { _tag: "Sleeping", wakeInMs: delayMs } as const
    yield* Effect.sleep(delayMs)
    return null
  })

const park = (
  session: RunSession,
  attempt: Attempt,
  parked: ParkRecord,
  rows: Partial<Pick<Commit, "effects" | "attempts">>,
) =>
  Effect.gen(function* () {
    yield* committed(session, attempt, { run: leave("review", attempt.node.path, { parked }), ...rows })
    yield* Effect.logWarning(`parked for a person at step '${parked.step}' (${parked.reason}): ${parked.problem}`)
    return { _tag: "Parked" } as const
  })

const failRun = (
  session: RunSession,
  attempt: Attempt,
  error: unknown,
  state: OperationState,
  kind: AttemptRecord["kind"],
  output: string | null = null,
) =>
  Effect.gen(function* () {
    const { effect, node } = attempt
    if (effect?.state === "intended" && state.outcome === null) {
      // X5: no run fails over an operation that may have happened.
      const problem = `the step failed before it could resolve '${effect.operation}' under key ${effect.idempotencyKey}, whose outcome is unknown: ${errorDetails(unwrapThrown(error)).message}`
      return yield* park(
        session,
        attempt,
        { reason: "OutcomeUnknown", step: node.path, problem },
        { attempts: [attemptRow(attempt, kind, error, null, output)] },
      )
    }
    const failure = yield* failureRecord(session, attempt, error, state)
    yield* committed(session, attempt, {
      run: leave("failed", attempt.node.path, { failure }),
      effects: settledEffect(state),
      attempts: [attemptRow(attempt, kind, error, null, output)],
    })
    return { _tag: "Final" } as const
  })

// ---- the ends of an attempt ------------------------------------------------------------------------------------

const afterFailure = (
  session: RunSession,
  attempt: Attempt,
  end: Extract<AttemptEnd, { _tag: "Failed" }>,
  state: OperationState,
): Effect.Effect<Turn, Failure> =>
  Effect.gen(function* () {
    const known = state.outcome?.state
    const kind = known === "failed" || known === "notPerformed" ? "refused" : "failed"
    const node = session.node(attempt.node.path)
    const thrown = unwrapThrown(end.error)
    const delayMs = retryDelayMs({
      node: attempt.node,
      when: known === "notPerformed" ? undefined : node.options.retry?.when,
      failures: attempt.failures + 1,
      error: thrown,
      defect: end.defect,
      random: yield* Random.next,
    })
    if (delayMs === null) return yield* failRun(session, attempt, end.error, state, kind)
    return yield* again(session, attempt, delayMs, {
      effects: settledEffect(state),
      attempts: [attemptRow(attempt, kind, end.error, delayMs)],
    })
  })

const afterRejection = (
  session: RunSession,
  attempt: Attempt,
  end: Extract<AttemptEnd, { _tag: "Rejected" }>,
  state: OperationState,
): Effect.Effect<Turn, Failure> =>
  Effect.gen(function* () {
    const { retries, then } = attempt.node.onInvalid
    const effects = settledEffect(state)
    if (attempt.rejections < retries) {
      return yield* again(session, attempt, 0, {
        effects,
        attempts: [attemptRow(attempt, "rejected", end.error, 0, end.raw)],
      })
    }
    if (then === "fail") return yield* failRun(session, attempt, end.error, state, "rejected", end.raw)
    const parked: ParkRecord = { reason: "OutputInvalid", step: attempt.node.path, problem: end.error.message }
    return yield* park(session, attempt, parked, {
      effects,
      attempts: [attemptRow(attempt, "rejected", end.error, null, end.raw)],
    })
  })

const afterStop = (
  session: RunSession,
  attempt: Attempt,
  stop: Stop,
  state: OperationState,
): Effect.Effect<Turn, Failure> => {
  switch (stop._tag) {
    case "Lost":
      return Effect.fail(stop.error)
    case "Park":
      return park(session, attempt, stop.park, { effects: settledEffect(state) })
    case "Misuse":
    case "Refused":
      return failRun(session, attempt, stop.error, state, "failed")
    case "Unknown":
      // No attempt is counted: retries cover only what is known not to have happened. The intent stands, and the next
      // turn resolves it by its policy.
      return Effect.gen(function* () {
        const delayMs = resendDelayMs(stop.sends, yield* Random.next)
        yield* Effect.logWarning(
          `the outcome of step '${attempt.node.name}' is unknown (${stop.problem}); it is resolved in ${shownMs(delayMs)}`,
        )
        return yield* again(session, attempt, delayMs, { effects: [], attempts: [] })
      })
  }
}

// ---- the end of the run ----------------------------------------------------------------------------------------

/** The workflow's output, computed from committed results and gated like every output. */
const completion = (session: RunSession): Effect.Effect<Either.Either<Gated<unknown>, unknown>> =>
  Effect.suspend(() => {
    const { output, input } = session.env.definition
    if (output === null) return Effect.succeed(Either.right({ value: undefined, text: null }))
    let unreadable: unknown = null
    const context = stepContext({
      input: { text: session.run.input, codec: codecOf(input) },
      available: session.available,
      onUnreadable: (_, error) => (unreadable = error),
    })
    return Effect.try({ try: () => output.select(context), catch: (thrown) => unreadable ?? thrown }).pipe(
      Effect.flatMap((given) =>
        codecOf(output.schema).gate(given, {
          place: "output of the workflow",
          maxLength: session.env.maxValueLength,
        }),
      ),
      Effect.either,
    )
  })

const complete = (session: RunSession): Effect.Effect<LoopEnd, Failure> =>
  Effect.gen(function* () {
    const output = yield* completion(session)
    if (Either.isRight(output)) {
      yield* session.commit({ run: leave("completed", "", { output: output.right.text }) })
    } else {
      const details = errorDetails(output.left)
      const failure: FailureRecord = { kind: "undeclared", step: "(output)", problem: details.message, details }
      yield* session.commit({ run: leave("failed", "", { failure }) })
    }
    return { _tag: "Final" } as const
  })

const afterSuccess = (
  session: RunSession,
  attempt: Attempt,
  end: Extract<AttemptEnd, { _tag: "Passed" }>,
  state: OperationState,
): Effect.Effect<Turn, Failure> =>
  Effect.gen(function* () {
    const { node } = attempt
    const record = {
      path: node.path,
      seq: session.seq + 1,
      result: end.output.text,
      effect: effectOf(node),
      idempotencyKey: state.intent?.idempotencyKey ?? null,
      attempts: attempt.attempt,
      durationMs: end.durationMs,
    }
    const last = attempt.index === session.env.plan.nodes.length - 1
    // The last step and the end of the run are one commit, unless the output fails: then the step is kept all the same.
    const output = last ? yield* lastOutput(session, record) : null
    const run =
      output !== null && Either.isRight(output)
        ? leave("completed", "", { output: output.right.text })
        : session.running(node.path)
    yield* committed(session, attempt, { run, steps: [record], effects: settledEffect(state) })
    yield* session.env.onProgress
    return run.status === "completed" ? ({ _tag: "Final" } as const) : null
  })

/** The output as it will be once the last step is committed. */
const lastOutput = (session: RunSession, record: Omit<StepRecord, "committedAt">) =>
  Effect.suspend(() => {
    const { name } = session.env.plan.nodes.at(-1)!
    session.addStep({ ...record, committedAt: 0 })
    return Effect.ensuring(
      completion(session),
      Effect.sync(() => {
        session.steps.delete(record.path)
        session.available.delete(name)
      }),
    )
  })

// ---- the loop --------------------------------------------------------------------------------------------------

const obey = (session: RunSession, attempt: Attempt): Effect.Effect<Turn, Failure> =>
  Effect.suspend(() => {
    const state = noOperation()
    return runAttempt(session, attempt, state).pipe(
      Effect.flatMap((end) => {
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
      }),
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
      const parked: ParkRecord = { reason: "TooManyRecoveries", step: run.cursor ?? "", problem }
      yield* session.commit({ run: leave("review", run.cursor ?? "", { parked }) })
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
