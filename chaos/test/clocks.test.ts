/** Leases, wake times and deadlines are the store's: clocks and time zones of workers change nothing. */
import { Cairn, CheckpointStore, Workflow } from "@cairn/core"
import { Effect, Schema } from "effect"
import { beforeAll, describe, expect, it } from "vitest"
import { databases, load, over, usePlaces } from "./internal/places.js"
import { startWorker } from "./internal/processes.js"
import { startInProcess } from "./internal/workers.js"
import { order, orderSteps, sentTo } from "./internal/workflows.js"

const places = usePlaces()

const fiveMinutesMs = 300_000

/** A worker that is not asked for anything else is back at its runs after a poll; the rest is for a busy machine. */
const toleranceMs = 1_500

beforeAll(async () => {
  const { name, query } = places.database()
  await query(`alter database ${name} set timezone = 'Pacific/Chatham'`)
})

const input = Schema.Struct({ order: Schema.Int })

/** Fails once, and is tried again after a delay. */
const retried = (delayMs: number) => {
  const failed = new Set<number>()
  return Workflow.make("retried", { version: 1, input })
    .step("nap", { effects: [], output: Schema.Int, retry: { times: 1, delay: delayMs } }, ({ input }) =>
      Effect.suspend(() => {
        if (failed.has(input.order)) return Effect.succeed(input.order)
        failed.add(input.order)
        return Effect.fail(new Error("not yet"))
      }),
    )
    .output(Schema.Int, ({ results }) => results.nap)
    .compile()
}

describe.each(databases)("on %s", (where) => {
  it("workers five minutes ahead and behind perform each operation once, and take nothing from each other", async () => {
    const place = places.make(where)
    const runs = 40
    const body = Effect.gen(function* () {
      yield* startInProcess(place, {
        by: "ahead",
        clockMs: fiveMinutesMs,
        options: { concurrency: 4, lease: "5 seconds" },
      })
      yield* startInProcess(place, {
        by: "behind",
        clockMs: -fiveMinutesMs,
        options: { concurrency: 4, lease: "5 seconds" },
      })
      const handles = yield* Effect.forEach(Array.from({ length: runs }), (_, n) =>
        Cairn.start(order, { order: n }, { runId: `run-${n}` }),
      )
      yield* Effect.forEach(handles, ({ result }) => result, { concurrency: "unbounded" })
      return yield* Effect.forEach(handles, ({ runId }) => load(runId))
    })
    const states = await over(place, Effect.scoped(body))
    expect(states.map(({ run, steps }) => [run.fence, steps.map(({ path }) => path)])).toEqual(
      states.map(() => [1, orderSteps]),
    )
    const sent = sentTo(place.log)
    expect(new Set(sent.map(({ key }) => key)).size).toBe(runs)
    expect(sent).toHaveLength(runs)
    const at = (who: string) => sent.flatMap(({ at, by }) => (by === who ? [at] : []))
    // Both have worked, and their clocks are what they are said to be.
    expect(Math.min(...at("ahead")) - Math.max(...at("behind"))).toBeGreaterThan(1.9 * fiveMinutesMs)
  })

  it.each([
    ["ahead", fiveMinutesMs, "Asia/Kathmandu"],
    ["behind", -fiveMinutesMs, "America/Chicago"],
  ])("a worker five minutes %s is taken over when its lease has ended, not before", async (_, clockMs, zone) => {
    const place = places.make(where)
    const leaseMs = 1_000
    const orders = { store: place.address, log: place.log, name: "run", starts: 1, leaseMs, clockMs }
    const killed = startWorker({ ...orders, killAt: { step: "close" } }, { TZ: zone })
    const started = await killed.says("started")
    expect(await killed.ended, killed.output()).toBe("SIGKILL")
    const body = Effect.gen(function* () {
      yield* startInProcess(place, { by: "other", clockMs: -clockMs, options: { lease: leaseMs } })
      const handle = yield* Cairn.attach(order, { runId: "run-0" })
      expect(yield* handle.result).toBe("closed charge of 0")
      return yield* load("run-0")
    })
    const { run, steps } = await over(place, Effect.scoped(body))
    // Read in another time zone, it is the same time.
    expect(run.createdAt).toBe(started["createdAt"])
    expect(Math.abs(run.createdAt - Date.now())).toBeLessThan(60_000)
    expect(run.fence).toBe(2)
    expect(steps.map(({ path }) => path)).toEqual(orderSteps)
    const { committedAt } = steps.at(-1)!
    expect(committedAt).toBeGreaterThanOrEqual(run.previousUntil)
    expect(committedAt - run.previousUntil).toBeLessThan(toleranceMs)
    expect(run.previousUntil - steps.at(-2)!.committedAt).toBeLessThanOrEqual(leaseMs)
    expect(sentTo(place.log)).toHaveLength(1)
  })

  it("a run that sleeps is claimed once more, when it is due by the store's clock", async () => {
    const place = places.make(where)
    const workflow = retried(2_000)
    const body = Effect.gen(function* () {
      for (const clockMs of [fiveMinutesMs, -fiveMinutesMs]) {
        yield* startInProcess(place, { by: "", clockMs, workflows: [workflow] })
      }
      const handles = yield* Effect.forEach([1, 2, 3, 4], (n) => Cairn.start(workflow, { order: n }))
      yield* Effect.forEach(handles, ({ result }) => result, { concurrency: "unbounded" })
      const { loadOpen } = yield* CheckpointStore
      return yield* Effect.forEach(handles, ({ runId }) =>
        Effect.all([load(runId), loadOpen("default", runId, ["nap"])]),
      )
    })
    for (const [{ run, steps }, { attempts }] of await over(place, Effect.scoped(body))) {
      expect(run.fence).toBe(2)
      const { endedAt, retryAt } = attempts[0]!
      expect(retryAt! - endedAt).toBeGreaterThanOrEqual(2_000)
      const lateMs = steps[0]!.committedAt - retryAt!
      expect(lateMs).toBeGreaterThanOrEqual(0)
      expect(lateMs).toBeLessThan(toleranceMs)
    }
  })

  it.each([0.4, 1.5, 1_000.5, 10_000.5])("a retry after %d ms is no error, and never early", async (delayMs) => {
    const place = places.make(where)
    const workflow = retried(delayMs)
    const body = Effect.gen(function* () {
      yield* startInProcess(place, { by: "", workflows: [workflow] })
      const { findRun, loadOpen } = yield* CheckpointStore
      const { result, runId } = yield* Cairn.start(workflow, { order: 1 })
      if (delayMs > 10_000) {
        // When it would be woken is written down: nobody has to wait for it.
        const slept = yield* Effect.repeat(findRun("default", runId), { until: ({ status }) => status === "sleeping" })
        const [attempt] = (yield* loadOpen("default", runId, ["nap"])).attempts
        expect(slept.wakeAt! - attempt!.endedAt).toBeGreaterThanOrEqual(delayMs)
        return expect(slept.wakeAt).toBe(attempt!.retryAt)
      }
      expect(yield* result).toBe(1)
      const [attempt] = (yield* loadOpen("default", runId, ["nap"])).attempts
      const { steps } = yield* load(runId)
      expect(attempt!.retryAt! - attempt!.endedAt).toBeGreaterThanOrEqual(delayMs)
      expect(steps[0]!.committedAt).toBeGreaterThanOrEqual(attempt!.retryAt!)
    })
    await over(place, Effect.scoped(body))
  })

  it.each([0.4, 1.5])("a timeout of %d ms is a failure that says so, not an error of the store", async (timeoutMs) => {
    const place = places.make(where)
    const workflow = Workflow.make("timed", { version: 1, input })
      .step("late", { effects: [], output: Schema.Int, timeout: timeoutMs }, () => Effect.delay(Effect.succeed(1), 500))
      .compile()
    const body = Effect.gen(function* () {
      yield* startInProcess(place, { by: "", workflows: [workflow] })
      const { result } = yield* Cairn.start(workflow, { order: 1 })
      expect(yield* Effect.flip(result)).toMatchObject({ _tag: "RunFailed", step: "late" })
    })
    await over(place, Effect.scoped(body))
  })
})
