/**
 * What follows from the end of an attempt: a commit, another attempt, a parked run or a failed one.
 *
 * - X2: commit before advance. A step's value is handed on when its record is accepted, and nothing outside this process
 *   follows from it before it is durable (W2).
 * - X5: no run fails over an operation whose outcome is unknown.
 * - The operation's outcome is committed together with whatever its attempt came to.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Random from "effect/Random"
import type { WindowChange } from "../../dsl/Window.js"
import { effectOf } from "../../model/Plan.js"
import type { AttemptRecord, FailureRecord, ParkRecord } from "../../model/Records.js"
import type { Commit } from "../../store/CheckpointStore.js"
import type { AttemptEnd } from "./attempt.js"
import { lastOutput } from "./completion.js"
import { dataRecord } from "./dataNotes.js"
import type { Attempt } from "./decide.js"
import { errorDetails, unwrapThrown } from "./errorDetails.js"
import { fail, failureRecord } from "./failing.js"
import { accepted, again, committed, leave, park, type Failure, type Turn } from "./leave.js"
import { mayTakeMs, settledEffect, type OperationState, type Stop } from "./operationState.js"
import { prefixOf, scopeOf } from "./paths.js"
import { resendDelayMs, retryDelayMs } from "./retry.js"
import { shownMs, type Parts, type RunSession } from "./session.js"
import { asEffect, andThen, type Soon } from "./soon.js"
import { changed, compactedParts, stillTooLarge } from "./window.js"
import { isCompaction } from "./windowStates.js"

type StepPart = NonNullable<Parts["steps"]>[number]

const asList = <A>(value: A | null): ReadonlyArray<A> => (value === null ? [] : [value])

/** What a step that passed commits, with the window where it has changed that: its record, and the end of the run where it is the last. */
export const successParts = (
  session: RunSession,
  attempt: Attempt,
  end: Extract<AttemptEnd, { _tag: "Passed" }>,
  state: OperationState,
  window: StepPart | null = null,
): Soon<Parts> => {
  const { node } = attempt
  const record = {
    path: attempt.path,
    result: end.output.text,
    effect: effectOf(node),
    idempotencyKey: state.intent?.idempotencyKey ?? null,
    attempts: attempt.attempt,
    durationMs: end.durationMs,
  }
  const { path } = attempt
  const data = state.reads.length === 0 ? [] : [dataRecord(path, scopeOf(prefixOf(path)), state.reads)]
  const parts = {
    run: session.running(path),
    steps: [record, ...data, ...asList(window)],
    effects: settledEffect(state),
  }
  // A run that is to be canceled does not complete: its last step is committed, and taken back.
  if (!attempt.isLast || !session.isAlone || session.heed()) return parts
  // The last step and the end of the run are one commit, unless the output fails: then the step is kept all the same.
  return Effect.map(lastOutput(session, record, window), (output) =>
    Either.isRight(output) ? { ...parts, run: leave("completed", "", { output: output.right.text }) } : parts,
  )
}

/**
 * W2: after an operation or what readers have seen, at the end of the run and where its workflow says so, nothing runs ahead; nor
 * after a read, which may have been paid for, where the run has brought a worker down.
 */
const mayRunAhead = (
  { env, live, run: { recoveries } }: RunSession,
  { node, path }: Attempt,
  run: Pick<Commit["run"], "release">,
): boolean =>
  env.durability === "barrier" &&
  node.operations.length === 0 &&
  !run.release &&
  live?.has(path) !== true &&
  (recoveries === 0 || !node.effects.some(({ kind }) => kind === "read"))

const final: Turn = { _tag: "Final" }

export const afterSuccess = (
  session: RunSession,
  attempt: Attempt,
  end: Extract<AttemptEnd, { _tag: "Passed" }>,
  state: OperationState,
): Soon<Turn, Failure> => {
  if (isCompaction(attempt.path)) return afterCompaction(session, attempt, end, state)
  if (state.changes !== null) return afterChanges(session, attempt, end, state, state.changes)
  return andThen(successParts(session, attempt, end, state), (parts) =>
    written(session, attempt, parts, end.durationMs),
  )
}

/** Commits what a step that passed comes to, and runs ahead of that where it may. */
const written = (session: RunSession, attempt: Attempt, parts: Parts, durationMs: number): Soon<Turn, Failure> =>
  andThen(
    mayRunAhead(session, attempt, parts.run) ? accepted(session, attempt, parts) : committed(session, attempt, parts),
    () => andThen(session.env.onProgress(durationMs), () => (parts.run.status === "completed" ? final : null)),
  )

/** A step that changes the window is committed in turn with those beside it: each changes what the one before has left. */
const afterChanges = (
  session: RunSession,
  attempt: Attempt,
  end: Extract<AttemptEnd, { _tag: "Passed" }>,
  state: OperationState,
  changes: ReadonlyArray<WindowChange>,
): Effect.Effect<Turn, Failure> => {
  const { attempt: number, path } = attempt
  const computed = Effect.flatMap(changed(session, attempt, changes, end.output.text), (window) =>
    asEffect(successParts(session, attempt, end, state, window)),
  )
  return session.reach("beforeCommit", path, number).pipe(
    Effect.zipRight(session.commitComputed(computed, ({ run }) => mayRunAhead(session, attempt, run))),
    Effect.tap(() => session.reach("afterCommit", path, number)),
    Effect.flatMap(({ run }) =>
      Effect.as(asEffect(session.env.onProgress(end.durationMs)), run.status === "completed" ? final : null),
    ),
    Effect.catchTags({
      Failed: (refused) => afterFailure(session, attempt, refused, state),
      Rejected: (refused) => afterRejection(session, attempt, refused, state),
      Stopped: ({ stop }) => afterStop(session, attempt, stop, state),
    }),
  )
}

/** The window is what a step has made of one that was too large. */
const afterCompaction = (
  session: RunSession,
  attempt: Attempt,
  end: Extract<AttemptEnd, { _tag: "Passed" }>,
  state: OperationState,
): Soon<Turn, Failure> => {
  const error = stillTooLarge(session, end.output.text)
  if (error !== null) return afterFailure(session, attempt, { _tag: "Failed", error, defect: false }, state)
  return written(session, attempt, compactedParts(session, attempt, end), end.durationMs)
}

const attemptRow = (
  attempt: Attempt,
  kind: AttemptRecord["kind"],
  error: unknown,
  retryInMs: number | null,
  output: string | null = null,
): Commit["attempts"][number] => ({
  path: attempt.path,
  attempt: attempt.attempt,
  kind,
  error: errorDetails(unwrapThrown(error)),
  output,
  retryInMs,
})

/** A compensation that fails for good: a person is told what is left to be taken back. */
const undone = (session: RunSession, attempt: Attempt, error: unknown): ParkRecord => {
  const left = [...(session.undo ?? [])].reverse().map(({ path }) => `'${path}'`)
  const problem = `the run fails, and '${attempt.node.operations[0]?.name ?? ""}' could not take back its step: ${errorDetails(unwrapThrown(error)).message}; not taken back yet: ${left.join(", ")}`
  return { reason: "CompensationFailed", step: attempt.path, problem }
}

/** Why the run fails, as it is stored: the operation's own failure, the workflow's declared one, or what people read. */
const failureOf = (session: RunSession, attempt: Attempt, error: unknown, state: OperationState) => {
  if (attempt.node.kind === "perform" && state.outcome?.state === "failed") {
    const { message, name } = errorDetails(unwrapThrown(error))
    const operation = attempt.node.effects[0]!.name
    const problem = message === "" ? name : message
    return Effect.succeed<FailureRecord>({
      kind: "declared",
      step: attempt.path,
      operation,
      value: state.outcome.text,
      problem,
    })
  }
  return failureRecord(session, attempt.path, error)
}

const failRun = (
  session: RunSession,
  attempt: Attempt,
  error: unknown,
  state: OperationState,
  kind: AttemptRecord["kind"],
  output: string | null = null,
): Effect.Effect<Turn, Failure> =>
  Effect.gen(function* () {
    const { effect } = attempt
    if (effect?.state === "intended" && state.outcome === null) {
      // X5: no run fails over an operation that may have happened.
      const problem = `the step failed before it could resolve '${effect.operation}' under key ${effect.idempotencyKey}, whose outcome is unknown: ${errorDetails(unwrapThrown(error)).message}`
      return yield* park(
        session,
        attempt,
        { reason: "OutcomeUnknown", step: attempt.path, problem },
        { attempts: [attemptRow(attempt, kind, error, null, output)] },
      )
    }
    const rows = { effects: settledEffect(state), attempts: [attemptRow(attempt, kind, error, null, output)] }
    if (session.heed() && session.failure === null && kind === "refused") {
      // X5: known not to have happened, so that the run can be canceled; that is what it was asked for.
      yield* committed(session, attempt, { run: session.running(attempt.path), ...rows })
      return null
    }
    if (attempt.takesBack !== null) return yield* park(session, attempt, undone(session, attempt, error), rows)
    const failure = yield* failureOf(session, attempt, error, state)
    return yield* fail(session, attempt.path, failure, (parts) => committed(session, attempt, { ...parts, ...rows }))
  })

export const afterFailure = (
  session: RunSession,
  attempt: Attempt,
  end: Extract<AttemptEnd, { _tag: "Failed" }>,
  state: OperationState,
): Effect.Effect<Turn, Failure> =>
  Effect.gen(function* () {
    const known = state.outcome?.state
    const kind = known === "failed" || known === "notPerformed" ? "refused" : "failed"
    const node = session.node(attempt.path)
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

export const afterRejection = (
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
    const parked: ParkRecord = { reason: "OutputInvalid", step: attempt.path, problem: end.error.message }
    return yield* park(session, attempt, parked, {
      effects,
      attempts: [attemptRow(attempt, "rejected", end.error, null, end.raw)],
    })
  })

export const afterStop = (
  session: RunSession,
  attempt: Attempt,
  stop: Stop,
  state: OperationState,
): Effect.Effect<Turn, Failure> => {
  switch (stop._tag) {
    case "Lost":
      return Effect.fail(stop.error)
    case "Park":
      return park(
        session,
        attempt,
        stop.park,
        {
          effects: settledEffect(state),
          attempts:
            stop.rejected === undefined
              ? []
              : [attemptRow(attempt, "rejected", stop.rejected.error, null, stop.rejected.raw)],
        },
        stop.wakeInMs ?? null,
      )
    case "Later":
      return again(session, attempt, stop.delayMs, { effects: settledEffect(state), attempts: [] })
    case "Misuse":
    case "Refused":
      return failRun(session, attempt, stop.error, state, "failed")
    case "Unknown":
      // No attempt is counted: retries cover only what is known not to have happened. The intent stands, and the next
      // turn resolves it by its policy.
      return Effect.gen(function* () {
        const delayMs = Math.max(resendDelayMs(stop.sends, yield* Random.next), yield* mayTakeMs(state))
        yield* Effect.logWarning(
          `the outcome of step '${attempt.node.name}' is unknown (${stop.problem}); it is resolved in ${shownMs(delayMs)}`,
        )
        return yield* again(session, attempt, delayMs, { effects: [], attempts: [] })
      })
  }
}
