/** Schedules as people make them and workers fire them (D37; field case P139). */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Schema, TestClock } from "effect"
import { Cairn, Workflow, type CheckpointDriver, type CheckpointStoreService } from "../../src/index.js"
import { makeBench, quiet, refuseUnhandled, startWorker, storeLayer } from "./support/bench.js"

refuseUnhandled()

const report = (priority = 0) =>
  Workflow.make("report", {
    version: 1,
    input: Schema.Struct({ of: Schema.String }),
    limits: { perKey: { key: ({ input }) => input.of } },
    priority,
  })
    .step("write", { effects: [], output: Schema.String }, ({ input }) => input.of)
    .compile()

const berlin = { id: "nightly", cron: "30 2 * * *", timeZone: "Europe/Berlin", input: { of: "sales" } } as const

const set = (at: string) => TestClock.setTime(Date.parse(at))

/** Lets time pass in steps in which everything that is due is done. */
const pass = (hours: number, minutesAtOnce = 30) =>
  Effect.repeatN(TestClock.adjust(`${minutesAtOnce} minutes`), (hours * 60) / minutesAtOnce - 1)

const worker = (store: CheckpointStoreService, workflow = report()) =>
  startWorker(store, { workflows: [workflow], lease: "1 day", pollInterval: "30 minutes" })

const idsOf = (driver: CheckpointDriver) =>
  Effect.map(
    driver.listRuns({
      ...{ namespace: "default", workflow: null, statuses: null, parentRunId: null },
      ...{ createdFrom: null, createdBefore: null, after: null, limit: 100 },
    }),
    (rows) => rows.map(({ runId }) => runId).sort(),
  )

describe("a schedule", () => {
  it.scoped("starts a run for each wall time, over the change of the clocks, under an id that bears the instant", () =>
    Effect.gen(function* () {
      const { driver, store } = yield* makeBench
      yield* set("2026-10-23T12:00Z")
      yield* Effect.provide(Cairn.schedule(report(3), berlin), storeLayer(store))
      yield* worker(store, report(3))
      yield* pass(72)
      expect(yield* idsOf(driver)).toEqual([
        "nightly@2026-10-24T00:30:00.000Z",
        "nightly@2026-10-25T00:30:00.000Z",
        "nightly@2026-10-26T01:30:00.000Z",
      ])
      const run = (yield* driver.findRun("default", "nightly@2026-10-25T00:30:00.000Z"))!
      expect([run.status, run.flowKey, run.priority, run.input]).toEqual(["completed", "sales", 3, '{"of":"sales"}'])
    }).pipe(Effect.provide(quiet)),
  )

  it.scoped("is fired once by many workers, and once more by none that starts within the doubled hour", () =>
    Effect.gen(function* () {
      const { driver, store } = yield* makeBench
      yield* set("2026-10-25T00:00Z")
      yield* Effect.provide(Cairn.schedule(report(), berlin), storeLayer(store))
      for (let n = 0; n < 4; n++) yield* worker(store)
      yield* pass(1)
      expect(yield* idsOf(driver)).toEqual(["nightly@2026-10-25T00:30:00.000Z"])
      // A restart: whatever is kept about it stands in the store.
      yield* Effect.scoped(Effect.zipRight(worker(store), pass(2)))
      expect(yield* idsOf(driver)).toEqual(["nightly@2026-10-25T00:30:00.000Z"])
    }).pipe(Effect.provide(quiet)),
  )

  it.scoped("makes good the latest of what was missed, or each", () =>
    Effect.gen(function* () {
      const { driver, store } = yield* makeBench
      yield* set("2026-06-01T12:00Z")
      yield* Effect.provide(
        Effect.zipRight(
          Cairn.schedule(report(), { ...berlin, id: "latest" }),
          Cairn.schedule(report(), { ...berlin, id: "all", catchUp: "all" }),
        ),
        storeLayer(store),
      )
      yield* set("2026-06-04T12:00Z")
      yield* worker(store)
      yield* pass(1)
      const missed = [2, 3, 4].map((day) => `2026-06-0${day}T00:30:00.000Z`)
      expect(yield* idsOf(driver)).toEqual([...missed.map((at) => `all@${at}`), `latest@${missed[2]}`])
      const [all] = yield* Effect.provide(Cairn.schedules({ limit: 1 }), storeLayer(store))
      expect(all!.nextAt.toISOString()).toBe("2026-06-05T00:30:00.000Z")
      expect([all!.lastAt!.toISOString(), all!.lastRunId]).toEqual([missed[2], `all@${missed[2]}`])
    }).pipe(Effect.provide(quiet)),
  )

  it.scoped("starts none while the last one goes on, where it says so", () =>
    Effect.gen(function* () {
      const { driver, store } = yield* makeBench
      const long = Workflow.make("long", { version: 1, input: Schema.String })
        .step("work", { effects: [], output: Schema.Void }, () => Effect.sleep("90 minutes"))
        .compile()
      yield* set("2026-06-01T00:30Z")
      const hourly = { id: "hourly", cron: "0 * * * *", timeZone: "UTC", input: "x", overlap: "skip" } as const
      yield* Effect.provide(Cairn.schedule(long, hourly), storeLayer(store))
      yield* startWorker(store, { workflows: [long], lease: "1 day", pollInterval: "30 minutes" })
      yield* pass(5)
      // What goes on is let end: a worker that stops would wait for it on a clock that stands still.
      yield* Effect.provide(Cairn.unschedule({ id: "hourly" }), storeLayer(store))
      yield* pass(2)
      expect(yield* idsOf(driver)).toEqual([1, 3, 5].map((hour) => `hourly@2026-06-01T0${hour}:00:00.000Z`))
    }).pipe(Effect.provide(quiet)),
  )

  it.scoped("that is put while a worker waits is fired in time; one that is removed is not", () =>
    Effect.gen(function* () {
      const { driver, store } = yield* makeBench
      yield* set("2026-06-01T00:00:50Z")
      yield* worker(store)
      yield* TestClock.adjust(1)
      const put = Cairn.schedule(report(), { ...berlin, cron: "* * * * *" })
      yield* Effect.provide(put, storeLayer(store))
      // Sooner than it looks by itself.
      yield* TestClock.adjust("10 seconds")
      expect(yield* idsOf(driver)).toEqual(["nightly@2026-06-01T00:01:00.000Z"])
      expect(yield* Effect.provide(Cairn.unschedule({ id: "nightly" }), storeLayer(store))).toBe(true)
      expect(yield* Effect.provide(Cairn.unschedule({ id: "nightly" }), storeLayer(store))).toBe(false)
      yield* pass(1)
      expect(yield* idsOf(driver)).toHaveLength(1)
    }).pipe(Effect.provide(quiet)),
  )

  it.scoped("of another version, or one that cannot be read, is left alone and keeps no other waiting", () =>
    Effect.gen(function* () {
      const { driver, store } = yield* makeBench
      yield* set("2026-06-01T00:00Z")
      const row = {
        ...{ namespace: "default", workflow: "report", version: 1, cron: "* * * * *", timeZone: "UTC" },
        ...({ overlap: "start", catchUp: "latest" } as const),
        ...{ nextAt: Date.parse("2026-06-01T00:30Z"), input: '{"of":"x"}' },
      }
      yield* driver.putSchedule({ ...row, scheduleId: "a", cron: "at noon" })
      yield* driver.putSchedule({ ...row, scheduleId: "b", input: '{"of":1}' })
      yield* driver.putSchedule({ ...row, scheduleId: "c", version: 2 })
      yield* driver.putSchedule({ ...row, scheduleId: "d", cron: "30 * * * *" })
      let looks = 0
      yield* worker({
        ...store,
        nextSchedules: (asked) =>
          Effect.zipRight(
            Effect.sync(() => looks++),
            store.nextSchedules(asked),
          ),
      })
      yield* pass(2)
      expect(yield* idsOf(driver)).toEqual(["d@2026-06-01T00:30:00.000Z", "d@2026-06-01T01:30:00.000Z"])
      // When something is due, as often as it polls, and not in a loop.
      expect(looks).toBeLessThan(15)
    }).pipe(Effect.provide(quiet)),
  )
})

describe("Cairn.schedule", () => {
  const put = (over: object) =>
    Effect.gen(function* () {
      const { store } = yield* makeBench
      const made = yield* Effect.exit(Cairn.schedule(report(), { ...berlin, ...over })).pipe(
        Effect.provide(storeLayer(store)),
      )
      return { made, listed: yield* Effect.provide(Cairn.schedules(), storeLayer(store)) }
    })

  it.effect.each<readonly [string, object]>([
    ["InvalidSchedule", { cron: "every day" }],
    ["InvalidSchedule", { cron: "0 0 30 2 *" }],
    ["InvalidSchedule", { timeZone: "Berlin" }],
    ["InvalidSchedule", { overlap: "queue" }],
    ["InvalidSchedule", { catchUp: "none" }],
    ["InvalidSchedule", { id: "i".repeat(231) }],
    ["InvalidId", { id: "" }],
    ["InvalidId", { namespace: "" }],
    ["InvalidValue", { input: { of: 3 } }],
    ["InvalidId", { input: { of: "" } }],
  ])("fails with %s for %j, and makes nothing", ([tag, over]) =>
    Effect.gen(function* () {
      const { listed, made } = yield* put(over)
      expect(Exit.isFailure(made) && made.cause).toMatchObject({ _tag: "Fail", error: { _tag: tag } })
      expect(listed).toEqual([])
    }),
  )

  it.effect("changes a schedule, and loses nothing that was missed where its times stay the same", () =>
    Effect.gen(function* () {
      const { store } = yield* makeBench
      yield* set("2026-06-01T12:00Z")
      const again = (over: object) =>
        Effect.provide(Cairn.schedule(report(), { ...berlin, ...over }), storeLayer(store))
      const first = yield* again({})
      yield* set("2026-06-05T12:00Z")
      expect((yield* again({ overlap: "skip" })).nextAt).toEqual(first.nextAt)
      const other = yield* again({ cron: "30 3 * * *" })
      expect(other.nextAt.toISOString()).toBe("2026-06-06T01:30:00.000Z")
      expect([other.overlap, other.catchUp]).toEqual(["start", "latest"])
    }),
  )
})
