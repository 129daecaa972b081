/** One fault each in what becomes of a person's answer (D19), and in the list of those that are asked for (D21). */
import { Effect } from "effect"
import { mutant, type Mutant } from "./wrap.js"

const settles = "D19: an answer settles"
const refused = "D19: an answer for another run"
const lists = "D21: parked runs are listed"

const answers: ReadonlyArray<Mutant> = [
  mutant("an answer does not unpark the run", settles, (driver) => ({
    answer: (given) =>
      Effect.gen(function* () {
        const row = yield* driver.findRun(given.namespace, given.runId)
        const effect = yield* driver.findEffect(given)
        if (row?.status !== "review" || row.seq !== given.seq || effect === null) return false
        return yield* driver.recordOutcome({ ...given, ...effect, state: given.state, outcome: given.outcome })
      }),
  })),
  mutant("an answer forgets the attempt that accounts for it", settles, (driver) => ({
    answer: (given) => driver.answer({ ...given, attempt: null }),
  })),
  mutant("an answer forgets its result", settles, (driver) => ({
    answer: (given) => driver.answer({ ...given, outcome: null }),
  })),
  mutant("an answer is taken for any commit", refused, (driver) => ({
    answer: (given) =>
      Effect.flatMap(driver.findRun(given.namespace, given.runId), (row) =>
        driver.answer({ ...given, seq: row?.seq ?? given.seq }),
      ),
  })),
  mutant("an answer unparks a run whose outcome is known", refused, (driver) => ({
    answer: (given) =>
      Effect.flatMap(driver.answer(given), (taken) =>
        taken ? Effect.succeed(true) : driver.unpark(given.namespace, given.runId),
      ),
  })),
  mutant("every answer is told that it was taken", "D19: of twenty answers", (driver) => ({
    answer: (given) => Effect.as(driver.answer(given), true),
  })),
  mutant(
    "a run that was parked anew takes an answer for what came before",
    "D19: what was answered stays",
    (driver) => ({
      answer: (given) =>
        Effect.flatMap(driver.answer(given), (taken) =>
          taken ? Effect.succeed(true) : driver.answer({ ...given, seq: given.seq + 1 }),
        ),
    }),
  ),
]

const pages: ReadonlyArray<Mutant> = [
  mutant("a page begins with the last run of the page before", lists, (driver) => ({
    listParked: (page) =>
      Effect.flatMap(driver.listParked({ ...page, after: null, limit: 1_000 }), (rows) =>
        Effect.succeed(rows.filter(({ runId }) => page.after === null || runId >= page.after).slice(0, page.limit)),
      ),
  })),
  mutant("a page holds one run more than was asked for", lists, (driver) => ({
    listParked: (page) => driver.listParked({ ...page, limit: page.limit + 1 }),
  })),
  mutant("a page is in no order", lists, (driver) => ({
    listParked: (page) => Effect.map(driver.listParked(page), (rows) => [...rows].reverse()),
  })),
]

export const answerMutants: ReadonlyArray<Mutant> = [...answers, ...pages]
