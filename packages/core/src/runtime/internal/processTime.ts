/**
 * This process's own time, for spans within it: a wall clock may be set meanwhile, and stand still. When a time has come that others
 * know of, the store's clock says (X8).
 */
import type * as Clock from "effect/Clock"

/** Milliseconds, monotonic, from no moment in particular. Not whole ones: who waits for what is left rounds up. */
export const processMs = (clock: Clock.Clock): number => Number(clock.unsafeCurrentTimeNanos() / 1_000n) / 1_000
