/** The shortest schedule that still shows a breach. */
import * as Effect from "effect/Effect"
import type { Check } from "./findings.js"
import type { Schedule } from "./schedule.js"
import type { Trial } from "./trial.js"

/** Simpler schedules, the simplest first: one trouble less, the first time instead of a later one, a plain kill. */
const simpler = (schedule: Schedule): ReadonlyArray<Schedule> => {
  const replaced = (at: number, strike: Schedule[number]): Schedule => schedule.with(at, strike)
  return [
    ...schedule.map((_, index) => schedule.filter((__, other) => other !== index)),
    ...schedule.flatMap((strike, index) => (strike.nth > 1 ? [replaced(index, { ...strike, nth: 1 })] : [])),
    ...schedule.flatMap((strike, index) =>
      strike.trouble === "kill" ? [] : [replaced(index, { ...strike, trouble: "kill" })],
    ),
  ]
}

/** Most runs that one breach is worth. */
const mostRuns = 40

export const shrink = <E>(
  trial: Trial,
  check: Check,
  run: (schedule: Schedule) => Effect.Effect<Trial, E>,
): Effect.Effect<Trial, E> =>
  Effect.gen(function* () {
    let shortest = trial
    let runs = 0
    for (let found = true; found && runs < mostRuns;) {
      found = false
      for (const schedule of simpler(shortest.schedule)) {
        const again = yield* run(schedule)
        runs++
        if (again.complete && again.findings.some((finding) => finding.check === check)) {
          shortest = again
          found = true
          break
        }
      }
    }
    return shortest
  })
