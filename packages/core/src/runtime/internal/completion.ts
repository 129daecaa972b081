/** The end of a run: the workflow's output, computed from committed results and gated like every output (X3). */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import { codecOf, type Gated } from "../../model/Codec.js"
import { isInstance } from "../../model/internal/untrusted.js"
import type { ParkRecord, StepRecord } from "../../model/Records.js"
import { lookContext, type OnUnreadable } from "./context.js"
import { errorDetails } from "./errorDetails.js"
import { fail, failureRecord } from "./failing.js"
import { leave, type Failure, type Turn } from "./leave.js"
import { partsAt } from "./places.js"
import type { RunSession } from "./session.js"
import { withWindow } from "./window.js"
import { windowScope, windowState } from "./windowStates.js"

/** Stored text that this code cannot read. */
export class Unreadable extends Error {
  constructor(
    readonly step: string,
    problem: string,
  ) {
    super(problem)
  }
}

/**
 * Calls a function that only looks, where it stands; what it throws is a failure, `Unreadable` where that is why. What it gives is
 * recorded before it is obeyed: only then it `sees` the window, which may be another when it is asked again.
 */
export const looked = (
  session: RunSession,
  prefix: string,
  look: (context: any) => unknown,
  sees: "window" | "results" = "window",
): Effect.Effect<unknown, unknown> =>
  Effect.suspend(() => {
    let unreadable: Unreadable | null = null
    const onUnreadable: OnUnreadable = (step, error) => (unreadable = new Unreadable(step, error.message))
    const context = lookContext(partsAt(session.place(prefix), onUnreadable))
    try {
      return Exit.succeed(look(sees === "window" ? withWindow(session, context, onUnreadable) : context))
    } catch (thrown) {
      // No `Effect.try`: it looks at what is thrown, which may be nothing to look at.
      return Exit.fail(unreadable ?? thrown)
    }
  })

/** A value as the workflow's output. */
const asOutput = (session: RunSession, given: unknown): Effect.Effect<Gated<unknown>, unknown> => {
  const { output } = session.env.definition
  if (output === null) return Effect.succeed({ value: undefined, text: null })
  const options = { place: "output of the workflow", maxLength: session.env.maxValueLength }
  return codecOf(output.schema).gate(given, options)
}

/** The workflow's output, computed from committed results and gated like every output. */
const completion = (session: RunSession): Effect.Effect<Either.Either<Gated<unknown>, unknown>> =>
  Effect.suspend(() => {
    const { output } = session.env.definition
    if (output === null) return Effect.succeed(Either.right({ value: undefined, text: null }))
    return looked(session, "", output.select).pipe(
      Effect.flatMap((given) => asOutput(session, given)),
      Effect.either,
    )
  })

/** The act that could not be done because of stored text parks the run: this code cannot read what it is made of (X10). */
export const parkUnreadable = (
  session: RunSession,
  cursor: string,
  error: Unreadable,
): Effect.Effect<Turn, Failure> => {
  const parked: ParkRecord = { reason: "IncompatibleCheckpoint", step: error.step, problem: error.message }
  return session.isAlone
    ? Effect.as(session.commit({ run: leave("review", cursor, { parked }) }), { _tag: "Parked" })
    : Effect.succeed({ _tag: "Held", parked })
}

const completed = (
  session: RunSession,
  step: string,
  output: Either.Either<Gated<unknown>, unknown>,
): Effect.Effect<Turn, Failure> =>
  Effect.gen(function* () {
    if (Either.isRight(output)) {
      yield* session.commit({ run: leave("completed", "", { output: output.right.text }) })
      return { _tag: "Final" } as const
    }
    if (isInstance(output.left, Unreadable)) return yield* parkUnreadable(session, "", output.left)
    const details = errorDetails(output.left)
    return yield* fail(session, step, { kind: "undeclared", step, problem: details.message, details })
  })

/** Commits the end of a run whose steps are all committed. */
export const complete = (session: RunSession): Effect.Effect<Turn, Failure> =>
  Effect.flatMap(completion(session), (output) => completed(session, "(output)", output))

/** Ends the run early, with what an `end` gives. */
export const endEarly = (session: RunSession, path: string, given: unknown): Effect.Effect<Turn, Failure> =>
  Effect.flatMap(Effect.either(asOutput(session, given)), (output) => completed(session, path, output))

/** Fails the run, with what a `fail` gives. */
export const failWith = (session: RunSession, path: string, given: unknown): Effect.Effect<Turn, Failure> =>
  Effect.flatMap(failureRecord(session, path, given), (failure) => fail(session, path, failure))

/** The output as it will be once the last step is committed. */
export const lastOutput = (
  session: RunSession,
  record: Omit<StepRecord, "committedAt" | "scope" | "seq">,
  changed: Omit<StepRecord, "committedAt" | "scope" | "seq"> | null,
) =>
  Effect.suspend(() => {
    const { steps } = session.frames.get("")!
    const { window } = session
    const as = (scope: string) => ({ scope, seq: session.seq + 1, committedAt: 0 })
    steps.set(record.path, { ...record, ...as("") })
    if (changed !== null) session.window = windowState({ ...changed, ...as(windowScope) })
    return Effect.ensuring(
      completion(session),
      Effect.sync(() => {
        steps.delete(record.path)
        session.window = window
      }),
    )
  })
