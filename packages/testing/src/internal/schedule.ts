/** Schedules: which trouble at which boundary, one after the other. */
import type { FaultPoint } from "@cairn/core"
import { troublesAt, troubleWords, type Trouble } from "./trouble.js"

/**
 * Where a run can be struck: a fault point, or just before a store call that none stands at (`step` is the call's name).
 *
 * @category models
 * @since 0.1.0
 */
export type Point = FaultPoint | "storeCall"

/**
 * A boundary that a run reaches.
 *
 * *Shape.* `step` is empty for points of the worker. `nth` counts, from 1, how often the point was reached at that step
 * since the run began or since the trouble before.
 *
 * @category models
 * @since 0.1.0
 */
export interface Boundary {
  readonly point: Point
  readonly step: string
  readonly attempt: number
  readonly nth: number
}

/**
 * One trouble at one boundary.
 *
 * @category models
 * @since 0.1.0
 */
export interface Strike extends Boundary {
  readonly trouble: Trouble
}

/**
 * Troubles in order: the second is awaited once the first has struck.
 *
 * @category models
 * @since 0.1.0
 */
export type Schedule = ReadonlyArray<Strike>

/** Heartbeats come for as long as a run waits: past the first two they tell nothing new. */
const mostBeats = 2

/** Counts how often each boundary is reached. */
export class Counter {
  private readonly counts = new Map<string, number>()

  next(point: string, step: string): number {
    const key = `${point}|${step}`
    const nth = (this.counts.get(key) ?? 0) + 1
    this.counts.set(key, nth)
    return nth
  }

  clear(): void {
    this.counts.clear()
  }
}

/** All strikes at the boundaries of a trace. */
export const strikesAt = (
  trace: ReadonlyArray<Boundary>,
  among: ReadonlyArray<Trouble>,
  policyOf: (step: string) => string,
): ReadonlyArray<Strike> =>
  trace
    .filter(({ point, nth }) => point !== "beforeBeat" || nth <= mostBeats)
    .flatMap((boundary) =>
      troublesAt(boundary, boundary.point === "storeCall" ? "worker" : policyOf(boundary.step), among).map(
        (trouble) => ({ ...boundary, trouble }),
      ),
    )

const ordinal = (nth: number): string => (nth === 1 ? "" : `, time ${nth}`)

const shownStrike = ({ point, step, nth, trouble }: Strike): string =>
  `${troubleWords[trouble]} at ${point}${step === "" ? "" : ` of '${step}'`}${ordinal(nth)}`

/**
 * A schedule as people read it.
 *
 * @category reports
 * @since 0.1.0
 */
export const showSchedule = (schedule: Schedule): string =>
  schedule.length === 0 ? "no trouble at all" : schedule.map(shownStrike).join("; then ")

/** A generator of its own (mulberry32), so that a sample does not depend on anybody else's draws. */
export const seeded = (seed: number): (() => number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** All, or a seeded sample in the given order. */
export const sample = <A>(all: ReadonlyArray<A>, size: number, seed: number): ReadonlyArray<A> => {
  if (all.length <= size) return all
  const random = seeded(seed)
  const indexes = all.map((_, index) => index)
  for (let at = 0; at < size; at++) {
    const other = at + Math.floor(random() * (indexes.length - at))
    const swapped = indexes[at]!
    indexes[at] = indexes[other]!
    indexes[other] = swapped
  }
  return indexes
    .slice(0, size)
    .sort((a, b) => a - b)
    .map((index) => all[index]!)
}
