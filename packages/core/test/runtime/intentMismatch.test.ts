/** Code that has changed under an intent: nothing but what was recorded is sent. */
import { describe, expect } from "@effect/vitest"
import { Effect, Exit, Layer, Schema } from "effect"
import { Cairn, OnUnknown, Operation, type AnyWorkflow } from "../../src/index.js"
import { refuseUnhandled, storeLayer } from "./support/bench.js"
import { Charge, chargeAt, Provider, type Receipt } from "./support/operations.js"
import { crashAt, effectAt, errorOf, make, paying, payment, resumeOn, test } from "./support/paying.js"

refuseUnhandled()

describe("code that would now do something else", () => {
  const other = Operation.make("payments.other", {
    payload: Schema.Struct({ customer: Schema.String, cents: Schema.Int }),
    success: Schema.Struct({ id: Schema.String, at: Schema.Date }),
    onUnknown: OnUnknown.retryWithKey({ keyWindow: "1 day" }),
  })
  const stepWith = (operation: any, run: (context: any) => unknown): AnyWorkflow =>
    make()
      .step("pay", { effects: [operation], output: Schema.parseJson() }, run)
      .compile()

  const changes: Record<string, AnyWorkflow> = {
    "with another payload": paying({ payload: () => ({ ...payment, cents: 999 }) }),
    "with another operation": make()
      .perform("pay", other, { payload: () => payment })
      .compile(),
    "without performing anything": stepWith(Charge, () => "nothing"),
    "with an optional payload of null": paying({ optional: true, payload: () => null }),
  }
  for (const [how, changed] of Object.entries(changes)) {
    for (const point of ["afterIntent", "afterEffect"] as const) {
      test(`resumed ${how}, it is parked and nothing is sent (crash at ${point})`, (bench) =>
        Effect.gen(function* () {
          const provider = new Provider()
          const handlers = Layer.merge(
            chargeAt(provider),
            other.toLayer((payload, context) =>
              Effect.sync(() => provider.handle(payload, context, () => ({ id: "o", at: new Date(1) })) as Receipt),
            ),
          )
          yield* crashAt(bench, paying(), handlers, point)
          const before = provider.calls.length
          const parked = errorOf(yield* resumeOn(bench, changed, handlers))
          expect(parked).toMatchObject({ _tag: "RunParked", reason: "IntentMismatch", step: "pay" })
          expect(provider.calls).toHaveLength(before)
          expect((yield* effectAt(bench)).payload).toBe(JSON.stringify(payment))
        }))
    }
  }

  test("goes on after Cairn.resume under code that does what was recorded", (bench) =>
    Effect.gen(function* () {
      const provider = new Provider()
      yield* crashAt(bench, paying(), chargeAt(provider), "afterEffect")
      const changed = paying({ payload: () => ({ ...payment, cents: 999 }) })
      yield* resumeOn(bench, changed, chargeAt(provider))
      const resumed = yield* Effect.provide(Cairn.resume({ runId: "r" }), storeLayer(bench.store))
      expect(resumed).toBe(true)
      expect(Exit.isSuccess(yield* resumeOn(bench, paying(), chargeAt(provider)))).toBe(true)
      expect(provider.keys()).toHaveLength(1)
      expect(provider.payloads()).toEqual([JSON.stringify(payment)])
    }))

  test("that fails before it resolves what was sent does not end the run: it is parked", (bench) =>
    Effect.gen(function* () {
      const provider = new Provider()
      const of = (run: () => unknown) => stepWith(Charge, run)
      yield* crashAt(
        bench,
        of(() => Charge.perform(payment)),
        chargeAt(provider),
        "afterEffect",
      )
      const parked = errorOf(
        yield* resumeOn(
          bench,
          of(() => Effect.fail(new Error("early"))),
          chargeAt(provider),
        ),
      )
      expect(parked).toMatchObject({ _tag: "RunParked", reason: "OutcomeUnknown", step: "pay" })
      expect(parked.problem).toContain("early")
      expect((yield* effectAt(bench)).state).toBe("intended")
    }))

  test("keys in another order are the same payload", (bench) =>
    Effect.gen(function* () {
      const provider = new Provider()
      yield* crashAt(bench, paying(), chargeAt(provider), "afterEffect")
      const reordered = paying({ payload: () => ({ cents: 100, customer: "ada" }) })
      expect(Exit.isSuccess(yield* resumeOn(bench, reordered, chargeAt(provider)))).toBe(true)
      expect(provider.payloads()).toHaveLength(1)
    }))
})
