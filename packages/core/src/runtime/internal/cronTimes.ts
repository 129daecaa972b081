/**
 * When a cron specification is due, in a time zone whose clocks are put forward and back.
 *
 * The calendar is `effect/Cron`'s, asked in UTC only: in other zones it leaves an hour out where clocks go back, and treats
 * a time that is skipped in two ways. From wall time to instant it goes by these rules:
 *
 * - A specification with `*` for the hour goes by elapsed time: it is due whenever the clock shows one of its times, in both
 *   passes of a repeated hour, and not in an hour that is skipped.
 * - Any other is due once for each of its wall times: in the first pass where the clock shows it twice, and at the moment the
 *   clocks are put forward where it never does. Several that were skipped together are due once.
 */
import * as Cron from "effect/Cron"
import * as DateTime from "effect/DateTime"
import * as Either from "effect/Either"
import * as Option from "effect/Option"

/** Instants in milliseconds since 1970. */
export interface CronTimes {
  /** The first one after an instant; null where there is none in any year to come. */
  readonly after: (at: number) => number | null
  /** The last one that is not after `now`; null where there is none after `from`. */
  readonly lastUntil: (from: number, now: number) => number | null
}

const dayMs = 86_400_000

/** No zone is further from UTC, and none has put its clocks on by more (Samoa left out a day in 2011). */
const widestMs = 2 * dayMs

/** Wall times are instants of UTC that read the same. */
const wallOf = (zone: DateTime.TimeZone, at: number): number =>
  at + DateTime.zonedOffset(DateTime.unsafeMakeZoned(at, { timeZone: zone }))

/** The first instant of `(from, to]` at which `holds` holds, where it goes on holding up to `to`. */
const firstWhere = (from: number, to: number, holds: (at: number) => boolean): number => {
  let [before, since] = [from, to]
  while (since - before > 1) {
    const middle = Math.floor((before + since) / 2)
    if (holds(middle)) since = middle
    else before = middle
  }
  return since
}

/** The first instant at which the clock shows a wall time, or a later one because this one is skipped. */
const instantOf = (zone: DateTime.TimeZone, wall: number): number => {
  // Offsets change at most once in such a stretch, or a few days apart; the earliest instant with that wall time counts.
  const offsets = [...new Set([wall - widestMs, wall, wall + widestMs].map((at) => wallOf(zone, at) - at))]
  const shows = offsets.map((offset) => wall - offset).filter((at) => wallOf(zone, at) === wall)
  if (shows.length > 0) return Math.min(...shows)
  // Skipped: the wall time passes it in one step. Near enough, it only grows there.
  const [least, most] = [Math.min(...offsets), Math.max(...offsets)]
  return firstWhere(wall - most - 1, wall - least, (at) => wallOf(zone, at) >= wall)
}

const nextWall = (cron: Cron.Cron, wall: number): number | null => {
  try {
    return Cron.next(cron, wall).getTime()
  } catch {
    // No such day, the 30th of February: it gives up after so many tries.
    return null
  }
}

/** Once for each wall time. Instants follow wall times without ever going back, so the first that is later is the next. */
const byWallTime =
  (cron: Cron.Cron, zone: DateTime.TimeZone) =>
  (at: number): number | null => {
    for (let wall = nextWall(cron, wallOf(zone, at)); wall !== null; wall = nextWall(cron, wall)) {
      const instant = instantOf(zone, wall)
      if (instant > at) return instant
    }
    return null
  }

/** Whenever the clock shows one of its times. */
const byElapsedTime =
  (cron: Cron.Cron, zone: DateTime.TimeZone) =>
  (at: number): number | null => {
    let from = at
    // Each turn passes a change of the clocks, or a day without one.
    for (;;) {
      const offset = wallOf(zone, from) - from
      const wall = nextWall(cron, from + offset)
      if (wall === null) return null
      const instant = wall - offset
      const until = Math.min(instant, from + dayMs)
      if (wallOf(zone, until) - until === offset) {
        if (until === instant) return instant
        from = until
      } else {
        // One before the change: a time that is due at the very change is after it.
        from = firstWhere(from, until, (later) => wallOf(zone, later) - later !== offset) - 1
        const changed = wallOf(zone, from + 1) - (from + 1)
        const next = nextWall(cron, from + changed)
        if (next === null) return null
        if (next - changed === from + 1) return from + 1
        from += 1
      }
    }
  }

/** How far back the last one is looked for, from near to far: it is found in the first that holds any. */
const stretches = [60_000, 3_600_000, dayMs, 31 * dayMs, 366 * dayMs]

const lastUntil =
  (after: CronTimes["after"]): CronTimes["lastUntil"] =>
  (from, now) => {
    const begins = stretches.map((ms) => now - ms).filter((begin) => begin > from)
    for (const begin of [...begins, from]) {
      let last: number | null = null
      for (let at = after(begin); at !== null && at <= now; at = after(at)) last = at
      if (last !== null) return last
    }
    return null
  }

/** Reads a specification; what is wrong with it, as text, where it is none. */
export const cronTimes = (specification: string, timeZone: string): Either.Either<CronTimes, string> => {
  const zone = DateTime.zoneMakeNamed(timeZone)
  if (Option.isNone(zone)) return Either.left(`'${timeZone}' is no time zone; write one such as 'Europe/Berlin'`)
  return Cron.parse(specification, "UTC").pipe(
    Either.mapLeft(({ message }) => `'${specification}' is no cron specification: ${message}`),
    Either.flatMap((cron) => {
      // A field that takes every value is kept as none.
      const everyHour = cron.hours.size === 0 || cron.hours.size === 24
      const after = (everyHour ? byElapsedTime : byWallTime)(cron, zone.value)
      return after(Date.now()) === null
        ? Either.left(`'${specification}' names a day that does not exist`)
        : Either.right({ after, lastUntil: lastUntil(after) })
    }),
  )
}
