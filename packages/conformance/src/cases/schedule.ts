/** D37: schedules, and the runs that they start. */
import assert from "node:assert/strict"
import type { FireSchedule, NewScheduleRow, NextSchedules, RunRow, ScheduleRow } from "@cairn/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Case } from "../Case.js"
import { claimed, connection, create, fresh, moved, newRun, rowOf, workflow, type Bench } from "../internal/bench.js"

export const newSchedule = (bench: Bench, over: Partial<NewScheduleRow> = {}): NewScheduleRow => ({
  namespace: bench.namespace,
  scheduleId: fresh("schedule"),
  workflow: workflow.name,
  version: workflow.version,
  cron: "30 2 * * *",
  timeZone: "Europe/Berlin",
  overlap: "start",
  catchUp: "latest",
  nextAt: 1_000,
  input: '{"cents":4200}',
  ...over,
})

const put = (bench: Bench, over: Partial<NewScheduleRow> = {}) => bench.driver.putSchedule(newSchedule(bench, over))

const next = (bench: Bench, over: Partial<NextSchedules> = {}) =>
  Effect.map(
    bench.driver.nextSchedules({ namespace: bench.namespace, workflows: [workflow], limit: 100, ...over }),
    (rows) => rows.map((row) => ({ ...row })),
  )

const listed = (bench: Bench) =>
  Effect.map(bench.driver.listSchedules({ namespace: bench.namespace, after: null, limit: 100 }), (rows) =>
    rows.map((row) => ({ ...row })),
  )

export const fireOf = (
  bench: Bench,
  { nextAt, scheduleId }: Pick<ScheduleRow, "nextAt" | "scheduleId">,
  over: Partial<FireSchedule> = {},
): FireSchedule => ({
  namespace: bench.namespace,
  scheduleId,
  at: nextAt,
  lastAt: nextAt,
  nextAt: nextAt + 1_000,
  run: newRun(bench, { runId: `${scheduleId}@${nextAt}`, flowKey: "key", priority: 3 }),
  ...over,
})

const absent = (bench: Bench, runId: string) =>
  Effect.map(bench.driver.findRun(bench.namespace, runId), (row) =>
    assert.equal(row, null, `run '${runId}' was created by a firing that did nothing`),
  )

const kept: Case = {
  law: "D37",
  title: "D37: a schedule comes back as it was put; put again it is changed, and keeps what it has fired",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const now = yield* bench.driver.now
      const given = newSchedule(bench, { overlap: "skip", catchUp: "all", input: '"\\u0000 \\ud800"' })
      const made = yield* bench.driver.putSchedule(given)
      assert.ok(made.createdAt >= now)
      assert.deepEqual({ ...made }, { ...given, lastAt: null, lastRunId: null, createdAt: made.createdAt })
      assert.deepEqual(yield* listed(bench), [{ ...made }])
      yield* bench.driver.fireSchedule(fireOf(bench, made))
      const moved = { ...made, nextAt: 2_000, lastAt: 1_000, lastRunId: `${made.scheduleId}@1000` }
      assert.deepEqual(yield* listed(bench), [moved])
      const same = yield* bench.driver.putSchedule({
        ...given,
        input: null,
        overlap: "start",
        nextAt: 9_000,
        version: 2,
      })
      assert.deepEqual({ ...same }, { ...moved, input: null, overlap: "start", version: 2 })
      for (const over of [{ cron: "0 3 * * *" }, { cron: "0 3 * * *", timeZone: "UTC" }]) {
        const other = yield* bench.driver.putSchedule({ ...given, ...over, nextAt: made.nextAt + 5 })
        assert.deepEqual({ ...other }, { ...moved, ...over, nextAt: made.nextAt + 5 })
        assert.deepEqual(yield* listed(bench), [{ ...other }])
        yield* bench.driver.putSchedule({ ...given, cron: "1 1 1 1 1", nextAt: 1 })
      }
      assert.equal(yield* bench.driver.removeSchedule(bench.namespace, given.scheduleId), true)
      assert.equal(yield* bench.driver.removeSchedule(bench.namespace, given.scheduleId), false)
      assert.deepEqual(yield* listed(bench), [])
    }),
}

const pages: Case = {
  law: "D37",
  title: "D37: schedules are listed by id, and looked for by when they are due, those of the named workflows alone",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const made = [
        yield* put(bench, { scheduleId: "c", nextAt: 10 }),
        yield* put(bench, { scheduleId: "a", nextAt: 30 }),
        yield* put(bench, { scheduleId: "b", nextAt: 20 }),
      ]
      yield* put(bench, { scheduleId: "d", nextAt: 1, version: 2 })
      yield* put(bench, { scheduleId: "e", nextAt: 1, workflow: "other" })
      yield* put(bench, { scheduleId: "a", nextAt: 5, namespace: fresh("elsewhere") })
      const ids = (rows: ReadonlyArray<ScheduleRow>) => rows.map(({ scheduleId }) => scheduleId)
      assert.deepEqual(ids(yield* listed(bench)), ["a", "b", "c", "d", "e"])
      const page = { namespace: bench.namespace, limit: 2 }
      assert.deepEqual(ids(yield* bench.driver.listSchedules({ ...page, after: null })), ["a", "b"])
      assert.deepEqual(ids(yield* bench.driver.listSchedules({ ...page, after: "b" })), ["c", "d"])
      assert.deepEqual(
        yield* next(bench),
        [made[0], made[2], made[1]].map((row) => ({ ...row })),
      )
      assert.deepEqual(ids(yield* next(bench, { limit: 1 })), ["c"])
      const workflows = [workflow, { name: workflow.name, version: 2 }]
      assert.deepEqual(ids(yield* next(bench, { workflows })), ["d", "c", "b", "a"])
      assert.deepEqual(yield* next(bench, { workflows: [] }), [])
    }),
}

const once: Case = {
  law: "D37",
  title: "D37: of twenty that fire one instant one does; its run is there, and the schedule has moved on",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const made = yield* put(bench)
      const fire = fireOf(bench, made)
      const results = yield* Effect.forEach(
        Array.from({ length: 20 }, (_, n) => n),
        // Runs of their own: nothing but the schedule says that there is one.
        (n) => connection(bench, n).fireSchedule({ ...fire, run: { ...fire.run, runId: `${fire.run.runId}-${n}` } }),
        { concurrency: "unbounded" },
      )
      const fired = results.flatMap((result, n) => (result._tag === "Stale" ? [] : [[result, n] as const]))
      assert.deepEqual(
        fired.map(([result]) => result),
        [{ _tag: "Fired", created: true }],
        "an instant is fired once",
      )
      const runId = `${fire.run.runId}-${fired[0]![1]}`
      for (let n = 0; n < 20; n++) if (n !== fired[0]![1]) yield* absent(bench, `${fire.run.runId}-${n}`)
      const run = yield* rowOf(bench, { namespace: bench.namespace, runId })
      const { createdAt: _, ...wanted } = {
        ...run,
        ...fire.run,
        runId,
        status: "pending",
        seq: 0,
        fence: 0,
        createdAt: 0,
      }
      assert.deepEqual({ ...run }, { ...wanted, createdAt: run.createdAt })
      const stands = { ...made, nextAt: fire.nextAt, lastAt: fire.lastAt, lastRunId: runId }
      assert.deepEqual(yield* listed(bench), [stands])
    }),
}

const stale: Case = {
  law: "D37",
  title: "D37: a firing of an instant that is not the schedule's next, or of a schedule that is gone, does nothing",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const made = yield* put(bench)
      for (const at of [made.nextAt - 1, made.nextAt + 1]) {
        const fire = fireOf(bench, made, { at })
        assert.deepEqual(yield* bench.driver.fireSchedule(fire), { _tag: "Stale" })
        yield* absent(bench, fire.run.runId)
      }
      assert.deepEqual(yield* listed(bench), [{ ...made }])
      yield* bench.driver.removeSchedule(bench.namespace, made.scheduleId)
      assert.deepEqual(yield* bench.driver.fireSchedule(fireOf(bench, made)), { _tag: "Stale" })
      yield* absent(bench, fireOf(bench, made).run.runId)
    }),
}

const overlaps: Case = {
  law: "D37",
  title: "D37: with overlap 'skip' an instant is passed over while the run that was started last is not final",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      for (const overlap of ["start", "skip"] as const) {
        let row: ScheduleRow = yield* put(bench, { overlap })
        const current = Effect.map(listed(bench), (rows) =>
          rows.find(({ scheduleId }) => scheduleId === row.scheduleId)!,
        )
        const first = fireOf(bench, row)
        assert.deepEqual(yield* bench.driver.fireSchedule(first), { _tag: "Fired", created: true })
        row = yield* current
        const second = fireOf(bench, row)
        const skips = overlap === "skip"
        assert.deepEqual(
          yield* bench.driver.fireSchedule(second),
          skips ? { _tag: "Skipped" } : { _tag: "Fired", created: true },
        )
        row = yield* current
        assert.deepEqual([row.lastAt, row.nextAt], [second.lastAt, second.nextAt], "the schedule moves on all the same")
        assert.equal(row.lastRunId, (skips ? first : second).run.runId)
        if (!skips) continue
        yield* absent(bench, second.run.runId)
        const owner = yield* claimed(bench, first.run)
        yield* moved(bench, owner.lease, 0, { status: "canceled" })
        const third = fireOf(bench, row)
        assert.deepEqual(yield* bench.driver.fireSchedule(third), { _tag: "Fired", created: true })
        assert.equal((yield* current).lastRunId, third.run.runId)
      }
    }),
}

const existing: Case = {
  law: "D37",
  title: "D37: a run of the instant that is there already is not changed, and the schedule moves on",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const made = yield* put(bench)
      const fire = fireOf(bench, made)
      const before: RunRow = yield* create(bench, { runId: fire.run.runId, input: '"mine"' })
      assert.deepEqual(yield* bench.driver.fireSchedule(fire), { _tag: "Fired", created: false })
      assert.deepEqual(yield* rowOf(bench, before), { ...before })
      assert.equal((yield* listed(bench))[0]!.nextAt, fire.nextAt)
    }),
}

const dies: Case = {
  law: "D37",
  title: "D37: a firing that dies after any of its statements has moved the schedule and created the run, or neither",
  needs: ["failAfter"],
  run: (bench) =>
    Effect.gen(function* () {
      const made = yield* put(bench)
      const fire = fireOf(bench, made)
      for (let statements = 0; statements < 200; statements++) {
        yield* bench.store.failAfter!(statements)
        const exit = yield* Effect.exit(bench.driver.fireSchedule(fire))
        const run = yield* bench.driver.findRun(bench.namespace, fire.run.runId)
        const row = (yield* listed(bench))[0]!
        assert.equal(row.nextAt, run === null ? made.nextAt : fire.nextAt, "a firing that died did one half")
        if (Exit.isSuccess(exit) || run !== null) {
          return assert.ok(statements > 0, "the fault never struck: the hook does not reach the driver")
        }
      }
      assert.fail("the firing still failed after 200 statements")
    }),
}

export const scheduleCases: ReadonlyArray<Case> = [kept, pages, once, stale, overlaps, existing, dies]
