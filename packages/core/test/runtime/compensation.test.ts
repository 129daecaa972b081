/** When a run fails for good, what it did is taken back: in reverse, each once, over crashes. */
import { describe, expect } from "@effect/vitest"
import { Effect, Exit, Layer, Schema } from "effect"
import {
  Cairn,
  CheckpointStore,
  faultPoints,
  type FaultPoint,
  NotPerformed,
  Workflow,
  type AnyWorkflow,
} from "../../src/index.js"
import type { Bench } from "./support/bench.js"
import { Provider } from "./support/operations.js"
import { crashAt, errorOf, resumeOn, runOn, test } from "./support/paying.js"
import { Book, bookAt, Cancel, cancelling, order, row, world } from "./support/trips.js"

/** Three bookings that can be taken back; the fourth is refused. */
const trip = Workflow.make("trip", { version: 1, input: Schema.Null })
  .perform("flight", Book, { payload: () => ({ what: "flight" }), compensate: cancelling })
  .perform("hotel", Book, { payload: () => ({ what: "hotel" }), settle: true, compensate: cancelling })
  .perform("car", Book, { payload: () => ({ what: "car" }), compensate: cancelling })
  .perform("insurance", Book, { optional: true, payload: () => null, compensate: cancelling })
  .perform("guide", Book, { payload: () => ({ what: "guide" }) })
  .compile()

describe("compensation", () => {
  test("takes back what was done, last first, and the client sees the failure that began it", (bench) =>
    Effect.gen(function* () {
      const { booked, cancelled, needs } = world()
      const exit = yield* runOn(bench, trip, needs)
      expect(errorOf(exit)).toEqual({ full: "no guide left" })
      expect(order(cancelled)).toEqual(["car", "hotel", "flight"])
      expect(cancelled.calls).toHaveLength(3)
      expect(booked.calls).toHaveLength(3)
      expect((yield* row(bench)).status).toBe("failed")
      const { steps } = (yield* bench.driver.load("default", "r"))!
      expect(steps.map(({ path }) => path)).toEqual([
        "flight",
        "hotel",
        "car",
        "insurance",
        "car/compensate",
        "hotel/compensate",
        "flight/compensate",
      ])
    }))

  test("keeps the failure durable before the first of them begins", (bench) =>
    Effect.gen(function* () {
      const { cancelled, needs } = world()
      yield* crashAt(bench, trip, needs, "beforeIntent", "car/compensate")
      const crashed = yield* row(bench)
      expect(crashed.status).toBe("running")
      expect(JSON.parse(crashed.failure!)).toMatchObject({ kind: "declared", step: "guide", operation: "book" })
      expect(cancelled.calls).toEqual([])
      expect(errorOf(yield* resumeOn(bench, trip, needs))).toEqual({ full: "no guide left" })
      expect(order(cancelled)).toEqual(["car", "hotel", "flight"])
    }))

  // What a step with this policy does not pass by.
  const elsewhere = new Set<FaultPoint>([
    ...(["afterClaim", "beforeBeat", "afterRecord", "beforeFlush", "afterFlush"] as const),
    ...(["beforeCall", "afterCall", "afterUsage"] as const),
  ])
  for (const point of faultPoints.filter((each) => !elsewhere.has(each))) {
    for (const step of ["car/compensate", "hotel/compensate"]) {
      test(`goes on after a crash at ${point} of ${step}, and takes nothing back twice`, (bench) =>
        Effect.gen(function* () {
          const { cancelled, needs } = world()
          yield* crashAt(bench, trip, needs, point, step)
          expect(errorOf(yield* resumeOn(bench, trip, needs))).toEqual({ full: "no guide left" })
          expect(order(cancelled)).toEqual(["car", "hotel", "flight"])
          // One key a compensation: a resend is answered by the provider's memory.
          expect(cancelled.keys()).toHaveLength(3)
          expect((yield* row(bench)).status).toBe("failed")
        }))
    }
  }

  test("does not take back what is known not to have happened", (bench) =>
    Effect.gen(function* () {
      const { cancelled, needs } = world()
      const settled = Workflow.make("settled", { version: 1, input: Schema.Null })
        .perform("guide", Book, { payload: () => ({ what: "guide" }), settle: true, compensate: cancelling })
        .step("fails", { effects: [], output: Schema.Void }, () => Effect.fail("later"))
        .compile()
      expect(errorOf(yield* runOn(bench, settled, needs))).toMatchObject({ _tag: "RunFailed", step: "fails" })
      expect(cancelled.calls).toEqual([])
    }))

  test("follows an output that fails, too", (bench) =>
    Effect.gen(function* () {
      const { cancelled, needs } = world()
      const odd = Workflow.make("odd", { version: 1, input: Schema.Null })
        .perform("flight", Book, { payload: () => ({ what: "flight" }), compensate: cancelling })
        .output(Schema.Number, () => Number.NaN)
        .compile()
      expect(errorOf(yield* runOn(bench, odd, needs))).toMatchObject({ _tag: "RunFailed", step: "(output)" })
      expect(order(cancelled)).toEqual(["flight"])
    }))

  test("is retried, and then parks the run with what is left to be taken back", (bench) =>
    Effect.gen(function* () {
      const booked = new Provider()
      let refusals = 0
      let open = true
      const refusing = Cancel.toLayer(() =>
        Effect.suspend(() => {
          refusals++
          return open ? Effect.fail(new NotPerformed({ problem: "closed today" })) : Effect.void
        }),
      )
      const needs = Layer.merge(bookAt(booked), refusing) as Layer.Layer<any>
      const exit = yield* runOn(bench, trip, needs)
      expect(errorOf(exit)).toMatchObject({ _tag: "RunParked", reason: "CompensationFailed", step: "car/compensate" })
      expect(errorOf(exit).message).toContain("not taken back yet: 'flight', 'hotel', 'car'")
      // One attempt and five retries.
      expect(refusals).toBe(6)
      // A person has dealt with it: the run goes on where it stood, and still fails for its first reason.
      open = false
      expect(yield* Effect.provide(Cairn.resume({ runId: "r" }), storeOf(bench))).toBe(true)
      expect(errorOf(yield* resumeOn(bench, trip, needs))).toEqual({ full: "no guide left" })
      expect((yield* row(bench)).status).toBe("failed")
    }))

  test("has a handler when the worker starts, or the worker does not", (bench) =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(runOn(bench, trip as AnyWorkflow, bookAt(new Provider()) as Layer.Layer<any>))
      expect(Exit.isFailure(exit)).toBe(true)
      expect(String(exit)).toContain("CRN107: step 'car/compensate' has no handler for 'cancel'")
    }))
})

const storeOf = (bench: Bench) => Layer.succeed(CheckpointStore, bench.store)
