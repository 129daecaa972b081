/** What paid calls are known to have cost where workers are killed, as real processes; for any SQL store. */
import { Cairn, contextFromDriver } from "@cairn/core"
import { Effect, Layer, type Scope } from "effect"
import { readFile } from "node:fs/promises"
import { expect, it } from "vitest"
import { turns, type Bill } from "./paidWorker.js"
import { logFile, ranWorker, type Place } from "./workerProcess.js"

const billed = (log: string) =>
  Effect.map(
    Effect.promise(() => readFile(log, "utf8")),
    (text) =>
      text
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as Bill),
  )

const think = (turn: number) => String.raw`agent\[${turn}\]/think`

/** Where the workers die: in the order of the run, twice at the same place, and at each point around a call. */
const faults = [
  "afterCall:plan",
  "beforeCall:plan",
  `beforeCall:${think(0)}`,
  `afterCall:${think(2)}`,
  `afterUsage:${think(2)}`,
  `beforeCommit:${think(5)}`,
  `afterCommit:${think(7)}`,
  `afterCall:${think(11)}`,
  `afterCall:${think(11)}`,
  "beforeCommit:sum",
]

const sum = (numbers: ReadonlyArray<number>): number => numbers.reduce((total, each) => total + each, 0)

/** Registers the test; `open` gives a place without a run. */
export const paidByKilledWorkers = (open: Effect.Effect<Place, unknown, Scope.Scope>): void => {
  it(
    "ten kills in a run of twenty paid steps: what is known and what is reported unknown covers the provider's bills, nothing twice",
    () =>
      Effect.runPromise(
        Effect.scoped(
          Effect.gen(function* () {
            const place = yield* open
            const log = yield* logFile
            for (const fault of faults) {
              const { output, signal } = yield* ranWorker(place, log, "r", fault)
              expect(signal, `${fault}\n${output}`).toBe("SIGKILL")
            }
            expect((yield* ranWorker(place, log, "r", "")).output).toBe("3000")

            const store = Layer.succeedContext(contextFromDriver(place.driver))
            const cost = (by: "step" | "outcome") => Effect.provide(Cairn.cost({ by, limit: 100 }), store)
            const spend = yield* Effect.provide(Cairn.spend({ runId: "r" }), store)
            const bills = yield* billed(log)
            const [total] = yield* Effect.provide(Cairn.cost({ by: "run" }), store)

            // Killed after the provider had billed and before that was stored: four times. Killed before it was asked: twice.
            const [unseen, unasked] = [4, 2]
            expect(total!.calls).toBe(bills.length + unasked)
            expect(total!.unknown).toBe(unseen + unasked)
            expect(total!.unknown).toBeLessThanOrEqual(faults.length)
            const lost = [1_000, 2_002, 2_011, 2_011]
            expect(sum(bills.map(({ microDollars }) => microDollars)) - total!.microDollars).toBe(sum(lost))
            // What is not known may have cost as much as was reserved for it: the bills are covered.
            expect(total!.reserved).toBe(5_000 * total!.unknown)
            expect(spend).toEqual({
              spent: total!.microDollars,
              reserved: total!.reserved,
              calls: total!.calls,
              unknown: 0,
            })

            const outcomes = new Map((yield* cost("outcome")).map((row) => [row.key, row]))
            const once = 1_000 + sum(Array.from({ length: turns }, (_, turn) => 2_000 + turn)) + 3_000
            expect(outcomes.get("kept")).toMatchObject({ calls: turns + 2, microDollars: once, unknown: 0 })
            expect(outcomes.get("lost")!.microDollars).toBe(total!.microDollars - once)
            // Begun anew after each kill, the run would have paid again for what was kept.
            expect(outcomes.get("kept")!.saved).toBeGreaterThan(once)
            expect(outcomes.get("kept")!.saved).toBe(total!.saved)
          }),
        ),
      ),
    180_000,
  )
}
