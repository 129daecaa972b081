/** An operation whose outcome is unknown: sent again under its key, or left to a person. */
import { describe, expect } from "@effect/vitest"
import { Effect, Exit, Schema } from "effect"
import { Cairn, OnUnknown, Operation, type HandlerContext } from "../../src/index.js"
import { intercepted, refuseUnhandled, storeLayer, type Bench } from "./support/bench.js"
import { Charge, chargeAt, Mail, Provider, type Receipt } from "./support/operations.js"
import { crashAt, effectAt, errorOf, make, paying, resumeOn, runOn, test } from "./support/paying.js"

refuseUnhandled()

describe("an outcome that is unknown", () => {
  const unknowns: Record<string, (context: HandlerContext) => any> = {
    "a thrown error": () => {
      throw new Error("connection lost")
    },
    "a rejected promise": () => Promise.reject(new Error("connection lost")),
    "a defect": () => Effect.die("bug"),
    "an undeclared failure": () => Effect.fail("something else"),
    "a timeout": () => Effect.never,
    "an interruption from within": () => Effect.interrupt,
  }
  for (const [what, first] of Object.entries(unknowns)) {
    test(`after ${what} is sent again: the recorded payload under the same key, and no attempt is counted`, (bench) =>
      Effect.gen(function* () {
        const provider = new Provider()
        const handler = Charge.toLayer((payload, context) => {
          const receipt = provider.handle(payload, context, () => ({ id: "ch", at: new Date(1) })) as Receipt
          return provider.calls.length === 1 ? first(context) : Effect.succeed(receipt)
        })
        expect(Exit.isSuccess(yield* runOn(bench, paying(), handler))).toBe(true)
        expect(provider.calls.map(({ key, attempt }) => [key, attempt])).toEqual([
          ["default/r/pay#0", 1],
          ["default/r/pay#0", 1],
        ])
        expect(provider.payloads()).toHaveLength(1)
        expect((yield* effectAt(bench)).sends).toBe(2)
      }))
  }

  test("after the step's own timeout is sent again under the same key", (bench) =>
    Effect.gen(function* () {
      const provider = new Provider()
      let aborted = false
      const handler = Charge.toLayer((payload, context) => {
        const receipt = provider.handle(payload, context, () => ({ id: "ch", at: new Date(1) })) as Receipt
        if (provider.calls.length > 1) return Effect.succeed(receipt)
        context.signal.addEventListener("abort", () => (aborted = true))
        return Effect.never
      })
      expect(Exit.isSuccess(yield* runOn(bench, paying({ timeout: "2 seconds" }), handler))).toBe(true)
      expect(provider.keys()).toHaveLength(1)
      expect(aborted).toBe(true)
    }))

  test("after a timeout that falls into the commit of the intent is resolved by its policy", (bench) =>
    Effect.gen(function* () {
      const provider = new Provider()
      let slow = true
      const store = intercepted(bench.store, (method) =>
        Effect.suspend(() => {
          if (method !== "commit" || !slow) return Effect.void
          slow = false
          return Effect.sleep("3 seconds")
        }),
      )
      const workflow = paying({ timeout: "2 seconds" })
      const exit = yield* runOn({ ...bench, store }, workflow, chargeAt(provider))
      expect(Exit.isSuccess(exit)).toBe(true)
      expect(provider.calls.map(({ key, attempt }) => [key, attempt])).toEqual([["default/r/pay#0", 1]])
      expect((yield* effectAt(bench)).sends).toBe(2)
    }))

  test("aborts the handler's signal when the operation's timeout passes, and waits for it", (bench) =>
    Effect.gen(function* () {
      let running = 0
      let most = 0
      let calls = 0
      const handler = Charge.toLayer((_, { signal }) => {
        most = Math.max(most, ++running)
        if (++calls > 1) return Promise.resolve({ id: "ch", at: new Date(1) })
        return new Promise((_resolve, reject) =>
          signal.addEventListener("abort", () => {
            running--
            reject(new Error("aborted"))
          }),
        )
      })
      expect(Exit.isSuccess(yield* runOn(bench, paying(), handler))).toBe(true)
      expect([most, calls]).toEqual([1, 2])
    }))

  test("a handler that cannot be interrupted is waited for, and never overlaps with the next send", (bench) =>
    Effect.gen(function* () {
      let running = 0
      let most = 0
      const keys: Array<string> = []
      const stubborn = Charge.toLayer((_, { idempotencyKey }) => {
        most = Math.max(most, ++running)
        keys.push(idempotencyKey)
        return Effect.sleep(keys.length === 1 ? "40 seconds" : "1 second").pipe(
          Effect.map(() => {
            running--
            return { id: "ch", at: new Date(1) }
          }),
          Effect.uninterruptible,
        )
      })
      expect(Exit.isSuccess(yield* runOn(bench, paying(), stubborn))).toBe(true)
      expect(most).toBe(1)
      expect(keys).toEqual(["default/r/pay#0", "default/r/pay#0"])
    }))

  test("is parked once the provider may have forgotten the key, and nothing is sent", (bench) =>
    Effect.gen(function* () {
      const provider = new Provider()
      const Brief = Operation.make("brief", {
        payload: Schema.Null,
        success: Schema.Null,
        timeout: "10 seconds",
        onUnknown: OnUnknown.retryWithKey({ keyWindow: "1 minute" }),
      })
      const handler = Brief.toLayer((payload, context) =>
        Effect.as(
          Effect.sync(() => provider.handle(payload, context, () => null)),
          null,
        ),
      )
      const workflow = make()
        .perform("pay", Brief, { payload: () => null })
        .compile()
      yield* crashAt(bench, workflow, handler, "afterEffect")
      yield* Effect.sleep("50 seconds")
      const parked = errorOf(yield* resumeOn(bench, workflow, handler))
      expect(parked).toMatchObject({ _tag: "RunParked", reason: "OutcomeUnknown", step: "pay" })
      expect(parked.problem).toContain("default/r/pay#0")
      expect(provider.calls).toHaveLength(1)
    }))

  test("is sent within the key's window", (bench) =>
    Effect.gen(function* () {
      const provider = new Provider()
      const workflow = paying()
      yield* crashAt(bench, workflow, chargeAt(provider), "afterEffect")
      yield* Effect.sleep("23 hours")
      expect(Exit.isSuccess(yield* resumeOn(bench, workflow, chargeAt(provider)))).toBe(true)
      expect(provider.calls).toHaveLength(2)
      expect(provider.keys()).toHaveLength(1)
    }))

  test("is parked after the declared number of sends", (bench) =>
    Effect.gen(function* () {
      let calls = 0
      const lost = Mail.toLayer(() => Effect.die(`lost ${++calls}`))
      const workflow = make()
        .perform("pay", Mail, { payload: () => ({ to: "a", body: "b" }) })
        .compile()
      expect(errorOf(yield* runOn(bench, workflow, lost))).toMatchObject({
        _tag: "RunParked",
        reason: "OutcomeUnknown",
      })
      expect(calls).toBe(3)
      expect((yield* effectAt(bench)).sends).toBe(3)
    }))
})

describe("an answer that does not fit its schema", () => {
  const attemptsAt = (bench: Bench) =>
    Effect.map(bench.driver.loadOpen("default", "r", ["pay"]), ({ attempts }) =>
      attempts.map(({ attempt, kind, output }) => ({ attempt, kind, output })),
    )
  const answering = (answer: unknown) => Charge.toLayer((() => Effect.succeed(answer)) as never)

  test("parks the run, because it was performed, and is kept for the person who looks", (bench) =>
    Effect.gen(function* () {
      const provider = new Provider()
      const odd = Charge.toLayer(((payload: unknown, context: HandlerContext) =>
        Effect.sync(() => provider.handle(payload, context, () => ({ id: 7, extra: "é" })))) as never)
      const parked = errorOf(yield* runOn(bench, paying({ onInvalid: { retries: 2, then: "fail" } }), odd))
      expect(parked).toMatchObject({ _tag: "RunParked", reason: "OutputInvalid", step: "pay" })
      expect(provider.calls).toHaveLength(1)
      expect(yield* attemptsAt(bench)).toEqual([{ attempt: 1, kind: "rejected", output: '{"id":7,"extra":"é"}' }])
      expect((yield* effectAt(bench)).state).toBe("intended")
    }))

  test("is kept as the member of a choice gave it, and from within a step as well", (bench) =>
    Effect.gen(function* () {
      const Act = Operation.oneOf({ charge: Charge })
      const workflow = make()
        .step("pay", { effects: [Act], output: Schema.Void }, () =>
          Act.perform({ case: "charge", payload: { customer: "ada", cents: 1 } }),
        )
        .compile()
      expect(errorOf(yield* runOn(bench, workflow, answering(["odd"])))).toMatchObject({ reason: "OutputInvalid" })
      expect(yield* attemptsAt(bench)).toEqual([{ attempt: 1, kind: "rejected", output: '["odd"]' }])
    }))

  test("leaves its attempt without an output where it has no JSON form", (bench) =>
    Effect.gen(function* () {
      expect(errorOf(yield* runOn(bench, paying(), answering({ id: 1n })))).toMatchObject({ reason: "OutputInvalid" })
      expect(yield* attemptsAt(bench)).toEqual([{ attempt: 1, kind: "rejected", output: null }])
    }))

  test("is asked for again under the same key once a person lets the run go on", (bench) =>
    Effect.gen(function* () {
      yield* runOn(bench, paying(), answering("odd"))
      expect(yield* Effect.provide(Cairn.resume({ runId: "r" }), storeLayer(bench.store))).toBe(true)
      const provider = new Provider()
      expect(Exit.isSuccess(yield* resumeOn(bench, paying(), chargeAt(provider)))).toBe(true)
      expect(provider.calls.map(({ key, attempt }) => [key, attempt])).toEqual([["default/r/pay#0", 2]])
      expect((yield* bench.driver.load("default", "r"))!.steps.map(({ attempts }) => attempts)).toEqual([2])
    }))
})
