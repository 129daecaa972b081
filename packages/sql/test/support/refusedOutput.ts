/** One run of many whose output the database refuses (law W5), over any SQL store. */
import {
  Cairn,
  CheckpointStore,
  contextFromDriver,
  Worker,
  Workflow,
  type AnyWorkflow,
  type CheckpointDriver,
} from "@cairn/core"
import { Effect, Layer, Logger, Schema, type Scope } from "effect"
import { afterEach, beforeEach, describe, expect, it } from "vitest"

export interface Place {
  readonly driver: CheckpointDriver
  /** JSON that fits every schema and that the database does not take. */
  readonly refused: unknown
}

/** A Standard Schema that takes whatever is JSON. */
const anything = { "~standard": { version: 1, vendor: "test", validate: (value: unknown) => ({ value }) } } as const

const runs = 500
const odd = 250
const others = Array.from({ length: runs }, (_, n) => n).filter((n) => n !== odd)
const runIdOf = (n: number): string => `run-${n}`

/** The second step sees to it that every run is in the buffer when the first is written. */
const workflowOf = (refused: unknown): AnyWorkflow =>
  (Workflow.make as any)("outputs", { version: 1, input: Schema.Int })
    .step("a", { effects: [], output: anything }, ({ input }: any) => (input === odd ? refused : input))
    .step("b", { effects: [], output: Schema.Int }, ({ input }: any) => input)
    .output(Schema.Int, ({ results }: any) => results.b)
    .compile()

export const refusesOneOutput = (name: string, open: Effect.Effect<Place, unknown, Scope.Scope>): void => {
  describe(`${name}: one run of 500 whose output the database refuses`, () => {
    const unheard: Array<unknown> = []
    const note = (reason: unknown): void => void unheard.push(reason)
    beforeEach(() => {
      unheard.length = 0
      process.on("unhandledRejection", note)
      process.on("uncaughtExceptionMonitor", note)
    })
    afterEach(() => {
      process.off("unhandledRejection", note)
      process.off("uncaughtExceptionMonitor", note)
    })

    it.each(["barrier", "step"] as const)(
      "is parked alone; the others complete, each by its first owner (%s)",
      (durability) =>
        Effect.gen(function* () {
          const { driver, refused } = yield* open
          const workflow = workflowOf(refused)
          expect(workflow.diagnostics).toEqual([])
          const said: Array<string> = []
          const live = Worker.layer({ workflows: [workflow], concurrency: runs, durability }).pipe(
            Layer.provideMerge(Layer.succeedContext(contextFromDriver(driver))),
            Layer.provide(
              Logger.replace(
                Logger.defaultLogger,
                Logger.make(({ message }) => void said.push(String(message))),
              ),
            ),
          )
          yield* Effect.gen(function* () {
            const given = Array.from({ length: runs }, (_, n) => ({ input: n, runId: runIdOf(n) }))
            const started = yield* Cairn.startMany(workflow, given)
            const handles = yield* Effect.all(started)
            const results = yield* Effect.forEach(others, (n) => handles[n]!.result, { concurrency: "unbounded" })
            expect(results).toEqual(others)
            const left = () => said.filter((line) => line.includes("left this worker"))
            yield* Effect.repeat(Effect.sleep(10), { until: () => left().length > 0 })
            expect(left()).toEqual([`run '${runIdOf(odd)}' left this worker`])
            // Given back, it would do the same again, and pay for it again.
            const parked = yield* Effect.flip(handles[odd]!.result)
            expect(parked).toMatchObject({ _tag: "RunParked", reason: "CommitRefused" })
            const store = yield* CheckpointStore
            for (const n of others) expect(yield* store.findRun("default", runIdOf(n))).toMatchObject({ fence: 1 })
            const { run, steps } = yield* store.load("default", runIdOf(odd))
            expect([run.seq, run.status, steps]).toEqual([1, "review", []])
            expect(yield* Effect.flatMap(Worker, ({ running }) => running)).toEqual([])
          }).pipe(Effect.provide(live))
          expect(unheard).toEqual([])
        }).pipe(Effect.scoped, (body) => Effect.runPromise(body as Effect.Effect<void, unknown>)),
    )
  })
}
