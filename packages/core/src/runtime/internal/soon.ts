/**
 * What is there at once, or comes. A pure step ends where it began: it takes no turn of a fiber, and makes no effect.
 *
 * None of the values that stand in such a place is an effect itself.
 */
import * as Effect from "effect/Effect"

export type Soon<A, E = never> = A | Effect.Effect<A, E>

/** Whether it comes later. */
export const comes = <A, E>(soon: Soon<A, E>): soon is Effect.Effect<A, E> => soon !== null && Effect.isEffect(soon)

/** As an effect, for whoever composes effects. */
export const asEffect = <A, E>(soon: Soon<A, E>): Effect.Effect<A, E> => (comes(soon) ? soon : Effect.succeed(soon))

/** What follows from it: at once, where it is there. */
export const andThen = <A, E, B, E2>(soon: Soon<A, E>, follow: (value: A) => Soon<B, E2>): Soon<B, E | E2> =>
  comes(soon) ? Effect.flatMap(soon, (value) => asEffect(follow(value))) : follow(soon)
