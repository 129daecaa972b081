/** X5: what may have happened is resolved by its policy before its run is canceled, and no sooner than it has ended. */
import { describe, expect } from "@effect/vitest"
import { Clock, Deferred, Effect, Layer, Schema } from "effect"
import { Cairn, OnUnknown, Operation } from "../../src/index.js"
import { makeMortal, quiet, startWorker, storeLayer, type Bench } from "./support/bench.js"
import { booking, cancel, canceled, start, trip, until, whole } from "./support/canceling.js"
import { Provider } from "./support/operations.js"
import { crashAt, errorOf, resumeOn, runOn, test } from "./support/paying.js"
import { Book, cancelAt, order, row, world } from "./support/trips.js"

describe("an attempt that resolves what may have happened", () => {
  // After 'car' nothing follows: the run would complete with it.
  for (const last of ["hotel", "car"] as const) {
    test(`of '${last}' is not interrupted by a cancel, which is obeyed right after it`, (bench) =>
      Effect.gen(function* () {
        const all = world()
        const workflow = last === "hotel" ? whole : trip((flow) => flow.perform("car", Book, booking("car")))
        yield* crashAt(bench, workflow, all.needs, "afterIntent", last)
        let interrupted = 0
        const mortal = makeMortal(bench.store, (at, { step }) =>
          at !== "beforeEffect" || step !== last
            ? Effect.void
            : Effect.zipRight(Effect.orDie(cancel(bench.store)), Effect.sleep(100)).pipe(
                Effect.onInterrupt(() => Effect.sync(() => interrupted++)),
              ),
        )
        yield* startWorker(bench.store, { workflows: [workflow] }, all.needs, mortal.faults)
        const handle = yield* Effect.provide(Cairn.attach(workflow, { runId: "r" }), storeLayer(bench.store))
        expect(errorOf(yield* Effect.exit(handle.result))).toMatchObject(canceled())
        expect(interrupted).toBe(0)
        const booked = last === "hotel" ? ["flight", "hotel"] : ["flight", "hotel", "car"]
        expect(all.booked.calls.map(({ payload }) => (payload as { what: string }).what)).toEqual(booked)
        expect(order(all.cancelled)).toEqual([...booked].reverse())
      }).pipe(Effect.scoped, Effect.provide(quiet)))
  }
})

const Fax = Operation.make("fax", {
  payload: Schema.Struct({ what: Schema.String }),
  success: Schema.Struct({ id: Schema.String }),
  failure: Schema.Struct({ full: Schema.String }),
  onUnknown: OnUnknown.review(),
  timeout: "1 second",
})

describe("a run that is parked", () => {
  const faxing = trip((flow) => flow.perform("fax", Fax, booking("fax")))

  const parkedFax = (bench: Bench) =>
    Effect.gen(function* () {
      const all = world()
      let faxes = 0
      const fax = Fax.toLayer(() =>
        Effect.suspend(() => {
          faxes++
          return Effect.die("the line broke")
        }),
      )
      const needs = Layer.merge(all.needs, fax as Layer.Layer<any>)
      const exit = yield* runOn(bench, faxing, needs)
      expect(errorOf(exit)).toMatchObject({ _tag: "RunParked", reason: "OutcomeUnknown" })
      yield* cancel(bench.store, { reason: "enough" })
      expect((yield* row(bench)).status).toBe("pending")
      // Its policy asks a person, canceled or not.
      const again = errorOf(yield* resumeOn(bench, faxing, needs))
      expect(again).toMatchObject({ _tag: "RunParked", reason: "OutcomeUnknown", step: "fax" })
      return { ...all, needs, faxes: () => faxes }
    })

  for (const happened of [true, false]) {
    test(`over an unknown outcome is canceled once a person says that it ${happened ? "happened" : "did not"}`, (bench) =>
      Effect.gen(function* () {
        const { cancelled, faxes, needs } = yield* parkedFax(bench)
        const said = happened ? { happened, result: { id: "fax" } } : { happened }
        yield* Effect.provide(Cairn.answer(faxing, { runId: "r" }, said), storeLayer(bench.store))
        expect(errorOf(yield* resumeOn(bench, faxing, needs))).toMatchObject(canceled("enough"))
        expect(order(cancelled)).toEqual(happened ? ["fax", "hotel", "flight"] : ["hotel", "flight"])
        expect(faxes()).toBe(1)
      }))
  }

  test("for an output that does not fit is canceled at once", (bench) =>
    Effect.gen(function* () {
      const { cancelled, needs } = world()
      const invalid = trip((flow) =>
        flow.step("odd", { effects: [], output: Schema.Int, onInvalid: { retries: 0, then: "review" } }, () =>
          Effect.succeed("x"),
        ),
      )
      expect(errorOf(yield* runOn(bench, invalid, needs))).toMatchObject({ reason: "OutputInvalid" })
      yield* cancel(bench.store)
      expect(errorOf(yield* resumeOn(bench, invalid, needs))).toMatchObject(canceled())
      expect(order(cancelled)).toEqual(["hotel", "flight"])
    }))
})

describe("an operation that a cancel cuts off", () => {
  /** A provider that takes its time, whatever becomes of who asked; and answers at once, or never. */
  const slow = (answers: "late" | "breaks") => {
    const sends: Array<number> = []
    const done: Array<string> = []
    const checks: Array<number> = []
    const Post = Operation.make("post", {
      payload: Schema.Struct({ what: Schema.String }),
      success: Schema.Struct({ id: Schema.String }),
      onUnknown: OnUnknown.checkFirst(),
      timeout: "10 seconds",
    })
    const begun = Effect.runSync(Deferred.make<void>())
    const handler = Post.toLayer(
      (_, { idempotencyKey }) =>
        Effect.gen(function* () {
          sends.push(yield* Clock.currentTimeMillis)
          yield* Effect.forkDaemon(
            Effect.delay(
              Effect.sync(() => void done.push(idempotencyKey)),
              "8 seconds",
            ),
          )
          yield* Deferred.succeed(begun, undefined)
          return yield* answers === "late" ? Effect.never : Effect.die("the line broke")
        }),
      {
        check: (_, { idempotencyKey }) =>
          Effect.map(Clock.currentTimeMillis, (now) => {
            checks.push(now)
            return done.includes(idempotencyKey) ? { happened: true, result: { id: "post" } } : { happened: false }
          }),
      },
    )
    const workflow = trip((flow) => flow.perform("post", Post, booking("post")))
    return { begun, checks, done, handler: handler as Layer.Layer<any>, sends, workflow }
  }

  for (const [title, answers] of [
    ["is not asked about before it has ended", "late"],
    ["by waking a run that waits to ask about it, is not asked about any sooner", "breaks"],
  ] as const) {
    test(title, (bench) =>
      Effect.gen(function* () {
        const { cancelled, needs } = world()
        const { begun, checks, done, handler, sends, workflow } = slow(answers)
        yield* startWorker(bench.store, { workflows: [workflow] }, Layer.merge(needs, handler))
        const handle = yield* start(bench, workflow)
        yield* Deferred.await(begun)
        if (answers === "breaks") yield* until(bench, (status) => status === "sleeping")
        yield* cancel(bench.store)
        expect(errorOf(yield* Effect.exit(handle.result))).toMatchObject(canceled())
        expect([sends.length, done.length, checks.length]).toEqual([1, 1, 1])
        expect(checks[0]! - sends[0]!).toBeGreaterThanOrEqual(8_000)
        expect(order(cancelled)).toEqual(["post", "hotel", "flight"])
      }).pipe(Effect.scoped, Effect.provide(quiet)),
    )
  }

  test("and is declined when it is sent again was not done: the run is canceled, not failed", (bench) =>
    Effect.gen(function* () {
      const booked = new Provider()
      const cancelled = new Provider()
      const begun = yield* Deferred.make<void>()
      let sends = 0
      const handler = Book.toLayer((payload, context) => {
        if (payload.what !== "guide")
          return Effect.sync(() => booked.handle(payload, context, () => ({ id: payload.what })) as { id: string })
        sends++
        return sends === 1
          ? Effect.zipRight(Deferred.succeed(begun, undefined), Effect.never)
          : Effect.fail({ full: "no guide left" })
      })
      const workflow = trip((flow) => flow.perform("guide", Book, booking("guide")))
      const needs = Layer.merge(handler, cancelAt(cancelled)) as Layer.Layer<any>
      yield* startWorker(bench.store, { workflows: [workflow] }, needs)
      const handle = yield* start(bench, workflow)
      yield* Deferred.await(begun)
      yield* cancel(bench.store)
      expect(errorOf(yield* Effect.exit(handle.result))).toMatchObject(canceled())
      expect([sends, order(cancelled)]).toEqual([2, ["hotel", "flight"]])
    }).pipe(Effect.scoped, Effect.provide(quiet)))
})
