/** A worker that stops: it drains, gives back what it holds, and waits for nobody for ever (W7; field cases P053, P054). */
import { describe, expect } from "@effect/vitest"
import { Clock, Deferred, Effect, Exit, Schema, Scope } from "effect"
import { Cairn, type AnyWorkflow } from "../../src/index.js"
import { adding, make, row, start, test } from "./support/adding.js"
import { intercepted, refuseUnhandled, startWorker, storeLayer, type Bench } from "./support/bench.js"
import { Charge, chargeAt, Provider } from "./support/operations.js"

refuseUnhandled()

describe("a worker that stops", () => {
  const long = (log: Array<string>, duration: string): AnyWorkflow =>
    make("long")
      .step("first", { effects: [], output: Schema.Null }, () =>
        Effect.sync(() => log.push("begun")).pipe(
          Effect.zipRight(Effect.sleep(duration as never)),
          Effect.zipRight(Effect.sync(() => log.push("ended"))),
          Effect.onInterrupt(() => Effect.sync(() => log.push("interrupted"))),
          Effect.as(null),
        ),
      )
      .step("second", { effects: [], output: Schema.Null }, () => {
        log.push("second")
        return null
      })
      .compile()

  const stopping = (bench: Bench, workflow: AnyWorkflow, log: ReadonlyArray<string>, options: object = {}) =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      yield* Scope.extend(startWorker(bench.store, { workflows: [workflow], concurrency: 1, ...options }), scope)
      yield* start(bench, workflow, "r")
      yield* Effect.repeat(Effect.sleep(10), { until: () => log.length > 0 })
      yield* start(bench, workflow, "waiting")
      const asked = yield* Clock.currentTimeMillis
      yield* Scope.close(scope, Exit.void)
      return (yield* Clock.currentTimeMillis) - asked
    })

  test("lets the step under way end, begins no other, and claims nothing", (bench) =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const tookMs = yield* stopping(bench, long(log, "5 seconds"), log)
      expect(log).toEqual(["begun", "ended"])
      expect(tookMs).toBeLessThan(6_000)
      expect((yield* row(bench, "waiting")).fence).toBe(0)
      const run = yield* row(bench, "r")
      expect([run.status, run.leaseOwner, run.recoveries]).toEqual(["pending", null, 0])
    }))

  /** Most turns of a loop that has no step in it. */
  const most = 20_000

  /** A worker that stops as soon as such a loop, beside other arms, has come under way; with the turns that it took. */
  const stopsTurning = (bench: Bench, beside: Record<string, (arm: any) => any>) =>
    Effect.gen(function* () {
      const isTurning = yield* Deferred.make<void>()
      let turns = 0
      const steers = (arm: any) =>
        // What goes on side by side has begun by the time it turns.
        arm
          .step("begin", { effects: [], output: Schema.Null }, () => null)
          .loop(
            "turns",
            { state: Schema.Int, initial: () => 0, maxIterations: most, onLimit: "stop" },
            (body: any) => body,
            () => {
              turns += 1
              if (turns === 50) Deferred.unsafeDone(isTurning, Effect.void)
              return { done: false, state: turns }
            },
          )
      const workflow: any = make("turning")
        .parallel("both", { steers, ...beside })
        .compile()
      const scope = yield* Scope.make()
      yield* Scope.extend(startWorker(bench.store, { workflows: [workflow] }), scope)
      yield* start(bench, workflow, "r")
      yield* Deferred.await(isTurning)
      yield* Scope.close(scope, Exit.void)
      const { run, steps } = (yield* bench.driver.load("default", "r"))!
      return { turns, status: run.status, steps: steps.map(({ path }) => path) }
    })

  test("leaves a run that only steers where it has come to", (bench) =>
    Effect.gen(function* () {
      const left = yield* stopsTurning(bench, {})
      expect(left.turns).toBeLessThan(most)
      expect([left.status, left.steps]).toEqual(["pending", ["both:steers/begin"]])
    }))

  test("steers no further beside a step that comes to its end", (bench) =>
    Effect.gen(function* () {
      const left = yield* stopsTurning(bench, {
        steps: (arm: any) =>
          arm.step("step", { effects: [], output: Schema.Null }, () => Effect.as(Effect.sleep("5 seconds"), null)),
      })
      expect(left.turns).toBeLessThan(most)
      expect([left.status, left.steps]).toEqual(["pending", ["both:steers/begin", "both:steps/step"]])
    }))

  test("interrupts a step that takes longer than it may wait, and gives its run back", (bench) =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const tookMs = yield* stopping(bench, long(log, "1 hour"), log, { drain: "2 seconds" })
      expect(log).toEqual(["begun", "interrupted"])
      expect(tookMs).toBeLessThan(4_000)
      expect((yield* row(bench, "r")).status).toBe("pending")
      expect((yield* bench.driver.load("default", "r"))!.steps).toEqual([])
    }))

  test("leaves its runs to another, which takes them at once and not as recoveries", (bench) =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const workflow = long(log, "5 seconds")
      yield* stopping(bench, workflow, log)
      const asked = yield* Clock.currentTimeMillis
      yield* startWorker(bench.store, { workflows: [workflow] })
      const handle = yield* Effect.provide(Cairn.attach(workflow, { runId: "r" }), storeLayer(bench.store))
      yield* handle.result
      // Far less than a lease.
      expect((yield* Clock.currentTimeMillis) - asked).toBeLessThan(3_000)
      expect(log.filter((entry) => entry === "second")).toHaveLength(1)
      expect((yield* row(bench, "r")).recoveries).toBe(0)
    }))

  test("records what it knows of an operation that is interrupted after its answer", (bench) =>
    Effect.gen(function* () {
      const provider = new Provider()
      const answered = yield* Deferred.make<void>()
      const paying = (then: Effect.Effect<void>): AnyWorkflow =>
        make("paying")
          .step("pay", { effects: [Charge], output: Schema.Null }, () =>
            Effect.as(Effect.zipRight(Charge.perform({ customer: "ada", cents: 1 }), then), null),
          )
          .compile()
      const stalls = paying(Effect.zipRight(Deferred.succeed(answered, undefined), Effect.never))
      const scope = yield* Scope.make()
      const stopped = startWorker(bench.store, { workflows: [stalls], drain: 0 }, chargeAt(provider))
      yield* Scope.extend(stopped, scope)
      const handle = yield* start(bench, stalls, "r")
      yield* Deferred.await(answered)
      yield* Scope.close(scope, Exit.void)
      const effect = yield* bench.driver.findEffect({ namespace: "default", runId: "r", path: "pay", generation: 0 })
      expect(effect?.state).toBe("succeeded")
      yield* startWorker(bench.store, { workflows: [paying(Effect.void)] }, chargeAt(provider))
      yield* handle.result
      expect(provider.calls).toHaveLength(1)
    }))

  test("does not wait for a run that sleeps", (bench) =>
    Effect.gen(function* () {
      const workflow = make("sleeping")
        .step("s", { effects: [], output: Schema.Null, retry: { times: 1, delay: "50 seconds" } }, () =>
          Effect.fail("no"),
        )
        .compile()
      const scope = yield* Scope.make()
      yield* Scope.extend(startWorker(bench.store, { workflows: [workflow] }), scope)
      yield* start(bench, workflow, "r")
      yield* Effect.repeat(Effect.zipRight(Effect.sleep(10), row(bench, "r")), {
        until: ({ status }) => status === "sleeping",
      })
      const asked = yield* Clock.currentTimeMillis
      yield* Scope.close(scope, Exit.void)
      expect((yield* Clock.currentTimeMillis) - asked).toBeLessThan(2_000)
      expect((yield* row(bench, "r")).status).toBe("sleeping")
    }))

  test("does not wait for a store that has stopped answering", (bench) =>
    Effect.gen(function* () {
      let away = false
      const store = intercepted(bench.store, () => (away ? Effect.never : Effect.void))
      const scope = yield* Scope.make()
      yield* Scope.extend(startWorker(store, { workflows: [adding()] }), scope)
      yield* Effect.sleep("2 seconds")
      away = true
      yield* Effect.sleep("1 minute")
      const asked = yield* Clock.currentTimeMillis
      yield* Scope.close(scope, Exit.void)
      expect((yield* Clock.currentTimeMillis) - asked).toBeLessThan(15_000)
    }))
})
