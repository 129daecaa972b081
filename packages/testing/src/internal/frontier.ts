/** The next schedules: each one that was run, with one more trouble at what it reached after its last. */
import { sample, strikesAt, type Schedule } from "./schedule.js"
import { policyOf, type Subject } from "./subject.js"
import type { Trial } from "./trial.js"
import type { Trouble } from "./trouble.js"

export interface Frontier {
  readonly schedules: ReadonlyArray<Schedule>
  /** How many there would have been. */
  readonly possible: number
}

/** Troubles of a recovery are found like any other: the recovery's boundaries stand in the trace of its trial. */
export const frontier = (
  subject: Subject,
  level: ReadonlyArray<Trial>,
  among: ReadonlyArray<Trouble>,
  most: number,
  seed: number,
): Frontier => {
  const all = level
    // One that has broken a promise is reported as it is: more trouble would only hide which was needed.
    .filter(({ complete, findings }) => complete && findings.length === 0)
    .flatMap(({ schedule, trace }) => {
      // Of two cancels the first one counts.
      const canceled = schedule.some(({ trouble }) => trouble === "cancel")
      const still = canceled ? among.filter((trouble) => trouble !== "cancel") : among
      return strikesAt(trace, still, (step) => policyOf(subject, step)).map((strike): Schedule => [...schedule, strike])
    })
  return { schedules: sample(all, most, seed), possible: all.length }
}
