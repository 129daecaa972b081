/** Who asks that a run be canceled, and what becomes of the run wherever it stands (X5). */
import { describe, expect } from "@effect/vitest"
import { Clock, Deferred, Effect, Exit, Schema } from "effect"
import { Cairn, fromDriver, Workflow } from "../../src/index.js"
import { makeMortal, quiet, startWorker, storeLayer } from "./support/bench.js"
import { cancel, canceled, start, steps, trip, until, whole } from "./support/canceling.js"
import { errorOf, resumeOn, runOn, test } from "./support/paying.js"
import { order, row, world } from "./support/trips.js"

describe("a cancel", () => {
  test("of a run that nobody has claimed does nothing but end it", (bench) =>
    Effect.gen(function* () {
      const { booked, cancelled, needs } = world()
      yield* start(bench, whole)
      expect(yield* cancel(bench.store, { reason: "not needed\0" })).toBe(true)
      expect(errorOf(yield* resumeOn(bench, whole, needs))).toMatchObject(canceled("not needed\ufffd"))
      expect([booked.calls, cancelled.calls]).toEqual([[], []])
      const { cursor, failure, status } = yield* row(bench)
      expect([status, cursor]).toEqual(["canceled", "flight"])
      expect(JSON.parse(failure!)).toEqual({ kind: "canceled", step: "flight", problem: "not needed\ufffd" })
    }))

  test("of a run that sleeps before a retry does not wait for it", (bench) =>
    Effect.gen(function* () {
      const { cancelled, needs } = world()
      const workflow = trip((flow) =>
        flow.step("tries", { effects: [], output: Schema.Null, retry: { times: 3, delay: "1 hour" } }, () =>
          Effect.fail("later"),
        ),
      )
      yield* startWorker(bench.store, { workflows: [workflow] }, needs)
      const handle = yield* start(bench, workflow)
      yield* until(bench, (status) => status === "sleeping")
      const asked = yield* Clock.currentTimeMillis
      yield* cancel(bench.store)
      expect(errorOf(yield* Effect.exit(handle.result))).toMatchObject(canceled())
      expect((yield* Clock.currentTimeMillis) - asked).toBeLessThan(1_000)
      expect(order(cancelled)).toEqual(["hotel", "flight"])
      expect(yield* steps(bench)).toEqual(["flight", "hotel", "hotel/compensate", "flight/compensate"])
    }).pipe(Effect.scoped, Effect.provide(quiet)))

  test("that arrives while a run is put to sleep keeps it awake", (bench) =>
    Effect.gen(function* () {
      const { cancelled, needs } = world()
      const workflow = trip((flow) =>
        flow.step("tries", { effects: [], output: Schema.Null, retry: { times: 3, delay: "1 hour" } }, () =>
          Effect.fail("later"),
        ),
      )
      const mortal = makeMortal(bench.store, (at, { step }) =>
        // By another process: nobody here hears of it.
        at === "beforeCommit" && step === "tries"
          ? Effect.asVoid(Effect.orDie(cancel(fromDriver(bench.driver))))
          : Effect.void,
      )
      yield* startWorker(bench.store, { workflows: [workflow], lease: "1 day" }, needs, mortal.faults)
      const asked = yield* Clock.currentTimeMillis
      const handle = yield* start(bench, workflow)
      expect(errorOf(yield* Effect.exit(handle.result))).toMatchObject(canceled())
      expect((yield* Clock.currentTimeMillis) - asked).toBeLessThan(5_000)
      expect(order(cancelled)).toEqual(["hotel", "flight"])
    }).pipe(Effect.scoped, Effect.provide(quiet)))

  test("ends a run that has brought down too many workers, instead of parking it", (bench) =>
    Effect.gen(function* () {
      const { booked, needs } = world()
      yield* start(bench, whole)
      for (let n = 0; n < 6; n++) {
        yield* bench.driver.beat(`w${n}`, 1_000)
        const claimToken = `t${n}`
        const workflows = [{ name: "trip", version: 1 }]
        const asked = { namespace: "default", workerId: `w${n}`, claimToken, workflows, runIds: null, limit: 1 }
        expect(yield* bench.driver.claim(asked)).toHaveLength(1)
        yield* Effect.sleep("2 seconds")
      }
      yield* cancel(bench.store)
      expect(errorOf(yield* resumeOn(bench, whole, needs))).toMatchObject(canceled())
      expect(booked.calls).toEqual([])
    }))

  /** A workflow whose last step runs until it is interrupted. */
  const endless = () => {
    const begun = Effect.runSync(Deferred.make<void>())
    const seen = { interrupted: 0 }
    const workflow = trip((flow) =>
      flow.step("waits", { effects: [], output: Schema.Null }, () =>
        Effect.zipRight(Deferred.succeed(begun, undefined), Effect.never).pipe(
          Effect.onInterrupt(() => Effect.sync(() => seen.interrupted++)),
        ),
      ),
    )
    return { begun, seen, workflow }
  }

  test("interrupts the step that runs at once, and is no outcome of it", (bench) =>
    Effect.gen(function* () {
      const { cancelled, needs } = world()
      const { begun, seen, workflow } = endless()
      const worker = yield* startWorker(bench.store, { workflows: [workflow], lease: "5 minutes" }, needs)
      const handle = yield* start(bench, workflow)
      yield* Deferred.await(begun)
      const asked = yield* Clock.currentTimeMillis
      yield* cancel(bench.store)
      expect(errorOf(yield* Effect.exit(handle.result))).toMatchObject(canceled())
      expect((yield* Clock.currentTimeMillis) - asked).toBeLessThan(1_000)
      expect([seen.interrupted, order(cancelled)]).toEqual([1, ["hotel", "flight"]])
      // The same owner, all along; and nothing is left behind.
      const { fence, recoveries, status } = yield* row(bench)
      expect([fence, recoveries, status]).toEqual([1, 0, "canceled"])
      const { attempts } = yield* bench.driver.loadOpen("default", "r", ["waits"])
      expect(attempts).toEqual([])
      expect(yield* worker.running).toEqual([])
    }).pipe(Effect.scoped, Effect.provide(quiet)))

  test("from another process interrupts the step that runs at the next heartbeat", (bench) =>
    Effect.gen(function* () {
      const { cancelled, needs } = world()
      const { begun, seen, workflow } = endless()
      yield* startWorker(bench.store, { workflows: [workflow], lease: "30 seconds" }, needs)
      const handle = yield* start(bench, workflow)
      yield* Deferred.await(begun)
      const asked = yield* Clock.currentTimeMillis
      yield* cancel(fromDriver(bench.driver), { reason: "elsewhere" })
      expect(errorOf(yield* Effect.exit(handle.result))).toMatchObject(canceled("elsewhere"))
      // A third of the lease, and the client's own poll.
      expect((yield* Clock.currentTimeMillis) - asked).toBeLessThan(12_000)
      expect([seen.interrupted, order(cancelled)]).toEqual([1, ["hotel", "flight"]])
    }).pipe(Effect.scoped, Effect.provide(quiet)))

  test("does not touch the other runs of the worker", (bench) =>
    Effect.gen(function* () {
      const { needs } = world()
      const { begun, workflow } = endless()
      const open = Effect.unsafeMakeLatch(false)
      const other = Workflow.make("other", { version: 1, input: Schema.Null })
        .step("waits", { effects: [], output: Schema.Null }, () => Effect.as(open.await, null))
        .compile()
      yield* startWorker(bench.store, { workflows: [workflow, other] }, needs)
      const beside = yield* Effect.provide(Cairn.start(other, null, { runId: "beside" }), storeLayer(bench.store))
      const handle = yield* start(bench, workflow)
      yield* Deferred.await(begun)
      yield* cancel(bench.store)
      yield* Effect.exit(handle.result)
      yield* open.open
      expect(Exit.isSuccess(yield* Effect.exit(beside.result))).toBe(true)
      expect((yield* bench.driver.findRun("default", "beside"))!.fence).toBe(1)
    }).pipe(Effect.scoped, Effect.provide(quiet)))
})

describe("who cancels", () => {
  test("twice is told the same, and the first reason stays", (bench) =>
    Effect.gen(function* () {
      const { needs } = world()
      yield* start(bench, whole)
      expect(yield* cancel(bench.store, { reason: "first" })).toBe(true)
      expect(yield* cancel(bench.store, { reason: "second" })).toBe(true)
      expect(errorOf(yield* resumeOn(bench, whole, needs))).toMatchObject(canceled("first"))
      expect(yield* cancel(bench.store)).toBe(false)
    }))

  test("a run that has ended is told so, and nothing is changed", (bench) =>
    Effect.gen(function* () {
      const { cancelled, needs } = world()
      expect(Exit.isSuccess(yield* runOn(bench, whole, needs))).toBe(true)
      const before = yield* row(bench)
      expect(yield* cancel(bench.store)).toBe(false)
      expect(yield* row(bench)).toEqual(before)
      expect(cancelled.calls).toEqual([])
    }))

  test("no run, or a run of another namespace, gets RunNotFound", (bench) =>
    Effect.gen(function* () {
      yield* start(bench, whole)
      for (const of of [{ runId: "nobody" }, { namespace: "elsewhere" }]) {
        expect(errorOf(yield* Effect.exit(cancel(bench.store, of)))).toMatchObject({ _tag: "RunNotFound" })
      }
      expect(errorOf(yield* Effect.exit(cancel(bench.store, { runId: "" })))).toMatchObject({ _tag: "InvalidId" })
    }))
})
