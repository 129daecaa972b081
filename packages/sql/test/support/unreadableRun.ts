/** A run whose row cannot be read: it stops none of its neighbours (law D14, field case P106), over any SQL store. */
import { Cairn, CheckpointStore, contextFromDriver, Worker, Workflow, type CheckpointDriver } from "@cairn/core"
import { Effect, Layer, Logger, Schema, type Scope } from "effect"
import { describe, expect, it } from "vitest"
import { commitOf, leaseOf } from "../../../conformance/src/internal/bench.js"

export interface Place {
  readonly driver: CheckpointDriver
  /** Sets columns of one run, past the driver. */
  readonly set: (runId: string, assignments: string) => Effect.Effect<unknown, unknown>
  readonly setSchedule: (scheduleId: string, assignments: string) => Effect.Effect<unknown, unknown>
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

    /** Two runs that one worker holds. */
    const held = (driver: CheckpointDriver) =>
      Effect.gen(function* () {
        for (const runId of ["bad", "good"]) yield* Cairn.start(twice, 1, { runId })
        yield* driver.beat("w", 60_000)
        const workflows = [{ name: "twice", version: 1 }]
        const of = { namespace: "default", workerId: "w", claimToken: "token", workflows, runIds: null, limit: 2 }
        const rows = yield* driver.claim(of)
        const leaseOfRun = (id: string) => leaseOf(rows.find(({ runId }) => runId === id)!)
        return { bad: leaseOfRun("bad"), good: leaseOfRun("good") }
      })

    it(
      "takes no other run from the worker that holds both: its heartbeat goes on",
      over(({ driver, set }) =>
        Effect.gen(function* () {
          const { good } = yield* held(driver)
          yield* set("bad", "inbox = 9007199254740993")
          yield* set("good", "inbox = 1")
          const { leases } = yield* driver.beat("w", 60_000)
          expect(leases).toMatchObject([
            {
              runId: "bad",
              fence: 1,
              claimToken: "token",
              unreadable: { reason: "Corrupt", operation: "read run 'bad'" },
            },
            { ...good, inbox: 1 },
          ])
          expect(leases[0]!.inbox).toBeGreaterThan(1)
          expect(yield* driver.loadReached("w")).toEqual([{ ...good, inbox: 1 }])
        }),
      ),
    )

    it(
      "is refused, and its neighbours in the same batch of commits are written",
      over(({ driver, set }) =>
        Effect.gen(function* () {
          const { bad, good } = yield* held(driver)
          yield* set("bad", "fence = 9007199254740993")
          expect(yield* driver.commit([commitOf(bad, 0), commitOf(good, 0)])).toMatchObject([
            { _tag: "Refused", run: { seq: 0, claimToken: "token" } },
            { _tag: "Committed" },
          ])
          expect(yield* driver.findRun("default", "good")).toMatchObject({ seq: 1 })
        }),
      ),
    )

    it(
      "is shown among those who wait for a person",
      over(({ driver, set }) =>
        Effect.gen(function* () {
          const { bad, good } = yield* held(driver)
          const parked = JSON.stringify({ reason: "OperationUnknown", step: "double", problem: "the answer was lost" })
          const wait = { path: "ok", kind: "review", name: "review-1", data: '{"shown":1}', wake: null } as const
          const into = (lease: typeof bad) =>
            commitOf(lease, 0, { steps: [], waits: [wait], run: { status: "review", parked, release: true } })
          yield* driver.commit([into(bad), into(good)])
          yield* set("bad", "version = 9007199254740993")
          expect(yield* Cairn.parked()).toMatchObject([
            {
              runId: "bad",
              reason: "Unreadable",
              problem: "The store could not read run 'bad' (Corrupt): column 'version' holds no integer up to 2^53 - 1",
            },
            { runId: "good", reason: "OperationUnknown" },
          ])
          const { reviews } = yield* Cairn.reviews()
          expect(new Map(reviews.map(({ runId, unreadable }) => [runId, unreadable]))).toEqual(
            new Map([
              ["bad", true],
              ["good", false],
            ]),
          )
          yield* set("bad", "version = 1, parked = '{}'")
          expect(yield* Cairn.parked()).toMatchObject([
            { runId: "bad", reason: "Unreadable" },
            { runId: "good", reason: "OperationUnknown" },
          ])
        }),
      ),
    )

    it(
      "or a schedule that cannot: the others are fired, and the list says which it is",
      over(({ driver, setSchedule }) =>
        Effect.gen(function* () {
          for (const scheduleId of ["bad", "good"]) {
            yield* Cairn.schedule(twice, { id: scheduleId, cron: "0 9 * * *", timeZone: "UTC", input: 1 })
          }
          yield* setSchedule("bad", "created_at = 9007199254740993")
          const workflows = [{ name: "twice", version: 1 }]
          const next = yield* driver.nextSchedules({ namespace: "default", workflows, limit: 10 })
          expect(next).toMatchObject([{ scheduleId: "good" }])
          expect(yield* Effect.flip(Cairn.schedules())).toMatchObject({ operation: "read schedule 'bad'" })
        }),
      ),
    )
  })
}
