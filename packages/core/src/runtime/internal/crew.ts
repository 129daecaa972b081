/** The attempts of one run that are under way beside each other, each in a fiber of its own. */
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type { Attempt } from "./decide.js"
import type { Failure, Turn } from "./leave.js"

/** What is due later is looked at again until then: no timer of a process holds for years. */
const longestWaitMs = 3_600_000

export interface Lane {
  readonly attempt: Attempt
  /** What was asked for is of no use any more: it was told to stop. */
  stopping: boolean
  fiber: Fiber.RuntimeFiber<Turn, Failure>
}

export class Crew {
  readonly lanes = new Map<string, Lane>()
  private readonly ended: Array<{ readonly lane: Lane; readonly exit: Exit.Exit<Turn, Failure> }> = []
  private sleeper: (() => void) | null = null
  private roused = false

  get isEmpty(): boolean {
    return this.lanes.size === 0 && this.ended.length === 0
  }

  start(attempt: Attempt, effect: Effect.Effect<Turn, Failure>): Effect.Effect<void> {
    // A daemon, which the loop stops itself: it has to wait until what is known is recorded.
    return Effect.map(Effect.forkDaemon(Effect.interruptible(effect)), (fiber) => {
      const lane: Lane = { attempt, stopping: false, fiber }
      this.lanes.set(attempt.path, lane)
      fiber.addObserver((exit) => {
        this.lanes.delete(attempt.path)
        this.ended.push({ lane, exit })
        this.rouse()
      })
    })
  }

  /** Those that have ended since the last call. */
  take(): ReadonlyArray<{ readonly lane: Lane; readonly exit: Exit.Exit<Turn, Failure> }> {
    return this.ended.length === 0 ? this.ended : this.ended.splice(0)
  }

  /** Stops what is of no use any more. What performs is let be: its outcome would be unknown. */
  stop(isOfUse: (path: string) => boolean): Effect.Effect<void> {
    return Effect.forEach(
      this.lanes.values(),
      (lane) => {
        if (lane.stopping || lane.attempt.node.operations.length > 0 || isOfUse(lane.attempt.path)) return Effect.void
        lane.stopping = true
        return Fiber.interruptFork(lane.fiber)
      },
      { discard: true },
    )
  }

  /** Stops all of them, and waits until they have recorded what they know. */
  readonly stopAll: Effect.Effect<void> = Effect.suspend(() =>
    this.lanes.size === 0 ? Effect.void : Fiber.interruptAll([...this.lanes.values()].map((lane) => lane.fiber)),
  )

  /** Ends a wait: something has happened. */
  rouse(): void {
    this.roused = true
    this.sleeper?.()
  }

  /** Ends when something has happened since the last wait, or after so many milliseconds. */
  wait(ms: number | null): Effect.Effect<void> {
    const heard = Effect.async<void>((resume) => {
      if (this.roused) resume(Effect.void)
      else this.sleeper = () => resume(Effect.void)
      return Effect.sync(() => (this.sleeper = null))
    })
    const waited = ms === null ? heard : Effect.asVoid(Effect.timeoutOption(heard, Math.min(ms, longestWaitMs)))
    return Effect.ensuring(
      waited,
      Effect.sync(() => {
        this.roused = false
        this.sleeper = null
      }),
    )
  }
}
