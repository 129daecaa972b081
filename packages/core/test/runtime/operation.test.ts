/** Operations: the key, outcomes that are known, and a choice among several. */
import { describe, expect } from "@effect/vitest"
import { Effect, Exit, Layer, Schema } from "effect"
import { Cairn, NotPerformed, Operation } from "../../src/index.js"
import { quiet, refuseUnhandled, withWorker } from "./support/bench.js"
import { Charge, chargeAt, Declined, Mail, mailAt, Provider, type Receipt } from "./support/operations.js"
import { crashAt, effectAt, errorOf, make, paying, payment, resumeOn, runOn, test } from "./support/paying.js"

refuseUnhandled()

describe("the idempotency key", () => {
  test("is the same for every send and every worker of one operation", (bench) =>
    Effect.gen(function* () {
      const provider = new Provider()
      const flaky = Charge.toLayer((payload, context) => {
        const receipt = provider.handle(payload, context, () => ({ id: "ch", at: new Date(1) })) as Receipt
        return provider.calls.length < 3 ? Effect.die("connection lost") : Effect.succeed(receipt)
      })
      const workflow = paying()
      yield* crashAt(bench, workflow, flaky, "afterEffect").pipe(
        // The first worker only ever sees lost connections, and dies after one of them.
        Effect.timeoutOption("1 second"),
      )
      expect(Exit.isSuccess(yield* resumeOn(bench, workflow, flaky))).toBe(true)
      expect(provider.keys()).toEqual(["default/r/pay#0"])
      expect(provider.calls.length).toBeGreaterThanOrEqual(3)
    }))

  test("differs between steps, runs and generations", (bench) =>
    Effect.gen(function* () {
      const keys: Array<string> = []
      const declinesOnce = Charge.toLayer((_, { idempotencyKey }) => {
        keys.push(idempotencyKey)
        return keys.length % 3 === 1
          ? Effect.fail(new Declined({ code: "try again" }))
          : Effect.succeed({ id: "ch", at: new Date(1) })
      })
      const payload = () => payment
      const workflow = make()
        .perform("first", Charge, { payload, retry: { times: 1, delay: 0 } })
        .perform("second", Charge, { payload })
        .compile()
      yield* runOn(bench, workflow, declinesOnce, "a")
      yield* runOn(bench, workflow, declinesOnce, "b")
      expect(keys).toEqual(
        ["a/first#0", "a/first#1", "a/second#0", "b/first#0", "b/first#1", "b/second#0"].map((k) => `default/${k}`),
      )
    }))
})

describe("an outcome that is known", () => {
  const succeedOnce = (provider: Provider) => chargeAt(provider)

  test("survives a later failing line of its step, and is not performed again", (bench) =>
    Effect.gen(function* () {
      const provider = new Provider()
      let attempts = 0
      const workflow = make()
        .step("pay", { effects: [Charge], output: Schema.String, retry: { times: 2, delay: 0 } }, () =>
          Effect.flatMap(Charge.perform(payment), ({ id }) =>
            ++attempts < 3 ? Effect.fail(new Error(`line ${attempts}`)) : Effect.succeed(`${id} after ${attempts}`),
          ),
        )
        .output(Schema.String, ({ results }: any) => results.pay)
        .compile()
      expect(yield* runOn(bench, workflow, succeedOnce(provider))).toEqual(Exit.succeed("ch_1 after 3"))
      expect(provider.calls).toHaveLength(1)
    }))

  test("survives a failed gate, and is not performed again", (bench) =>
    Effect.gen(function* () {
      const provider = new Provider()
      let attempts = 0
      const step = { effects: [Charge], output: Schema.Literal("good"), onInvalid: { retries: 2, then: "fail" } }
      const workflow = make()
        .step("pay", step, function* () {
          yield* Charge.perform(payment)
          return ++attempts < 3 ? "bad" : "good"
        })
        .compile()
      expect(Exit.isSuccess(yield* runOn(bench, workflow, succeedOnce(provider)))).toBe(true)
      expect(attempts).toBe(3)
      expect(provider.calls).toHaveLength(1)
    }))

  test("survives the run's failure: its row says that it succeeded", (bench) =>
    Effect.gen(function* () {
      const provider = new Provider()
      const workflow = make()
        .step("pay", { effects: [Charge], output: Schema.Null }, () =>
          Effect.zipRight(Charge.perform(payment), Effect.fail(new Error("after"))),
        )
        .compile()
      expect(errorOf(yield* runOn(bench, workflow, succeedOnce(provider)))).toMatchObject({ problem: "after" })
      expect((yield* effectAt(bench)).state).toBe("succeeded")
    }))

  test("of a declared failure that its step catches does not become another generation", (bench) =>
    Effect.gen(function* () {
      const keys: Array<string> = []
      const declines = Charge.toLayer((_, { idempotencyKey }) => {
        keys.push(idempotencyKey)
        return Effect.fail(new Declined({ code: "stolen" }))
      })
      const workflow = make()
        .step("pay", { effects: [Charge], output: Schema.String }, () =>
          Charge.perform(payment).pipe(
            Effect.as("paid"),
            Effect.catchTag("Declined", ({ code }) => Effect.succeed(code)),
          ),
        )
        .output(Schema.String, ({ results }: any) => results.pay)
        .compile()
      expect(yield* runOn(bench, workflow, declines)).toEqual(Exit.succeed("stolen"))
      expect(keys).toEqual(["default/r/pay#0"])
      expect((yield* effectAt(bench)).state).toBe("failed")
    }))

  test("picks the same branch live and after a crash right behind it", (bench) =>
    Effect.gen(function* () {
      const branches: Array<string> = []
      const declines = Charge.toLayer(() => Effect.fail(new Declined({ code: "stolen" })))
      const workflow = make()
        .perform("pay", Charge, { payload: () => payment, settle: true })
        .step("branch", { effects: [], output: Schema.String }, ({ results }: any) => {
          branches.push(results.pay.ok ? "paid" : `${results.pay.error._tag} ${results.pay.error instanceof Declined}`)
          return branches.at(-1)
        })
        .output(Schema.String, ({ results }: any) => results.branch)
        .compile()
      yield* crashAt(bench, workflow, declines, "afterGate", "branch")
      expect(yield* resumeOn(bench, workflow, declines)).toEqual(Exit.succeed("Declined true"))
      expect(branches).toEqual(["Declined true", "Declined true"])
    }))
})

describe("an outcome that is known not to have happened", () => {
  test("NotPerformed is tried again under a new key, not before the asked-for time", (bench) =>
    Effect.gen(function* () {
      const seen: Array<readonly [key: string, at: number]> = []
      const limited = Charge.toLayer((_, { idempotencyKey }) =>
        Effect.flatMap(
          Effect.clockWith((clock) => clock.currentTimeMillis),
          (at) => {
            seen.push([idempotencyKey, at])
            return seen.length === 1
              ? Effect.fail(new NotPerformed({ problem: "429", retryAfterMs: 30_000 }))
              : Effect.succeed({ id: "ch", at: new Date(1) })
          },
        ),
      )
      const exit = yield* runOn(bench, paying({ retry: { times: 1, when: () => false } }), limited)
      expect(Exit.isSuccess(exit)).toBe(true)
      expect(seen.map(([key]) => key)).toEqual(["default/r/pay#0", "default/r/pay#1"])
      expect(seen[1]![1] - seen[0]![1]).toBeGreaterThanOrEqual(30_000)
      expect((yield* effectAt(bench, 0)).state).toBe("notPerformed")
    }))

  test("its attempt is recorded as refused, so that a restart keeps the generation", (bench) =>
    Effect.gen(function* () {
      const keys: Array<string> = []
      const declines = Charge.toLayer((_, { idempotencyKey }) => {
        keys.push(idempotencyKey)
        return keys.length < 3
          ? Effect.fail(new Declined({ code: "no" }))
          : Effect.succeed({ id: "ch", at: new Date(1) })
      })
      const workflow = paying({ retry: { times: 5, delay: "10 minutes" } })
      const exit = yield* Effect.gen(function* () {
        yield* Cairn.start(workflow, null, { runId: "r" })
        yield* Effect.repeat(Effect.sleep(10), { until: () => keys.length === 1 })
      }).pipe(
        withWorker(bench, [workflow], declines),
        Effect.provide(quiet),
        Effect.zipRight(resumeOn(bench, workflow, declines)),
      )
      expect(Exit.isSuccess(exit)).toBe(true)
      expect(keys).toEqual([0, 1, 2].map((n) => `default/r/pay#${n}`))
    }))
})

describe("a choice of operations", () => {
  const Act = Operation.oneOf({ charge: Charge, mail: Mail })
  const acting = (choose: () => any) =>
    make()
      .perform("act", Act, { payload: choose })
      .output(Schema.parseJson(), ({ results }: any) => results.act)
      .compile()
  const charge = () => ({ case: "charge", payload: payment })
  const mail = () => ({ case: "mail", payload: { to: "a", body: "b" } })

  test("performs the chosen one, and the result names its case", (bench) =>
    Effect.gen(function* () {
      const [charges, mails] = [new Provider(), new Provider()]
      const exit = yield* runOn(bench, acting(charge), Layer.merge(chargeAt(charges), mailAt(mails)))
      expect(Exit.isSuccess(exit) && exit.value).toEqual({
        case: "charge",
        result: { id: "ch_1", at: "1970-01-01T00:00:00.001Z" },
      })
      expect([charges.calls.length, mails.calls.length]).toEqual([1, 0])
      expect((yield* effectAt(bench, 0, "act")).operation).toBe("payments.charge")
    }))

  test("is recorded, and a resume that would choose otherwise is parked and sends nothing", (bench) =>
    Effect.gen(function* () {
      const [charges, mails] = [new Provider(), new Provider()]
      const handlers = Layer.merge(chargeAt(charges), mailAt(mails))
      yield* crashAt(bench, acting(charge), handlers, "afterEffect", "act")
      expect(errorOf(yield* resumeOn(bench, acting(mail), handlers))).toMatchObject({ reason: "IntentMismatch" })
      expect([charges.calls.length, mails.calls.length]).toEqual([1, 0])
    }))

  test("keeps each member's own policy", (bench) =>
    Effect.gen(function* () {
      let calls = 0
      const lost = Mail.toLayer(() => Effect.die(`lost ${++calls}`))
      yield* runOn(bench, acting(mail), Layer.merge(chargeAt(new Provider()), lost))
      expect(calls).toBe(3)
    }))

  test("a case that is not declared fails the run before any intent", (bench) =>
    Effect.gen(function* () {
      const handlers = Layer.merge(chargeAt(new Provider()), mailAt(new Provider()))
      const exit = yield* runOn(
        bench,
        acting(() => ({ case: "other", payload: null })),
        handlers,
      )
      expect(errorOf(exit)).toMatchObject({ _tag: "RunFailed", details: { tag: "InvalidValue" } })
      expect(bench.commits.flatMap(({ effects }) => effects)).toEqual([])
    }))
})
