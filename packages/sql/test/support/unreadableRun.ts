/** A run whose row cannot be read: it stops none of its neighbours (law D14, field case P106), over any SQL store. */
import { Cairn, CheckpointStore, contextFromDriver, Worker, Workflow, type CheckpointDriver } from "@cairn/core"
import { Effect, Layer, Logger, Schema, type Scope } from "effect"
import { describe, expect, it } from "vitest"

export interface Place {
  readonly driver: CheckpointDriver
  /** Sets columns of one run, past the driver. */
  readonly set: (runId: string, assignments: string) => Effect.Effect<unknown, unknown>
}

const twice = Workflow.make("twice", { version: 1, input: Schema.Int })
  .step("double", { effects: [], output: Schema.Int }, ({ input }) => input * 2)
  .output(Schema.Int, ({ results }) => results.double)
  .compile()

/** Past what a number holds: 2^53 + 1. */
const spoiled = "recoveries = 9007199254740993"

export const stopsNoNeighbour = (name: string, open: Effect.Effect<Place, unknown, Scope.Scope>): void => {
  const over = (body: (place: Place) => Effect.Effect<void, unknown, CheckpointStore | Scope.Scope>) => () =>
    open.pipe(
      Effect.flatMap((place) => Effect.provide(body(place), contextFromDriver(place.driver))),
      Effect.scoped,
      (whole) => Effect.runPromise(whole as Effect.Effect<void, unknown>),
    )

  describe(`${name}: a run whose row cannot be read`, () => {
    it(
      "is left alone by the worker, which says so and executes the others; mended, it goes on",
      over(({ set }) =>
        Effect.gen(function* () {
          const said: Array<string> = []
          const worker = Worker.layer({ workflows: [twice], concurrency: 1, pollInterval: 20 }).pipe(
            Layer.provide(
              Logger.replace(
                Logger.defaultLogger,
                Logger.make(({ message }) => void said.push([message].flat().map(String).join(" "))),
              ),
            ),
          )
          // The oldest of those that are due, again and again, and the worker takes one at a time.
          const bad = yield* Cairn.start(twice, 1, { runId: "bad" })
          yield* set("bad", spoiled)
          const good = yield* Effect.forEach([2, 3, 4], (n) => Cairn.start(twice, n, { runId: `good-${n}` }))
          yield* Effect.gen(function* () {
            expect(yield* Effect.all(good.map(({ result }) => result))).toEqual([4, 6, 8])
            expect(said.filter((line) => line.includes("is left alone"))).toEqual([
              "a run that is due cannot be read, and is left alone: mend the column that is named, and set its lease_owner to null StoreError: The store could not claim run 'bad' (Corrupt): column 'recoveries' holds no integer up to 2^53 - 1",
            ])
            expect(yield* Effect.flip(bad.result)).toMatchObject({ _tag: "StoreError", reason: "Corrupt" })
            yield* set("bad", "recoveries = 0, lease_owner = null")
            const again = yield* Cairn.attach(twice, { runId: "bad" })
            expect(yield* again.result).toBe(2)
          }).pipe(Effect.provide(worker))
        }),
      ),
    )

    it(
      "is listed as unreadable, with the rest of it, among the others",
      over(({ set }) =>
        Effect.gen(function* () {
          for (const runId of ["one", "bad", "two"]) yield* Cairn.start(twice, 1, { runId })
          yield* set("bad", spoiled)
          const { runs } = yield* Cairn.list()
          expect(new Map(runs.map(({ runId, unreadable }) => [runId, unreadable?.message ?? null]))).toEqual(
            new Map([
              ["one", null],
              ["two", null],
              [
                "bad",
                "The store could not read run 'bad' (Corrupt): column 'recoveries' holds no integer up to 2^53 - 1",
              ],
            ]),
          )
          expect(runs.find(({ runId }) => runId === "bad")).toMatchObject({ workflow: "twice", status: "pending" })
        }),
      ),
    )

    it(
      "fails those who wait for it and nobody else, where one look is for all of them",
      over(({ driver, set }) =>
        Effect.gen(function* () {
          const store = yield* CheckpointStore
          const runIds = ["one", "bad", "two"]
          for (const runId of runIds) yield* Cairn.start(twice, 1, { runId })
          yield* set("bad", spoiled)
          const keys = runIds.map((runId) => ({ namespace: "default", runId }))
          expect(yield* store.findRuns(keys)).toMatchObject([
            { _tag: "Right", right: { runId: "one" } },
            { _tag: "Left", left: { _tag: "StoreError", reason: "Corrupt" } },
            { _tag: "Right", right: { runId: "two" } },
          ])
          expect(yield* Effect.flip(driver.findRun("default", "bad"))).toMatchObject({ reason: "Corrupt" })
        }),
      ),
    )
  })
}
