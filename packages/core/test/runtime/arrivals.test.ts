/** How a worker hears of what other processes send to the runs that it executes, and what that costs (D44, field case P099). */
import { afterEach, describe, expect, vi } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber, Schema } from "effect"
import {
  Cairn,
  fromDriver,
  StoreError,
  Workflow,
  type AnyWorkflow,
  type Capabilities,
  type CheckpointStoreService,
} from "../../src/index.js"
import { reachedOf } from "../../src/store/LocalSignals.js"
import { followClock, row, test } from "./support/adding.js"
import { intercepted, startWorker, storeLayer, type Bench } from "./support/bench.js"

afterEach(() => {
  vi.restoreAllMocks()
})

/** The worker's store, as one of that kind, with the times at which it was asked for what has arrived. */
const watched = (bench: Bench, capabilities: Partial<Capabilities>) => {
  const driver = { ...bench.driver, capabilities: { ...bench.driver.capabilities, ...capabilities } }
  const looks: Array<number> = []
  const store = intercepted(fromDriver(driver), (method) =>
    method === "loadReached" ? Effect.map(Clock.currentTimeMillis, (now) => void looks.push(now)) : Effect.void,
  )
  return { looks, store }
}

const polled = { multiProcess: true, notify: false }
const told = { multiProcess: true, notify: true }

/** The same runs, for a process of its own: nothing that it does wakes the worker. */
const elsewhere = (bench: Bench) => storeLayer(fromDriver(bench.driver))

/** Starts a run whose one step does not end by itself. Gives when its signal fires. */
const patient = (store: CheckpointStoreService, runId = "r") =>
  Effect.gen(function* () {
    const clock = yield* Effect.clock
    const begun = yield* Deferred.make<void>()
    const aborted = yield* Deferred.make<number>()
    const workflow: AnyWorkflow = Workflow.make("patient", { version: 1, input: Schema.Null })
      .step("work", { effects: [], output: Schema.Void }, async ({ signal }) => {
        signal.addEventListener("abort", () =>
          Deferred.unsafeDone(aborted, Effect.succeed(clock.unsafeCurrentTimeMillis())),
        )
        Deferred.unsafeDone(begun, Effect.void)
        await new Promise(() => {})
      })
      .compile()
    const worker = yield* startWorker(store, { workflows: [workflow] })
    yield* Effect.provide(Cairn.start(workflow, null, { runId }), storeLayer(store))
    yield* Deferred.await(begun)
    return { aborted: Deferred.await(aborted), workerId: worker.workerId }
  })

/** How long after a cancel by another process the step's signal fires, in milliseconds. */
const cutOffAfter = (bench: Bench, aborted: Effect.Effect<number>, tell: Effect.Effect<void> = Effect.void) =>
  Effect.gen(function* () {
    const from = yield* Clock.currentTimeMillis
    expect(yield* Effect.provide(Cairn.cancel({ runId: "r" }), elsewhere(bench))).toBe(true)
    yield* tell
    return (yield* aborted) - from
  })

describe("a worker over a store that tells it nothing", () => {
  test("hears of a cancel by another process within a second", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      const { store } = watched(bench, polled)
      const { aborted } = yield* patient(store)
      yield* Effect.sleep("1234 millis")
      expect(yield* cutOffAfter(bench, aborted)).toBeLessThan(1_000)
    }))

  test("looks with one statement for all of its runs, 80 times a minute while it has any, and else never", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      const { looks, store } = watched(bench, polled)
      const workflow = Workflow.make("slow", { version: 1, input: Schema.Null })
        .step("work", { effects: [], output: Schema.Void }, () => Effect.sleep("1 minute"))
        .compile()
      yield* startWorker(store, { workflows: [workflow] })
      yield* Effect.sleep("10 minutes")
      expect(looks).toEqual([])
      const handles = yield* Effect.forEach(Array.from({ length: 10 }), () =>
        Effect.provide(Cairn.start(workflow, null), storeLayer(store)),
      )
      yield* Effect.forEach(handles, ({ result }) => result)
      expect(looks.length).toBeGreaterThanOrEqual(79)
      expect(looks.length).toBeLessThanOrEqual(82)
      const before = looks.length
      yield* Effect.sleep("10 minutes")
      expect(looks).toHaveLength(before)
    }))

  test("looks again after a look that failed", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      const { store } = watched(bench, polled)
      let failures = 0
      const failing = intercepted(store, (method) =>
        method === "loadReached" && failures < 3
          ? Effect.suspend(() => {
              failures++
              return new StoreError({ reason: "Unavailable", operation: "look", problem: "it is away" })
            })
          : Effect.void,
      )
      const { aborted } = yield* patient(failing)
      expect(yield* cutOffAfter(bench, aborted)).toBeLessThan(4_000)
      expect(failures).toBe(3)
    }))
})

describe("a worker over a store that tells it", () => {
  test("hears of a cancel by another process at once, and looks for nothing that it was not told of", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      const { looks, store } = watched(bench, told)
      const { aborted, workerId } = yield* patient(store)
      yield* Effect.sleep("5 minutes")
      expect(looks).toEqual([])
      expect(yield* cutOffAfter(bench, aborted, store.signals.send(reachedOf(workerId)))).toBeLessThan(50)
      expect(looks).toHaveLength(1)
    }))

  test("hears of what it is told while the answer to its claim is under way", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      const { store } = watched(bench, told)
      const claimed = yield* Deferred.make<string>()
      const slow: CheckpointStoreService = {
        ...store,
        claim: (request) =>
          Effect.tap(store.claim(request), (runs) =>
            runs.length === 0
              ? Effect.void
              : Effect.zipRight(Deferred.succeed(claimed, request.workerId), Effect.sleep("1 second")),
          ),
      }
      const running = yield* Effect.fork(patient(slow))
      const workerId = yield* Deferred.await(claimed)
      const asked = yield* Effect.fork(cutOffAfter(bench, Effect.never, store.signals.send(reachedOf(workerId))))
      const ended = Effect.repeat(Effect.zipRight(Effect.sleep(10), row(bench, "r")), {
        until: ({ status }) => status === "canceled",
      })
      expect((yield* Effect.timeout(ended, "5 seconds")).status).toBe("canceled")
      yield* Fiber.interrupt(running)
      yield* Fiber.interrupt(asked)
    }))

  test("looks at most 20 times a second, however much arrives", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      const { looks, store } = watched(bench, told)
      const { aborted, workerId } = yield* patient(store)
      const telling = Effect.zipRight(store.signals.send(reachedOf(workerId)), Effect.sleep(1))
      yield* Effect.replicateEffect(telling, 1_000, { discard: true })
      expect(looks.length).toBeGreaterThan(1)
      expect(looks.length).toBeLessThanOrEqual(21)
      expect(yield* cutOffAfter(bench, aborted, store.signals.send(reachedOf(workerId)))).toBeLessThan(100)
    }))
})

describe("a worker over a store of its own process", () => {
  test("never looks: it is told of all that there is", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      const { looks, store } = watched(bench, {})
      const { aborted } = yield* patient(store)
      yield* Effect.sleep("5 minutes")
      expect(looks).toEqual([])
      const from = yield* Clock.currentTimeMillis
      yield* Effect.provide(Cairn.cancel({ runId: "r" }), storeLayer(store))
      expect((yield* aborted) - from).toBeLessThan(50)
    }))
})
