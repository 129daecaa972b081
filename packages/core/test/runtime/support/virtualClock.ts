/** A clock that jumps to the next sleeper whenever nothing else is left to do: hours pass in milliseconds, in order. */
import { Clock, Duration, Effect } from "effect"

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

interface VirtualClock extends Clock.Clock {
  readonly elapse: (ms: number) => void
}

/** Time that passes while something computes, without a turn of the event loop. */
export const elapsing = Effect.map(Effect.clock, (clock) => (clock as VirtualClock).elapse)

export const makeVirtualClock = (startMs = Date.UTC(2030, 0, 1)): VirtualClock => {
  let now = startMs
  let idle = 0
  let pumping = false
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
    if (sleepers.size === 0) {
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
      if (!pumping) {
        pumping = true
        next()
      }
      return Effect.sync(() => sleepers.delete(sleeper))
    })

  return {
    [Clock.ClockTypeId]: Clock.ClockTypeId,
    unsafeCurrentTimeMillis: () => now,
    unsafeCurrentTimeNanos: () => BigInt(Math.floor(now)) * 1_000_000n,
    currentTimeMillis: Effect.sync(() => now),
    currentTimeNanos: Effect.sync(() => BigInt(Math.floor(now)) * 1_000_000n),
    sleep,
    elapse: (ms) => void (now += ms),
  }
}
