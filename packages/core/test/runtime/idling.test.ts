/** What a worker without work costs, and that nobody waits for it longer than it was told (field case P072). */
import { afterEach, describe, expect, vi } from "@effect/vitest"
import { Clock, Effect, Random, Schema } from "effect"
import { Cairn, fromDriver, StoreError, Workflow, type CheckpointStoreService } from "../../src/index.js"
import { adding, followClock, input, row, start, test } from "./support/adding.js"
import { intercepted, startWorker, storeLayer, type Bench } from "./support/bench.js"

afterEach(() => {
  vi.restoreAllMocks()
})

const second = 1_000
const minute = 60 * second
const leaseMs = 30 * second

/** The worker's store, with the times at which it was asked. */
const watched = (store: CheckpointStoreService) => {
  const times: Record<"claim" | "beat", Array<number>> = { claim: [], beat: [] }
  const asked = intercepted(store, (method) =>
    method === "claim" || method === "beat"
      ? Effect.map(Clock.currentTimeMillis, (now) => void times[method].push(now))
      : Effect.void,
  )
  return { store: asked, times }
}

/** The same runs, for a process of its own: nothing that it does wakes the worker. */
const elsewhere = (bench: Bench) => storeLayer(fromDriver(bench.driver))

const gaps = (times: ReadonlyArray<number>) => times.slice(1).map((time, index) => time - times[index]!)
const since = (times: ReadonlyArray<number>, from: number) => times.filter((time) => time >= from)

const elapsed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const began = yield* Clock.currentTimeMillis
    yield* effect
    return (yield* Clock.currentTimeMillis) - began
  })

describe("an idle worker", () => {
  test("looks each second for a lease's time, then ever more rarely, up to the longest pause", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      const { store, times } = watched(bench.store)
      const began = yield* Clock.currentTimeMillis
      yield* startWorker(store, { workflows: [adding()], maxPollInterval: "1 minute" })
      yield* Effect.sleep("10 minutes")
      const atFirst = gaps(times.claim.filter((time) => time <= began + leaseMs))
      expect(Math.min(...atFirst)).toBeGreaterThanOrEqual(750)
      expect(Math.max(...atFirst)).toBeLessThanOrEqual(1_000)
      const later = gaps(since(times.claim, began + 2 * minute))
      expect(Math.min(...later)).toBeGreaterThanOrEqual(45 * second)
      expect(Math.max(...later)).toBeLessThanOrEqual(minute)
      // Its heart beats for nothing but a look.
      expect(since(times.beat, began + 2 * minute)).toEqual(since(times.claim, began + 2 * minute))
    }))

  test("finds what another process has started within the longest pause: two seconds where nobody wakes it", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      yield* startWorker(bench.store, { workflows: [adding()] })
      for (let n = 0; n < 8; n++) {
        yield* Effect.sleep(2 * minute + n * 137)
        yield* Effect.provide(Cairn.start(adding(), input, { runId: `r${n}` }), elsewhere(bench))
        const done = Effect.repeat(Effect.zipRight(Effect.sleep(10), row(bench, `r${n}`)), {
          until: ({ status }) => status === "completed",
        })
        expect(yield* elapsed(done)).toBeLessThanOrEqual(2 * second + 20)
      }
    }))

  test("is there at once when it is woken, and looks each second again", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      const { store, times } = watched(bench.store)
      yield* startWorker(store, { workflows: [adding()], maxPollInterval: "1 hour" })
      yield* Effect.sleep("1 day")
      const handle = yield* start({ ...bench, store }, adding(), "r")
      expect(yield* elapsed(handle.result)).toBeLessThan(100)
      const now = yield* Clock.currentTimeMillis
      yield* Effect.sleep(3 * second)
      expect(since(times.claim, now).length).toBeGreaterThanOrEqual(2)
    }))

  test("is there when a run that went to sleep here is due, to the millisecond, however rarely it looks", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      const calls: Array<number> = []
      const patient = Workflow.make("patient", { version: 1, input: Schema.Null })
        .step("try", { effects: [], output: Schema.Int, retry: { times: 2, delay: "3 hours" } }, () =>
          Effect.flatMap(Clock.currentTimeMillis, (now) =>
            calls.push(now) < 3 ? Effect.fail(new Error("later")) : Effect.succeed(calls.length),
          ),
        )
        .output(Schema.Int, ({ results }) => results.try)
        .compile()
      yield* startWorker(bench.store, { workflows: [patient], maxPollInterval: "1 hour" })
      yield* start(bench, patient, "r", null)
      const wakeTimes: Array<number> = []
      for (let n = 0; n < 2; n++) {
        yield* Effect.sleep("1 minute")
        const { wakeAt, status } = yield* row(bench, "r")
        expect(status).toBe("sleeping")
        wakeTimes.push(wakeAt!)
        yield* Effect.sleep(wakeAt! - (yield* Clock.currentTimeMillis) + 1)
      }
      expect((yield* row(bench, "r")).status).toBe("completed")
      expect(calls.slice(1)).toEqual(wakeTimes)
    }))

  test("looks each second while its store does not answer", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      const { store, times } = watched(bench.store)
      let away = false
      const failing = intercepted(store, () =>
        away ? Effect.fail(new StoreError({ reason: "Unavailable", operation: "any", problem: "test" })) : Effect.void,
      )
      yield* startWorker(failing, { workflows: [adding()], maxPollInterval: "1 hour" })
      yield* Effect.sleep("1 day")
      const handle = yield* start(bench, adding(), "waits")
      away = true
      // It notices at this wake-up; the next ones it finds by itself.
      yield* Effect.sleep("10 minutes")
      away = false
      const back = yield* Clock.currentTimeMillis
      yield* handle.result
      expect(since(times.claim, back)[0]! - back).toBeLessThanOrEqual(second)
    }))
})

describe("a hundred idle workers", () => {
  test("that were woken together do not look together", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      const { store, times } = watched(bench.store)
      const options = { workflows: [adding()], maxPollInterval: minute }
      yield* Effect.forEach(Array.from({ length: 100 }), () => startWorker(store, options), { discard: true })
      yield* Effect.sleep("10 minutes")
      yield* (yield* start({ ...bench, store }, adding(), "r")).result
      const woken = (yield* Clock.currentTimeMillis) - 100
      yield* Effect.sleep("10 minutes")
      expect(since(times.claim, woken).filter((time) => time <= woken + 200).length).toBeGreaterThanOrEqual(100)
      const late = since(times.claim, woken + 5 * minute)
      const seconds = new Map<number, number>()
      for (const time of late) {
        const at = Math.floor(time / second)
        seconds.set(at, (seconds.get(at) ?? 0) + 1)
      }
      // Each looks once in 45 to 60 seconds: two a second, where all at once would be a hundred.
      expect(late.length).toBeLessThanOrEqual((100 * 5 * minute) / (45 * second) + 100)
      expect(Math.max(...seconds.values())).toBeLessThan(20)
    }).pipe(Effect.withRandom(Random.make("a hundred workers"))))
})

describe("a worker that rests", () => {
  test("claims only under a lease that was prolonged less than a third of it ago, and then beats as ever (D8)", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      const beats: Array<number> = []
      const claims: Array<{ readonly at: number; readonly lastBeat: number }> = []
      const held: Array<readonly [number, number]> = []
      const seen: CheckpointStoreService = {
        ...bench.store,
        beat: (workerId, ms) =>
          Effect.zipRight(
            Effect.map(Clock.currentTimeMillis, (now) => void beats.push(now)),
            bench.store.beat(workerId, ms),
          ),
        claim: (request) =>
          Effect.tap(bench.store.claim(request), (runs) =>
            runs.length === 0
              ? Effect.void
              : Effect.map(Clock.currentTimeMillis, (at) => void claims.push({ at, lastBeat: beats.at(-1)! })),
          ),
      }
      const slow = Workflow.make("slow", { version: 1, input: Schema.Int })
        .step("work", { effects: [], output: Schema.Null }, ({ input: ms }) =>
          Effect.gen(function* () {
            const began = yield* Clock.currentTimeMillis
            yield* Effect.sleep(ms)
            held.push([began, yield* Clock.currentTimeMillis])
            return null
          }),
        )
        .compile()
      yield* startWorker(seen, { workflows: [slow], maxPollInterval: "1 minute" })
      for (let n = 0; n < 60; n++) {
        yield* Effect.sleep(yield* Random.nextIntBetween(0, 3 * minute))
        const where = n % 2 === 0 ? elsewhere(bench) : storeLayer(seen)
        const ms = yield* Random.nextIntBetween(0, minute)
        yield* Effect.provide(Cairn.start(slow, ms, { runId: `r${n}` }), where)
      }
      yield* Effect.sleep("5 minutes")
      expect(held).toHaveLength(60)
      for (const { at, lastBeat } of claims) expect(at - lastBeat).toBeLessThanOrEqual(leaseMs / 3)
      for (const [from, to] of held) {
        const around = [
          ...beats.filter((at) => at <= from).slice(-1),
          ...beats.filter((at) => at > from && at <= to),
          to,
        ]
        expect(Math.max(...gaps(around))).toBeLessThanOrEqual(leaseMs / 3 + 1)
      }
      const fences = yield* Effect.forEach(Array.from({ length: 60 }), (_, n) => row(bench, `r${n}`))
      expect(fences.map(({ fence, recoveries }) => [fence, recoveries])).toEqual(fences.map(() => [1, 0]))
    }).pipe(Effect.withRandom(Random.make("rest"))))

  test("gives back what a claim has brought whose answer was lost", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      let losing = false
      const lossy: CheckpointStoreService = {
        ...bench.store,
        claim: (request) =>
          Effect.flatMap(bench.store.claim(request), (runs) => {
            if (!losing || runs.length === 0) return Effect.succeed(runs)
            losing = false
            return Effect.fail(new StoreError({ reason: "Unavailable", operation: "claim", problem: "lost" }))
          }),
      }
      yield* startWorker(lossy, { workflows: [adding()], maxPollInterval: "1 hour" })
      yield* Effect.sleep("1 day")
      losing = true
      const handle = yield* start(bench, adding(), "r")
      // A heartbeat finds it, and five seconds later it is tried again.
      expect(yield* elapsed(handle.result)).toBeLessThanOrEqual(leaseMs / 3 + 6 * second)
      expect((yield* row(bench, "r")).fence).toBe(2)
    }))
})
