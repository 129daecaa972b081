/**
 * Defects of the run itself: what its steps and the workflow's functions throw is a failure, so that one of these stands for a fault of
 * ours, or of what is beyond both, like a string that is longer than the engine allows.
 */
import * as Cause from "effect/Cause"
import * as Option from "effect/Option"
import { errorDetails, primary } from "./errorDetails.js"

/** It would come again with the next attempt: the run is parked for it. */
export class RunDefect extends Error {
  readonly _tag = "RunDefect"

  constructor(
    readonly step: string,
    thrown: unknown,
  ) {
    const { message, name, stack } = errorDetails(thrown)
    super(`a defect, and no failure of a step, broke the run: ${name === "" ? "" : `${name}: `}${message}`)
    // Not as a cause: a logger that looks at it might find a proxy that throws.
    if (stack !== null) this.stack = stack
  }
}

/** A defect with the step at which it broke the run; other causes as they are. */
export const atStep = <E>(cause: Cause.Cause<E>, stepOf: () => string): Cause.Cause<E | RunDefect> => {
  if (Option.isSome(Cause.failureOption(cause)) || Cause.isInterrupted(cause)) return cause
  if (Option.isNone(Cause.dieOption(cause))) return cause
  return Cause.fail(new RunDefect(stepOf(), primary(cause).error))
}
