/** References of a fiber that runs one piece of a user's code after the other. */
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as FiberRef from "effect/FiberRef"
import * as FiberRefs from "effect/FiberRefs"

/**
 * What it changes of its fiber's references ends with it, as it does where the next piece runs in another process (field case P137).
 * `ended` comes before that.
 */
export const keepingRefs = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  ended: (exit: Exit.Exit<A, E>) => Effect.Effect<unknown> = () => Effect.void,
): Effect.Effect<A, E, R> =>
  Effect.flatMap(Effect.getFiberRefs, (before) => {
    const restored = Effect.updateFiberRefs((fiberId, after) => {
      // That somebody interrupts the fiber stands in such a reference, too.
      const fiberRef = FiberRef.interruptedCause
      const value = FiberRefs.getOrDefault(after, fiberRef)
      return value === FiberRefs.getOrDefault(before, fiberRef)
        ? before
        : FiberRefs.updateAs(before, { fiberId, fiberRef, value })
    })
    return Effect.onExit(effect, (exit) => Effect.ensuring(ended(exit), restored))
  })
