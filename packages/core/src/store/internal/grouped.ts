/** Calls of the same kind that come in one turn of the event loop, made as one. */
import * as Effect from "effect/Effect"
import * as Runtime from "effect/Runtime"

interface Call<In, Out, E> {
  readonly given: In
  readonly resume: (end: Effect.Effect<Out, E>) => void
}

/** Most calls that are made as one. */
const maxGroup = 512

/**
 * Groups calls of `all`, whose results stand in the order of what it is given. A call that was interrupted is made all the
 * same: whoever made it does not learn how it ended.
 */
export const grouped = <In, Out, E>(
  all: (given: ReadonlyArray<In>) => Effect.Effect<ReadonlyArray<Out>, E>,
): ((given: In) => Effect.Effect<Out, E>) => {
  let waiting: Array<Call<In, Out, E>> = []

  const make = (runtime: Runtime.Runtime<never>): void => {
    const calls = waiting
    waiting = []
    for (let from = 0; from < calls.length; from += maxGroup) {
      const group = calls.slice(from, from + maxGroup)
      const made = Effect.suspend(() => all(group.map(({ given }) => given))).pipe(
        Effect.matchCause({
          onFailure: (cause) => group.forEach(({ resume }) => resume(Effect.failCause(cause))),
          onSuccess: (results) => group.forEach(({ resume }, index) => resume(Effect.succeed(results[index]!))),
        }),
      )
      Runtime.runFork(runtime)(made)
    }
  }

  return (given) =>
    Effect.flatMap(Effect.runtime<never>(), (runtime) =>
      Effect.async<Out, E>((resume) => {
        waiting.push({ given, resume })
        if (waiting.length === 1) setImmediate(() => make(runtime))
      }),
    )
}
