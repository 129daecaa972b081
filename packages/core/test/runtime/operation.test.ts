/** Operations: the key, the recorded payload, the three endings, and when nothing is sent any more. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Layer, Schema } from "effect"
import {
  Cairn,
  NotPerformed,
  OnUnknown,
  Operation,
  Workflow,
  type AnyWorkflow,
  type FaultPoint,
  type HandlerContext,
} from "../../src/index.js"
import {
  intercepted,
  makeBench,
  makeMortal,
  quiet,
  refuseUnhandled,
  startDoomed,
  storeLayer,
  withWorker,
  type Bench,
} from "./support/bench.js"
import { Charge, chargeAt, Declined, Mail, mailAt, Provider, type Receipt } from "./support/operations.js"
import { makeVirtualClock } from "./support/virtualClock.js"

refuseUnhandled()

const make = (): any => (Workflow.make as any)("paying", { version: 1, input: Schema.Null })
const payment = { customer: "ada", cents: 100 }
const paying = (spec: object = {}): AnyWorkflow =>
  make()
    .perform("pay", Charge, { payload: () => payment, ...spec })
    .output(Schema.parseJson(), ({ results }: any) => results.pay)
    .compile()

const runOn = (bench: Bench, workflow: AnyWorkflow, needs: Layer.Layer<any>, runId = "r") =>
  Effect.gen(function* () {
    const handle = yield* Cairn.start(workflow, null, { runId })
    return yield* Effect.exit(handle.result)
  }).pipe(withWorker(bench, [workflow], needs), Effect.provide(quiet)) as Effect.Effect<Exit.Exit<any, any>>

const errorOf = (exit: Exit.Exit<unknown, any>): any =>
  Exit.isFailure(exit) && exit.cause._tag === "Fail" ? exit.cause.error : exit

const effectAt = (bench: Bench, generation = 0, path = "pay") =>
  Effect.map(bench.driver.findEffect({ namespace: "default", runId: "r", path, generation }), (found) => found!)

/** Runs on a worker that dies at a point of a step. The run is left as the crash left it. */
const crashAt = (bench: Bench, workflow: AnyWorkflow, needs: Layer.Layer<any>, point: FaultPoint, step = "pay") =>
  Effect.gen(function* () {
    let reached = false
    const mortal = makeMortal(bench.store, (at, site) =>
      Effect.sync(() => {
        if (at !== point || site.step !== step) return
        mortal.kill()
        reached = true
      }),
    )
    yield* startDoomed(mortal, { workflows: [workflow] }, needs)
    yield* Effect.provide(Cairn.start(workflow, null, { runId: "r" }), storeLayer(bench.store))
    yield* Effect.repeat(Effect.sleep(10), { until: () => reached })
  }).pipe(Effect.provide(quiet))

const resumeOn = (bench: Bench, workflow: AnyWorkflow, needs: Layer.Layer<any>) =>
  Effect.gen(function* () {
    const handle = yield* Cairn.attach(workflow, { runId: "r" })
    return yield* Effect.exit(handle.result)
  }).pipe(withWorker(bench, [workflow], needs), Effect.provide(quiet)) as Effect.Effect<Exit.Exit<any, any>>

const test = (title: string, body: (bench: Bench) => Effect.Effect<void, any, any>) =>
  it.live(
    title,
    () =>
      Effect.flatMap(makeBench, body).pipe(Effect.scoped, Effect.withClock(makeVirtualClock())) as Effect.Effect<
        void,
        any
      >,
  )

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

  test("an answer that does not fit its schema parks the run: it was performed", (bench) =>
    Effect.gen(function* () {
      let calls = 0
      const odd = Charge.toLayer((() => Effect.succeed({ id: ++calls })) as never)
      expect(errorOf(yield* runOn(bench, paying(), odd))).toMatchObject({ _tag: "RunParked", reason: "OutputInvalid" })
      expect(calls).toBe(1)
    }))
})

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
