/** The window of a run whose workers are killed, as real processes; for any SQL store, over its own database. */
import { Effects, StoreError, Workflow, type CheckpointDriver } from "@cairn/core"
import { Effect, Exit, Schema, type Scope } from "effect"
import { readFile } from "node:fs/promises"
import { expect, it } from "vitest"
import { runOn } from "./transactionSteps.js"
import type { Sent } from "./windowWorker.js"
import { logFile, ranWorker, type Place } from "./workerProcess.js"

const sentTo = (log: string) =>
  Effect.map(
    Effect.promise(() => readFile(log, "utf8")),
    (text) => {
      const byPlace = new Map<string, Array<string>>()
      for (const line of text.trim().split("\n")) {
        const { place, text } = JSON.parse(line) as Sent
        byPlace.set(place, [...(byPlace.get(place) ?? []), text])
      }
      return byPlace
    },
  )

const states = (driver: CheckpointDriver, runId: string) =>
  Effect.map(
    driver.loadSteps({
      namespace: "default",
      runId,
      scopes: [":window["],
      newestFirst: false,
      after: null,
      limit: null,
      withResults: true,
    }),
    (records) => records.map(({ result }) => result),
  )

const compaction = String.raw`:window\[\d+\]/compact`

const faults = [
  String.raw`beforeCommit:turns\[0\]/think`,
  String.raw`afterCommit:turns\[0\]/book`,
  `afterGate:${compaction}`,
  `afterCommit:${compaction}`,
  String.raw`beforeCommit:turns\[4\]/book`,
]

/** As the model is sent it: of a number that is negative and zero, JSON keeps the sign, and `JSON.stringify` does not. */
const asSent = (text: string | null): string => JSON.stringify(JSON.parse(text ?? "null"))

const lost = new StoreError({
  reason: "Unavailable",
  operation: "commit a transaction",
  problem: "the connection was lost",
  cause: null,
})

/** Registers the tests; `open` gives a place without a run. */
export const windowsOfKilledWorkers = (open: Effect.Effect<Place, unknown, Scope.Scope>): void => {
  it(
    "a run whose workers are killed sends the model the same bytes again, and ends with the window of one that was left alone",
    () =>
      Effect.runPromise(
        Effect.scoped(
          Effect.gen(function* () {
            const place = yield* open
            const [log, quietLog] = yield* Effect.all([logFile, logFile])
            const alone = yield* ranWorker(place, quietLog, "alone", "")
            expect(alone.output).toMatch(/^\d+$/)
            for (const fault of faults) {
              const { output, signal } = yield* ranWorker(place, log, "r", fault)
              expect(signal, `${fault}\n${output}`).toBe("SIGKILL")
            }
            expect((yield* ranWorker(place, log, "r", "")).output).toBe(alone.output)

            const [sent, undisturbed] = yield* Effect.all([sentTo(log), sentTo(quietLog)])
            const repeated = [...sent].filter(([, texts]) => texts.length > 1)
            expect(repeated.length).toBeGreaterThan(2)
            for (const [at, texts] of sent) expect([at, ...new Set(texts)]).toEqual([at, undisturbed.get(at)![0]])
            expect(sent.size).toBe(undisturbed.size)
            expect([...sent.keys()].filter((at) => at.startsWith("compact")).length).toBeGreaterThan(2)

            // The arms come in any order; what was there before them is the same, and is what was sent.
            const [stored, expected] = yield* Effect.all([states(place.driver, "r"), states(place.driver, "alone")])
            expect(stored.slice(0, -2)).toEqual(expected.slice(0, -2))
            for (const texts of sent.values()) expect(stored.map(asSent)).toContain(texts[0])
          }),
        ),
      ),
    180_000,
  )

  it("a transaction step changes the window together with what it writes, also where its COMMIT was not answered", () =>
    Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const { driver } = yield* open
          let unanswered = 0
          const deaf: CheckpointDriver = {
            ...driver,
            transact: (limits, body) =>
              Effect.flatMap(driver.transact!(limits, body), (answer) =>
                unanswered++ === 0 ? Effect.fail(lost) : Effect.succeed(answer),
              ),
          }
          let tries = 0
          const book = {
            effects: [Effects.transaction],
            output: Schema.Void,
            onInvalid: { retries: 1, then: "fail" },
          } as const
          const workflow = Workflow.make("booking", {
            version: 1,
            input: Schema.Null,
            window: { schema: Schema.Array(Schema.String), initial: [] },
          })
            .step("first", book, ({ changeWindow }) => changeWindow((notes) => [...notes, "first"]))
            .step("second", book, ({ changeWindow }) => {
              tries += 1
              changeWindow((notes) => (tries === 1 ? (7 as never) : [...notes, "second"]))
            })
            .step("look", { effects: [], output: Schema.String }, ({ window }) => window.join())
            .output(Schema.String, ({ results }) => results.look)
            .compile()
          expect(yield* runOn(deaf, workflow)).toEqual(Exit.succeed("first,second"))
          expect([unanswered, tries]).toEqual([2, 2])
          expect(yield* states(driver, "r")).toEqual(["[]", '["first"]', '["first","second"]'])
        }),
      ),
    ))
}
