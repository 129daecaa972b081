/** X5: a cancel at every point of an operation, with crashes: nothing is done twice, and what was done is taken back once. */
import { describe, expect } from "@effect/vitest"
import { Effect, Exit, Schema } from "effect"
import { faultPoints, fromDriver, type FaultPoint } from "../../src/index.js"
import { makeMortal, quiet, startDoomed, startWorker, type Bench } from "./support/bench.js"
import { cancel, canceled, start, steps, trip, whole } from "./support/canceling.js"
import { errorOf, resumeOn, test } from "./support/paying.js"
import { Book, order, row, world } from "./support/trips.js"

// What a step with this policy does not pass by, or not as a step.
const elsewhere = new Set<FaultPoint>([
  ...(["afterClaim", "beforeBeat", "afterRecord", "beforeFlush", "afterFlush"] as const),
  ...(["beforeCall", "afterCall", "afterUsage"] as const),
])
const points = faultPoints.filter((each) => !elsewhere.has(each))

/** Where a cancel at a point of 'hotel' finds it booked for certain, or not to be booked any more. */
const expectTakenBack = (bench: Bench, { booked, cancelled }: ReturnType<typeof world>, point: FaultPoint) =>
  Effect.gen(function* () {
    // Each key is one effect at the provider, and was sent one payload.
    const sent = booked.keys()
    expect(booked.payloads()).toHaveLength(sent.length)
    const taken = [...booked.done.values()].map((result) => (result as { id: string }).id).reverse()
    expect(order(cancelled)).toEqual(taken)
    expect(cancelled.keys()).toHaveLength(taken.length)
    // Not begun: not done. Begun: resolved, and then taken back.
    expect(taken).toEqual(point === "beforeIntent" ? ["flight"] : ["hotel", "flight"])
    expect((yield* row(bench)).status).toBe("canceled")
  })

describe("a cancel at", () => {
  for (const point of points) {
    test(`${point} of an operation resolves it, and takes back what was done`, (bench) =>
      Effect.gen(function* () {
        const all = world()
        let asked = false
        const mortal = makeMortal(bench.store, (at, { step }) =>
          at !== point || step !== "hotel" || asked
            ? Effect.void
            : Effect.suspend(() => {
                asked = true
                // The fiber is interrupted where it stands: at the next act that can be.
                return Effect.zipRight(Effect.orDie(cancel(bench.store)), Effect.sleep(50))
              }),
        )
        yield* startWorker(bench.store, { workflows: [whole] }, all.needs, mortal.faults)
        const handle = yield* start(bench, whole)
        expect(errorOf(yield* Effect.exit(handle.result))).toMatchObject(canceled())
        expect(asked).toBe(true)
        yield* expectTakenBack(bench, all, point)
        expect((yield* row(bench)).fence).toBe(1)
      }).pipe(Effect.scoped, Effect.provide(quiet)))

    test(`${point} of an operation, followed by a crash, resolves it at the next owner`, (bench) =>
      Effect.gen(function* () {
        const all = world()
        let reached = false
        const mortal = makeMortal(bench.store, (at, { step }) =>
          at !== point || step !== "hotel"
            ? Effect.void
            : Effect.suspend(() => {
                mortal.kill()
                reached = true
                return Effect.asVoid(Effect.orDie(cancel(bench.store)))
              }),
        )
        yield* startDoomed(mortal, { workflows: [whole] }, all.needs)
        yield* start(bench, whole)
        yield* Effect.repeat(Effect.sleep(10), { until: () => reached })
        expect(errorOf(yield* resumeOn(bench, whole, all.needs))).toMatchObject(canceled())
        yield* expectTakenBack(bench, all, point)
      }).pipe(Effect.provide(quiet)))
  }

  for (const point of points) {
    for (const step of ["hotel/compensate", "flight/compensate"]) {
      test(`a step that waits, with a crash at ${point} of ${step}, takes back everything once`, (bench) =>
        Effect.gen(function* () {
          const { cancelled, needs } = world()
          let reached = false
          const mortal = makeMortal(bench.store, (at, site) => {
            if (at !== point || site.step !== step) return Effect.void
            return Effect.sync(() => {
              mortal.kill()
              reached = true
            })
          })
          const waits = trip((flow) => flow.step("waits", { effects: [], output: Schema.Null }, () => Effect.never))
          yield* startDoomed(mortal, { workflows: [waits] }, needs)
          yield* start(bench, waits)
          yield* Effect.repeat(Effect.zipRight(Effect.sleep(10), steps(bench)), { until: ({ length }) => length === 2 })
          yield* cancel(bench.store)
          yield* Effect.repeat(Effect.sleep(10), { until: () => reached })
          expect(errorOf(yield* resumeOn(bench, waits, needs))).toMatchObject(canceled())
          expect(order(cancelled)).toEqual(["hotel", "flight"])
          expect(cancelled.keys()).toHaveLength(2)
          expect(cancelled.payloads()).toHaveLength(2)
          expect((yield* row(bench)).status).toBe("canceled")
        }).pipe(Effect.provide(quiet)))
    }
  }

  test("the commit of a run's last step comes too late", (bench) =>
    Effect.gen(function* () {
      const { cancelled, needs } = world()
      const elsewhere = fromDriver(bench.driver)
      const mortal = makeMortal(bench.store, (at, { step }) =>
        at === "beforeCommit" && step === "thanks" ? Effect.asVoid(Effect.orDie(cancel(elsewhere))) : Effect.void,
      )
      yield* startWorker(bench.store, { workflows: [whole] }, needs, mortal.faults)
      const handle = yield* start(bench, whole)
      expect(Exit.isSuccess(yield* Effect.exit(handle.result))).toBe(true)
      expect(cancelled.calls).toEqual([])
    }).pipe(Effect.scoped, Effect.provide(quiet)))
})

describe("a run that takes back", () => {
  for (const kind of ["fails", "is canceled"] as const) {
    test(`because it ${kind} is not interrupted by a cancel`, (bench) =>
      Effect.gen(function* () {
        const all = world()
        const failing = trip((flow) => flow.perform("guide", Book, { payload: () => ({ what: "guide" }) }))
        const workflow = kind === "fails" ? failing : whole
        let interrupted = 0
        const mortal = makeMortal(bench.store, (at, { step }) => {
          if (kind === "is canceled" && at === "afterCommit" && step === "hotel") {
            return Effect.asVoid(Effect.orDie(cancel(bench.store, { reason: "first" })))
          }
          return at !== "beforeEffect" || step !== "hotel/compensate"
            ? Effect.void
            : Effect.zipRight(Effect.orDie(cancel(bench.store, { reason: "late" })), Effect.sleep(100)).pipe(
                Effect.onInterrupt(() => Effect.sync(() => interrupted++)),
              )
        })
        yield* startWorker(bench.store, { workflows: [workflow] }, all.needs, mortal.faults)
        const handle = yield* start(bench, workflow)
        const error = errorOf(yield* Effect.exit(handle.result))
        if (kind === "fails") expect(error).toEqual({ full: "no guide left" })
        else expect(error).toMatchObject(canceled("first"))
        expect(interrupted).toBe(0)
        expect(all.cancelled.calls).toHaveLength(2)
        expect((yield* row(bench)).status).toBe(kind === "fails" ? "failed" : "canceled")
      }).pipe(Effect.scoped, Effect.provide(quiet)))
  }
})
