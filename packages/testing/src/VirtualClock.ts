/**
 * A clock that jumps to the next sleeper whenever nothing else is left to do: hours pass in milliseconds, in order. The
 * process's monotonic clock, by which workers judge their leases, follows it.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"

interface Sleeper {
  readonly at: number
  readonly wake: () => void
}

/** Pumps of all virtual clocks that wait for their next turn of the event loop. */
let pumps = 0

/** Whether anybody but clocks has asked for a turn of the event loop: then there is something left to do. */
const workIsWaiting = (): boolean =>
  process.getActiveResourcesInfo().filter((resource) => resource === "Immediate").length > pumps

/** Turns of the event loop without a wake-up before the clock jumps: fibers and promises settle within the first. */
const idleTurns = 2

/**
 * A clock of virtual time.
 *
 * *Shape.* `stop` ends it: whoever still sleeps by it sleeps for ever.
 *
 * @category models
 * @since 0.1.0
 */
export interface VirtualTime {
  readonly clock: Clock.Clock
  readonly nowMs: () => number
  readonly stop: () => void
}

/** When virtual time begins unless said otherwise. */
export const virtualStartMs = Date.UTC(2030, 0, 1)

const make = (startMs = virtualStartMs): VirtualTime => {
  let now = startMs
  let idle = 0
  let pumping = false
  let stopped = false
  const sleepers = new Set<Sleeper>()

  const wakeNext = (): void => {
    let next: Sleeper | null = null
    for (const sleeper of sleepers) if (next === null || sleeper.at < next.at) next = sleeper
    if (next === null) return
    now = Math.max(now, next.at)
    sleepers.delete(next)
    next.wake()
  }

  const next = (): void => {
    pumps += 1
    setImmediate(pump)
  }

  const pump = (): void => {
    pumps -= 1
    if (sleepers.size === 0 || stopped) {
      pumping = false
      return
    }
    if (workIsWaiting()) idle = 0
    if (++idle > idleTurns) {
      idle = 0
      wakeNext()
    }
    next()
  }

  const sleep = (duration: Duration.Duration): Effect.Effect<void> =>
    Effect.async<void>((resume) => {
      const sleeper: Sleeper = { at: now + Duration.toMillis(duration), wake: () => resume(Effect.void) }
      sleepers.add(sleeper)
      idle = 0
      if (!pumping && !stopped) {
        pumping = true
        next()
      }
      return Effect.sync(() => sleepers.delete(sleeper))
    })

  return {
    clock: {
      [Clock.ClockTypeId]: Clock.ClockTypeId,
      unsafeCurrentTimeMillis: () => now,
      unsafeCurrentTimeNanos: () => BigInt(Math.floor(now)) * 1_000_000n,
      currentTimeMillis: Effect.sync(() => now),
      currentTimeNanos: Effect.sync(() => BigInt(Math.floor(now)) * 1_000_000n),
      sleep,
    },
    nowMs: () => now,
    stop: () => {
      stopped = true
      sleepers.clear()
    },
  }
}

/** There is one monotonic clock a process: two virtual times at once would each see the other's. */
const oneAtATime = Effect.unsafeMakeSemaphore(1)

/** The monotonic clock of this process follows the virtual one while an effect runs. */
const following = <A, E, R>(time: VirtualTime, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const own = Object.getOwnPropertyDescriptor(performance, "now")
      const startedAt = time.nowMs()
      performance.now = () => time.nowMs() - startedAt
      return own
    }),
    () => Effect.withClock(effect, time.clock),
    (own) =>
      Effect.sync(() => {
        time.stop()
        // On most platforms `now` is the prototype's: what shadows it is taken away.
        if (own === undefined) delete (performance as { now?: unknown }).now
        else Object.defineProperty(performance, "now", own)
      }),
  )

/**
 * Virtual time for tests.
 *
 * @category constructors
 * @since 0.1.0
 */
export const VirtualClock = {
  /** A clock by itself, for `Effect.withClock`. Workers also look at the monotonic clock: use `run` for them. */
  make,
  /**
   * Runs an effect in virtual time, one such effect at a time in this process. Nothing in it may wait for the outside
   * (sockets, files, child processes): while it did, the clock would jump.
   *
   * @example
   * ```ts
   * import { VirtualClock } from "@cairn/testing"
   * import { Effect } from "effect"
   *
   * await Effect.runPromise(VirtualClock.run(Effect.as(Effect.sleep("30 days"), "a month later")))
   * // => "a month later"
   * ```
   */
  run: <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    oneAtATime.withPermits(1)(Effect.suspend(() => following(make(), effect))),
} as const
