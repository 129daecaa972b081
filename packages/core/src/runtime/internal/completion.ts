/** The end of a run: the workflow's output, computed from committed results and gated like every output (X3). */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { codecOf, type Gated } from "../../model/Codec.js"
import type { FailureRecord, ParkRecord, StepRecord } from "../../model/Records.js"
import { lookContext } from "./context.js"
import { compensable } from "./decide.js"
import { errorDetails } from "./errorDetails.js"
import { leave, type Failure, type Turn } from "./leave.js"
import type { RunSession } from "./session.js"

/** Stored text that this code cannot read. */
class Unreadable extends Error {
  constructor(
    readonly step: string,
    problem: string,
  ) {
    super(problem)
  }
}

/** The workflow's output, computed from committed results and gated like every output. */
const completion = (session: RunSession): Effect.Effect<Either.Either<Gated<unknown>, unknown>> =>
  Effect.suspend(() => {
    const { output } = session.env.definition
    if (output === null) return Effect.succeed(Either.right({ value: undefined, text: null }))
    let unreadable: Unreadable | null = null
    const context = lookContext({
      input: session.input,
      available: session.available,
      onUnreadable: (step, error) => (unreadable = new Unreadable(step, error.message)),
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

/** Commits the end of a run whose steps are all committed. */
export const complete = (session: RunSession): Effect.Effect<Turn, Failure> =>
  Effect.gen(function* () {
    const output = yield* completion(session)
    if (Either.isRight(output)) {
      yield* session.commit({ run: leave("completed", "", { output: output.right.text }) })
      return { _tag: "Final" } as const
    }
    const details = errorDetails(output.left)
    if (output.left instanceof Unreadable) {
      // The output is all right as far as anybody knows: this code cannot read what it is made of (X10).
      const parked: ParkRecord = { reason: "IncompatibleCheckpoint", step: output.left.step, problem: details.message }
      yield* session.commit({ run: leave("review", "", { parked }) })
      return { _tag: "Parked" } as const
    }
    const failure: FailureRecord = { kind: "undeclared", step: "(output)", problem: details.message, details }
    const takesBack = compensable(session.env.plan, session) !== null
    yield* session.commit({ run: { ...(takesBack ? session.running("") : leave("failed", "")), failure } })
    return takesBack ? null : ({ _tag: "Final" } as const)
  })

/** The output as it will be once the last step is committed. */
export const lastOutput = (session: RunSession, record: Omit<StepRecord, "committedAt">) =>
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
