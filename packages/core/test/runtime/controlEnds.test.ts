/** What becomes of everything that is under way when a run is canceled, fails or is cut off: arms, items, waits and children. */
import { describe, expect } from "@effect/vitest"
import { Clock, Effect, Exit, Layer, Schema } from "effect"
import { Cairn, Workflow, type AnyWorkflow } from "../../src/index.js"
import { startWorker, storeLayer, type Bench } from "./support/bench.js"
import { booking, cancel, canceled, until } from "./support/canceling.js"
import type { Provider } from "./support/operations.js"
import { errorOf, test } from "./support/paying.js"
import { Book, cancelAt, order, row, world } from "./support/trips.js"

type Build = (flow: any) => any
const trip = (build: Build, name = "trip"): AnyWorkflow => {
  const workflow = build(Workflow.make(name, { version: 1, input: Schema.Null })).compile()
  expect(workflow.diagnostics).toEqual([])
  return workflow
}
const forever = { effects: [], output: Schema.Null } as const
const stuck = (at: { stopped: number }): any => [
  "stuck",
  forever,
  () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => at.stopped++)),
]
const begin = (bench: Bench, workflow: AnyWorkflow, needs: any, options: object = {}) =>
  Effect.gen(function* () {
    yield* startWorker(bench.store, { workflows: [workflow], ...options }, needs)
    return yield* Effect.provide(Cairn.start(workflow, null, { runId: "r" }), storeLayer(bench.store))
  })
const bookings = (provider: Provider) => provider.calls.map(({ payload }) => (payload as { what: string }).what)
const stepped = (bench: Bench, path: string) =>
  Effect.repeat(
    Effect.zipRight(
      Effect.sleep(10),
      bench.driver.loadSteps({
        ...{ namespace: "default", runId: "r", scopes: null, newestFirst: false, after: null, limit: null },
        withResults: false,
      }),
    ),
    { until: (steps) => steps.some((step) => step.path === path) },
  )

describe("a cancel", () => {
  test("stops every arm, and takes back what each has done, last first", (bench) =>
    Effect.gen(function* () {
      const { cancelled, needs } = world()
      const at = { stopped: 0 }
      const workflow = trip((flow) =>
        flow.parallel("p", {
          a: (flow: any) => flow.perform("flight", Book, booking("flight")).step(...stuck(at)),
          b: (flow: any) =>
            flow
              .sleep("first", 500)
              .perform("hotel", Book, booking("hotel"))
              .step(...stuck(at)),
          c: (flow: any) => flow.sleep("long", "300 days"),
          d: (flow: any) => flow.signal("never", { schema: Schema.Null }),
        }),
      )
      const handle = yield* begin(bench, workflow, needs)
      yield* stepped(bench, "p:b/hotel")
      yield* Effect.sleep(50)
      const asked = yield* Clock.currentTimeMillis
      expect(yield* cancel(bench.store)).toBe(true)
      expect(errorOf(yield* Effect.exit(handle.result))).toMatchObject(canceled())
      expect((yield* Clock.currentTimeMillis) - asked).toBeLessThan(1_000)
      expect([at.stopped, order(cancelled)]).toEqual([2, ["hotel", "flight"]])
      const { waits } = (yield* bench.driver.loadWaits("default", "r"))!
      expect(waits).toEqual([])
    }))

  test("of a run that waits or sleeps does not wait for it", (bench) =>
    Effect.gen(function* () {
      const { cancelled, needs } = world()
      const workflow = trip((flow) =>
        flow.perform("flight", Book, booking("flight")).review("ok", {
          decision: Schema.Null,
          show: () => 1,
          deadline: "300 days",
          onReject: "fail",
          onTimeout: "fail",
        }),
      )
      const handle = yield* begin(bench, workflow, needs)
      yield* until(bench, (status) => status === "review")
      yield* cancel(bench.store)
      expect(errorOf(yield* Effect.exit(handle.result))).toMatchObject(canceled())
      expect(order(cancelled)).toEqual(["flight"])
    }))

  test("stops items, each with what it had done taken back", (bench) =>
    Effect.gen(function* () {
      const { booked, cancelled, needs } = world()
      const at = { stopped: 0 }
      const workflow = trip((flow) =>
        flow.forEach(
          "each",
          { items: () => ["a", "b", "c", "d", "e"], key: (item: string) => item, concurrency: 2 },
          (flow: any) =>
            flow
              .perform("book", Book, { ...booking("?"), payload: ({ item }: any) => ({ what: item }) })
              .branch("stay", ({ key }: any) => (key < "c" ? "go" : "stay"), {
                go: (flow: any) => flow,
                stay: (flow: any) => flow.step(...stuck(at)),
              }),
        ),
      )
      const handle = yield* begin(bench, workflow, needs)
      yield* stepped(bench, "each[d]/book")
      yield* Effect.sleep(50)
      yield* cancel(bench.store)
      expect(errorOf(yield* Effect.exit(handle.result))).toMatchObject(canceled())
      expect(bookings(booked).toSorted()).toEqual(["a", "b", "c", "d"])
      expect(order(cancelled)).toEqual(bookings(booked).toReversed())
      expect(at.stopped).toBe(2)
    }))

  test("reaches children, and waits for them", (bench) =>
    Effect.gen(function* () {
      const { cancelled, needs } = world()
      const at = { stopped: 0 }
      const child = trip((flow) => flow.perform("hotel", Book, booking("hotel")).step(...stuck(at)), "child")
      const workflow = trip((flow) =>
        flow.perform("flight", Book, booking("flight")).parallel("p", {
          a: (flow: any) => flow.child("sub", child, { input: () => null }),
          b: (flow: any) => flow.step(...stuck(at)),
        }),
      )
      const handle = yield* begin(bench, workflow, needs)
      yield* Effect.repeat(Effect.zipRight(Effect.sleep(10), bench.driver.findRun("default", "r/p:a/sub")), {
        until: (found) => found?.cursor === "hotel",
      })
      yield* Effect.sleep(50)
      yield* cancel(bench.store, { reason: "changed our minds" })
      expect(errorOf(yield* Effect.exit(handle.result))).toMatchObject(canceled("changed our minds"))
      expect(yield* bench.driver.findRun("default", "r/p:a/sub")).toMatchObject({
        status: "canceled",
        cancelReason: "changed our minds",
      })
      expect([at.stopped, order(cancelled)]).toEqual([2, ["hotel", "flight"]])
    }))
})

describe("a paused run", () => {
  test("that is canceled does not wait to be resumed", (bench) =>
    Effect.gen(function* () {
      const { cancelled, needs } = world()
      const workflow = trip((flow) =>
        flow.perform("flight", Book, booking("flight")).signal("never", { schema: Schema.Null }),
      )
      const handle = yield* begin(bench, workflow, needs)
      yield* until(bench, (status) => status === "waiting")
      const provided = <A, E>(effect: Effect.Effect<A, E, any>) => Effect.provide(effect, storeLayer(bench.store))
      expect(yield* provided(Cairn.pause({ runId: "r" }))).toBe(true)
      expect(yield* cancel(bench.store)).toBe(true)
      expect(yield* provided(Cairn.pause({ runId: "r" }))).toBe(false)
      expect(errorOf(yield* Effect.exit(handle.result))).toMatchObject(canceled())
      expect(order(cancelled)).toEqual(["flight"])
    }))
})

describe("a failure in one arm", () => {
  test("lets what performs beside it come to its end, stops the rest, and takes all of it back", (bench) =>
    Effect.gen(function* () {
      const { booked, cancelled, needs } = world()
      const at = { stopped: 0 }
      const workflow = trip((flow) =>
        flow.parallel("p", {
          a: (flow: any) => flow.perform("flight", Book, booking("flight")).step(...stuck(at)),
          b: (flow: any) => flow.sleep("while", 700).step("fails", forever, () => Effect.fail(new Error("no seats"))),
        }),
      )
      const exit = yield* Effect.flatMap(begin(bench, workflow, needs), (handle) => Effect.exit(handle.result))
      expect(errorOf(exit)).toMatchObject({ _tag: "RunFailed", step: "p:b/fails", problem: "no seats" })
      expect([at.stopped, bookings(booked), order(cancelled)]).toEqual([1, ["flight"], ["flight"]])
    }))

  test("takes back as well what was still being performed when it came", (bench) =>
    Effect.gen(function* () {
      const { booked, cancelled } = world()
      const slowly = Layer.merge(
        Book.toLayer((payload, context) =>
          Effect.delay(
            Effect.sync(() => booked.handle(payload, context, () => ({ id: payload.what })) as { id: string }),
            400,
          ),
        ),
        cancelAt(cancelled),
      ) as Layer.Layer<any>
      const workflow = trip((flow) =>
        flow.parallel("p", {
          a: (flow: any) => flow.perform("flight", Book, booking("flight")),
          b: (flow: any) => flow.step("fails", forever, () => Effect.delay(Effect.fail(new Error("no seats")), 100)),
          c: (flow: any) => flow.perform("hotel", Book, booking("hotel")),
        }),
      )
      const exit = yield* Effect.flatMap(begin(bench, workflow, slowly), (handle) => Effect.exit(handle.result))
      expect(errorOf(exit)).toMatchObject({ problem: "no seats" })
      expect([bookings(booked).toSorted(), [...order(cancelled)].toSorted()]).toEqual([
        ["flight", "hotel"],
        ["flight", "hotel"],
      ])
    }))

  test("cancels the child of another", (bench) =>
    Effect.gen(function* () {
      const at = { stopped: 0 }
      const { needs } = world()
      const child = trip((flow) => flow.step(...stuck(at)), "child")
      const workflow = trip((flow) =>
        flow.parallel("p", {
          a: (flow: any) => flow.child("sub", child, { input: () => null }),
          b: (flow: any) => flow.sleep("while", 900).step("fails", forever, () => Effect.fail(new Error("no"))),
        }),
      )
      const exit = yield* Effect.flatMap(begin(bench, workflow, needs), (handle) => Effect.exit(handle.result))
      expect(errorOf(exit)).toMatchObject({ _tag: "RunFailed", problem: "no" })
      expect((yield* bench.driver.findRun("default", "r/p:a/sub"))!.status).toBe("canceled")
      expect((yield* row(bench)).status).toBe("failed")
    }))
})

describe("a retry in one arm", () => {
  test("waits its time while the others go on, and holds nothing once they wait as well", (bench) =>
    Effect.gen(function* () {
      const { needs } = world()
      let tries = 0
      const workflow = trip((flow) =>
        flow.parallel("p", {
          a: (flow: any) =>
            flow.step("flaky", { ...forever, retry: { times: 3, delay: "1 hour" } }, () =>
              ++tries < 3 ? Effect.fail("later") : Effect.succeed(null),
            ),
          b: (flow: any) => flow.signal("go", { schema: Schema.Null }),
        }),
      )
      const handle = yield* begin(bench, workflow, needs, { pollInterval: "1 minute", maxPollInterval: "10 minutes" })
      yield* until(bench, (status) => status === "waiting")
      expect(yield* row(bench)).toMatchObject({ leaseOwner: null, wakeAt: expect.any(Number) })
      yield* Effect.sleep("90 minutes")
      expect(tries).toBe(2)
      yield* Effect.provide(Cairn.signal(workflow, { runId: "r" }, "go", null), storeLayer(bench.store))
      yield* Effect.sleep("4 hours")
      expect(Exit.isSuccess(yield* Effect.exit(handle.result))).toBe(true)
      expect(tries).toBe(3)
    }))
})
