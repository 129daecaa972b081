/** Field case P139: a cron specification where clocks are put forward and back. */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import { cronTimes, type CronTimes } from "../../src/runtime/internal/cronTimes.js"

const timesOf = (specification: string, zone: string): CronTimes =>
  Either.getOrThrowWith(cronTimes(specification, zone), (problem) => new Error(problem))

const minuteMs = 60_000

/** The first so many instants after one, without their seconds. */
const first = (count: number, specification: string, zone: string, after: string): ReadonlyArray<string> => {
  const times = timesOf(specification, zone)
  const found: Array<string> = []
  for (let at = Date.parse(after); found.length < count;) {
    at = times.after(at)!
    expect(at % minuteMs).toBe(0)
    found.push(new Date(at).toISOString().slice(0, 16))
  }
  return found
}

const berlin = "Europe/Berlin"
const newYork = "America/New_York"
const lordHowe = "Australia/Lord_Howe"
const apia = "Pacific/Apia"

/** Specification, zone, from when, and the instants that follow. */
const golden: ReadonlyArray<
  readonly [specification: string, zone: string, after: string, instants: ReadonlyArray<string>]
> = [
  // Daily, in the hour that is skipped: once, at the moment at which it is.
  ["30 2 * * *", berlin, "2026-03-27T12:00Z", ["2026-03-28T01:30", "2026-03-29T01:00", "2026-03-30T00:30"]],
  ["30 2 * * *", newYork, "2026-03-07T01:00Z", ["2026-03-07T07:30", "2026-03-08T07:00", "2026-03-09T06:30"]],
  ["15 2 * * *", lordHowe, "2026-10-02T12:00Z", ["2026-10-02T15:45", "2026-10-03T15:30", "2026-10-04T15:15"]],
  ["*/30 2 * * *", berlin, "2026-03-28T01:10Z", ["2026-03-28T01:30", "2026-03-29T01:00", "2026-03-30T00:00"]],
  // Daily, in the hour that comes twice: once, in its first pass.
  ["30 2 * * *", berlin, "2026-10-24T00:00Z", ["2026-10-24T00:30", "2026-10-25T00:30", "2026-10-26T01:30"]],
  ["30 1 * * *", newYork, "2026-10-31T01:00Z", ["2026-10-31T05:30", "2026-11-01T05:30", "2026-11-02T06:30"]],
  ["45 1 * * *", lordHowe, "2026-04-03T12:00Z", ["2026-04-03T14:45", "2026-04-04T14:45", "2026-04-05T15:15"]],
  ["30 3 * * *", apia, "2021-04-02T00:00Z", ["2021-04-02T13:30", "2021-04-03T13:30", "2021-04-04T14:30"]],
  // Asked within the second pass: what was due in the first one is over.
  ["30 2 * * *", berlin, "2026-10-25T01:10Z", ["2026-10-26T01:30"]],
  // Every minute: neither hour stops it.
  ["* * * * *", berlin, "2026-03-29T00:58Z", ["2026-03-29T00:59", "2026-03-29T01:00", "2026-03-29T01:01"]],
  ["* * * * *", berlin, "2026-10-25T00:58Z", ["2026-10-25T00:59", "2026-10-25T01:00", "2026-10-25T01:01"]],
  ["* * * * *", lordHowe, "2026-04-04T14:58Z", ["2026-04-04T14:59", "2026-04-04T15:00", "2026-04-04T15:01"]],
  ["* * * * *", apia, "2011-12-30T09:58Z", ["2011-12-30T09:59", "2011-12-30T10:00", "2011-12-30T10:01"]],
  // Every hour.
  ["0 * * * *", berlin, "2026-03-28T23:30Z", ["2026-03-29T00:00", "2026-03-29T01:00", "2026-03-29T02:00"]],
  ["0 * * * *", berlin, "2026-10-24T23:30Z", ["2026-10-25T00:00", "2026-10-25T01:00", "2026-10-25T02:00"]],
  ["0 * * * *", lordHowe, "2026-04-04T13:30Z", ["2026-04-04T14:00", "2026-04-04T15:30", "2026-04-04T16:30"]],
  // Samoa left out 30 December 2011: its midnight and its noon are the moment at which the 31st began.
  ["0 0 * * *", apia, "2011-12-29T09:00Z", ["2011-12-29T10:00", "2011-12-30T10:00", "2011-12-31T10:00"]],
  ["0 12 * * *", apia, "2011-12-29T12:00Z", ["2011-12-29T22:00", "2011-12-30T10:00", "2011-12-30T22:00"]],
  ["0 12 30 * *", apia, "2011-12-01T00:00Z", ["2011-12-30T10:00", "2012-01-29T22:00", "2012-03-29T22:00"]],
  // A day of the month or a day of the week.
  ["0 0 13 * 5", "UTC", "2026-04-01T00:00Z", ["2026-04-03T00:00", "2026-04-10T00:00", "2026-04-13T00:00"]],
  ["0 0 29 2 *", "UTC", "2026-04-01T00:00Z", ["2028-02-29T00:00", "2032-02-29T00:00", "2036-02-29T00:00"]],
]

describe("a specification is due at these instants", () => {
  it.each(golden)("%s in %s after %s", (specification, zone, after, instants) => {
    expect(first(instants.length, specification, zone, after)).toEqual(instants)
  })
})

/** What a clock in a zone shows, by another way than the code under test: as text that sorts like time. */
const clockIn = (zone: string): ((at: number) => string) => {
  const format = new Intl.DateTimeFormat("sv-SE", {
    ...{ timeZone: zone, year: "numeric", month: "2-digit", day: "2-digit" },
    ...{ hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
  })
  return (at) => format.format(at)
}

/** A stretch of two days around a change of the clocks. */
const changes: ReadonlyArray<readonly [zone: string, begin: string]> = [
  [berlin, "2026-03-28T12:00Z"],
  [berlin, "2026-10-24T12:00Z"],
  [newYork, "2026-03-07T12:00Z"],
  [newYork, "2026-10-31T12:00Z"],
  [lordHowe, "2026-10-03T00:00Z"],
  [lordHowe, "2026-04-04T00:00Z"],
  [apia, "2011-12-29T22:00Z"],
  [apia, "2021-04-03T00:00Z"],
]

const within = (times: CronTimes, from: number, to: number): ReadonlyArray<number> => {
  const found: Array<number> = []
  for (let at = times.after(from); at !== null && at <= to; at = times.after(at)) found.push(at)
  return found
}

describe("minute by minute over a change of the clocks", () => {
  it.each(changes)("in %s from %s every minute is due", (zone, begin) => {
    const from = Date.parse(begin)
    const found = within(timesOf("* * * * *", zone), from, from + 48 * 3_600_000)
    expect(found).toEqual(Array.from({ length: 48 * 60 }, (_, n) => from + (n + 1) * minuteMs))
  })

  it.each(changes)(
    "in %s from %s each wall time of every day is due once, and no later than it passes",
    (zone, begin) => {
      const from = Date.parse(begin)
      const to = from + 48 * 3_600_000
      const shows = clockIn(zone)
      for (let hour = 0; hour < 24; hour++) {
        for (const minute of [0, 15, 30, 59]) {
          const wall = `${String(hour).padStart(2, "0")}:${String(minute).padStart(2, "0")}`
          // Each wall time that is reached or jumped over: the first minute at which the clock shows it or a later one.
          const expected: Array<number> = []
          let highest = shows(from)
          for (let at = from + minuteMs; at <= to; at += minuteMs) {
            const shown = shows(at)
            if (shown <= highest) continue
            const days = new Set([highest.slice(0, 10), ...daysUpTo(highest, shown)])
            if ([...days].some((day) => `${day} ${wall}` > highest && `${day} ${wall}` <= shown)) expected.push(at)
            highest = shown
          }
          expect(within(timesOf(`${minute} ${hour} * * *`, zone), from, to), `${wall} in ${zone}`).toEqual(expected)
        }
      }
    },
  )
})

/** The days from one wall time to another. */
function daysUpTo(from: string, to: string): ReadonlyArray<string> {
  const days: Array<string> = []
  for (let day = Date.parse(from.slice(0, 10)); day <= Date.parse(to.slice(0, 10)); day += 86_400_000) {
    days.push(new Date(day).toISOString().slice(0, 10))
  }
  return days
}

describe("the last instant until now", () => {
  it("is found near and far, and is none where nothing was due", () => {
    const from = Date.parse("2020-01-01T00:00Z")
    const now = Date.parse("2026-03-29T01:00:00.500Z")
    const last = (specification: string, since = from) => timesOf(specification, berlin).lastUntil(since, now)
    expect(last("* * * * * *")).toBe(Date.parse("2026-03-29T01:00:00Z"))
    expect(last("30 2 * * *")).toBe(Date.parse("2026-03-29T01:00:00Z"))
    expect(last("0 9 1 1 *")).toBe(Date.parse("2026-01-01T08:00:00Z"))
    expect(last("0 0 29 2 *")).toBe(Date.parse("2024-02-28T23:00:00Z"))
    expect(last("0 9 1 1 *", Date.parse("2026-02-01T00:00Z"))).toBeNull()
  })
})

describe("what is refused", () => {
  it.each([
    ["every day", "UTC"],
    ["", "UTC"],
    ["60 * * * *", "UTC"],
    ["* * * *", "UTC"],
    ["0 0 30 2 *", "UTC"],
    ["* * * * *", "Mars/Olympus"],
    ["* * * * *", ""],
  ])("'%s' in '%s'", (specification, zone) => {
    expect(Either.isLeft(cronTimes(specification, zone))).toBe(true)
  })
})
