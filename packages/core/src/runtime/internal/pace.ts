/**
 * How often a worker looks for runs that nobody told it of.
 *
 * - At `pollInterval` while it executes anything, and for a lease's time after its start: what a worker that died before
 *   it has left comes due in that time.
 * - Then each look that finds nothing doubles the pause, up to `maxPollInterval`. A wake-up or a run that was found ends
 *   that at once, and so does a store that failed: it may be back any moment.
 * - X8: runs that went to sleep here are looked for when they are due, however long the pause.
 */
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import { processMs } from "./processTime.js"
import type { Settings } from "./settings.js"

const currentMs = Effect.clockWith((clock) => Effect.sync(() => processMs(clock)))

/** A number each; whatever goes to sleep beyond them is left to polling. */
const maxDueTimes = 10_000

/** When runs that went to sleep here are due, by this process's clock. */
export interface DueTimes {
  readonly add: (inMs: number) => Effect.Effect<void>
  /** How long until the next one; null without any. Those that have passed are forgotten. */
  readonly nextInMs: Effect.Effect<number | null>
}

export const makeDueTimes = (): DueTimes => {
  const times = new Set<number>()
  return {
    add: (inMs) =>
      Effect.map(currentMs, (now) => {
        if (times.size < maxDueTimes) times.add(now + inMs)
      }),
    nextInMs: Effect.map(currentMs, (now) => {
      let next = Infinity
      for (const time of times) {
        if (time <= now) times.delete(time)
        else next = Math.min(next, time)
      }
      return next === Infinity ? null : Math.ceil(next - now)
    }),
  }
}

/** Workers that were woken together do not look together again: each pause is cut by up to so much of it. */
const jitter = 0.25

export interface Pace {
  /** The pause before the next look. */
  readonly nextMs: (isIdle: boolean) => Effect.Effect<number>
  /** Something has happened: the next pause is a short one. */
  readonly quicken: () => void
}

export const makePace = (
  { leaseMs, maxPollMs, pollMs }: Pick<Settings, "leaseMs" | "maxPollMs" | "pollMs">,
  dueTimes: DueTimes,
): Effect.Effect<Pace> =>
  Effect.map(currentMs, (startedAt) => {
    let pauseMs = pollMs
    return {
      nextMs: (isIdle) =>
        Effect.gen(function* () {
          const rests = isIdle && (yield* currentMs) - startedAt >= leaseMs
          const ms = Math.ceil((rests ? pauseMs : pollMs) * (1 - jitter * (yield* Random.next)))
          pauseMs = rests ? Math.min(maxPollMs, pauseMs * 2) : pollMs
          const dueMs = yield* dueTimes.nextInMs
          if (dueMs === null || dueMs > ms) return ms
          // Should the store's clock say that it is not due yet, the next look follows soon.
          pauseMs = pollMs
          return dueMs
        }),
      quicken: () => {
        pauseMs = pollMs
      },
    }
  })
