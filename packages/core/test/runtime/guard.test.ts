/** The one-perform guard: a second, undeclared or misplaced operation never reaches a handler (CRN101, CRN102, CRN109). */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Schema } from "effect"
import { Cairn, OnUnknown, Operation, RunFailed, Workflow, type AnyWorkflow } from "../../src/index.js"
import { makeBench, quiet, refuseUnhandled, withWorker, type Bench } from "./support/bench.js"
import { Charge, chargeAt, Declined, Mail, mailAt, Provider } from "./support/operations.js"
import { makeVirtualClock } from "./support/virtualClock.js"

refuseUnhandled()

const payment = { customer: "ada", cents: 100 }

/** A step that declares the charge; what it does with it is the test's, types aside. */
const workflowOf = (run: (context: any) => unknown): AnyWorkflow =>
  (Workflow.make("guarded", { version: 1, input: Schema.Null }) as any)
    .step("pay", { effects: [Charge], output: Schema.parseJson() }, run)
    .compile()

const outcome = (bench: Bench, workflow: AnyWorkflow, needs: Layer.Layer<any>) =>
  Effect.gen(function* () {
    const handle = yield* Cairn.start(workflow, null, { runId: "r" })
    return yield* Effect.exit(handle.result)
  }).pipe(withWorker(bench, [workflow], needs), Effect.withClock(makeVirtualClock()), Effect.provide(quiet))

const failureOf = (exit: Exit.Exit<unknown, unknown>): RunFailed => {
  if (Exit.isFailure(exit) && exit.cause._tag === "Fail") return exit.cause.error as RunFailed
  throw new Error(`expected a failure, got ${String(exit)}`)
}

const run = (body: (context: any) => unknown) =>
  Effect.gen(function* () {
    const bench = yield* makeBench
    const charges = new Provider()
    const mails = new Provider()
    const exit = yield* outcome(bench, workflowOf(body), Layer.merge(chargeAt(charges), mailAt(mails)))
    const { run: row } = (yield* bench.driver.load("default", "r"))!
    return { exit, charges, mails, bench, row }
  })

const secondPerforms: Record<string, (context: any) => unknown> = {
  "one after the other": () => Effect.zipRight(Charge.perform(payment), Charge.perform(payment)),
  "with Effect.all": () => Effect.all([Charge.perform(payment), Charge.perform(payment)]),
  "with Effect.all at once": () => Effect.all([Charge.perform(payment), Charge.perform(payment)], { concurrency: 2 }),
  "with Effect.forEach at once": () =>
    Effect.forEach([1, 2, 3], (cents) => Charge.perform({ ...payment, cents }), { concurrency: "unbounded" }),
  "with a promise each": async ({ perform }) => {
    await perform(Charge, payment)
    await perform(Charge, payment)
  },
  "with Promise.all": ({ perform }) => Promise.all([perform(Charge, payment), perform(Charge, payment)]),
  "and swallows the refusal": ({ perform }) =>
    Promise.all([perform(Charge, payment), perform(Charge, payment).catch(() => null)]),
  "and catches every cause": () =>
    Effect.zipRight(
      Charge.perform(payment),
      Effect.catchAllCause(Charge.perform(payment), () => Effect.void),
    ),
}

describe("a second perform in one attempt", () => {
  for (const [how, body] of Object.entries(secondPerforms)) {
    it.live(`${how} never reaches the handler, and the run says why`, () =>
      Effect.gen(function* () {
        const { exit, charges, row } = yield* run(body)
        expect(charges.calls).toHaveLength(1)
        const failed = failureOf(exit)
        expect(failed._tag).toBe("RunFailed")
        expect(failed.step).toBe("pay")
        expect(failed.details.tag).toBe("StepMisuse")
        expect(failed.problem).toContain("CRN109")
        expect(row.status).toBe("failed")
      }),
    )
  }

  it.live("lets the first one be answered, so that no outcome is unknown when the run fails", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const charges = new Provider()
      const slow = Charge.toLayer((payload, context) =>
        Effect.as(
          Effect.sleep("2 seconds"),
          charges.handle(payload, context, () => ({ id: "ch", at: new Date(0) })) as any,
        ),
      )
      const workflow = workflowOf(() =>
        Effect.all([Charge.perform(payment), Charge.perform(payment)], { concurrency: 2 }),
      )
      const exit = yield* outcome(bench, workflow, slow)
      expect(failureOf(exit).problem).toContain("CRN109")
      const effect = yield* bench.driver.findEffect({ namespace: "default", runId: "r", path: "pay", generation: 0 })
      expect(effect?.state).toBe("succeeded")
      expect(charges.calls).toHaveLength(1)
    }),
  )
})

describe("operations that a step must not perform", () => {
  it.live("an undeclared one never reaches its handler", () =>
    Effect.gen(function* () {
      const { exit, mails, charges } = yield* run(() => Mail.perform({ to: "a", body: "b" }) as any)
      expect(mails.calls).toHaveLength(0)
      expect(charges.calls).toHaveLength(0)
      expect(failureOf(exit).problem).toContain("CRN102")
    }),
  )

  it.live("an undeclared one in promise style neither", () =>
    Effect.gen(function* () {
      const { exit, mails } = yield* run(({ perform }) => perform(Mail, { to: "a", body: "b" }))
      expect(mails.calls).toHaveLength(0)
      expect(failureOf(exit).problem).toContain("CRN102")
    }),
  )

  it.live("another operation of the same name is not the declared one", () =>
    Effect.gen(function* () {
      const impostor = Operation.make("payments.charge", {
        payload: Schema.Struct({ all: Schema.Literal(true) }),
        success: Schema.Void,
        onUnknown: OnUnknown.retryWithKey({ keyWindow: "1 hour" }),
      })
      const { exit, charges } = yield* run(() => impostor.perform({ all: true }) as any)
      expect(charges.calls).toHaveLength(0)
      expect(failureOf(exit).problem).toContain("CRN102")
    }),
  )

  it.effect("outside of a step nothing is performed", () =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(Charge.perform(payment) as Effect.Effect<unknown>)
      expect(Exit.isFailure(exit)).toBe(true)
      expect(String(exit)).toContain("CRN109")
    }),
  )

  it.live("a declared one that is never performed fails the step", () =>
    Effect.gen(function* () {
      const { exit, charges, bench } = yield* run(() => "done")
      expect(charges.calls).toHaveLength(0)
      expect(failureOf(exit).problem).toContain("CRN109")
      expect(bench.commits.flatMap(({ steps }) => steps)).toEqual([])
    }),
  )
})

describe("a perform that nobody waits for", () => {
  it.live("is waited for by the attempt, and its outcome is part of the step's commit", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const charges = new Provider()
      const slow = Charge.toLayer((payload, context) =>
        Effect.as(
          Effect.sleep("2 seconds"),
          charges.handle(payload, context, () => ({ id: "ch", at: new Date(0) })) as any,
        ),
      )
      const workflow = workflowOf(async ({ perform }) => {
        void perform(Charge, payment)
        return "gone on"
      })
      const exit = yield* outcome(bench, workflow, slow)
      expect(Exit.isSuccess(exit)).toBe(true)
      const commit = bench.commits.find(({ steps }) => steps.length > 0)
      expect(commit?.effects.map(({ state }) => state)).toEqual(["succeeded"])
      expect(charges.calls).toHaveLength(1)
    }),
  )

  it.live("is waited for although the function throws", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const charges = new Provider()
      const slow = Charge.toLayer((payload, context) =>
        Effect.as(
          Effect.sleep("2 seconds"),
          charges.handle(payload, context, () => ({ id: "ch", at: new Date(0) })) as any,
        ),
      )
      const workflow = workflowOf(async ({ perform }) => {
        void perform(Charge, payment)
        throw new Error("after the perform")
      })
      const exit = yield* outcome(bench, workflow, slow)
      expect(failureOf(exit).problem).toBe("after the perform")
      expect(charges.calls).toHaveLength(1)
      const effect = yield* bench.driver.findEffect({ namespace: "default", runId: "r", path: "pay", generation: 0 })
      expect(effect?.state).toBe("succeeded")
    }),
  )

  it.live("rejects without reaching the process when it is refused", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const declines = Charge.toLayer(() => Effect.fail(new Declined({ code: "stolen" })))
      const workflow = workflowOf(async ({ perform }) => {
        void perform(Charge, payment)
        return "gone on"
      })
      const exit = yield* outcome(bench, workflow, declines)
      expect(Exit.isSuccess(exit)).toBe(true)
    }),
  )

  it.live("in a fiber of its own is waited for all the same", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const charges = new Provider()
      const slow = Charge.toLayer((payload, context) =>
        Effect.as(
          Effect.sleep("2 seconds"),
          charges.handle(payload, context, () => ({ id: "ch", at: new Date(0) })) as any,
        ),
      )
      const workflow = workflowOf(() =>
        Effect.gen(function* () {
          yield* Effect.forkDaemon(Charge.perform(payment))
          // The fiber begins; nobody joins it.
          yield* Effect.yieldNow()
          return "gone on"
        }),
      )
      const exit = yield* outcome(bench, workflow, slow)
      expect(Exit.isSuccess(exit)).toBe(true)
      expect(charges.calls).toHaveLength(1)
      const commit = bench.commits.find(({ steps }) => steps.length > 0)
      expect(commit?.effects.map(({ state }) => state)).toEqual(["succeeded"])
    }),
  )

  it.live("after its step has ended is refused", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const charges = new Provider()
      let late: Fiber.RuntimeFiber<unknown, unknown> | null = null
      const workflow: AnyWorkflow = (Workflow.make("guarded", { version: 1, input: Schema.Null }) as any)
        .step("pay", { effects: [Charge], output: Schema.parseJson() }, () =>
          Effect.gen(function* () {
            late = yield* Effect.forkDaemon(Effect.zipRight(Effect.sleep("1 second"), Charge.perform(payment)))
            return (yield* Charge.perform(payment)).id
          }),
        )
        .step("rest", { effects: [], output: Schema.Null }, () => Effect.as(Effect.sleep("5 seconds"), null))
        .compile()
      const exit = yield* outcome(bench, workflow, chargeAt(charges))
      expect(Exit.isSuccess(exit)).toBe(true)
      expect(charges.calls).toHaveLength(1)
      const lateExit = yield* Fiber.await(late!)
      expect(Exit.isFailure(lateExit)).toBe(true)
    }),
  )
})

describe("a perform that begins when its step has failed without one", () => {
  it.live("is refused", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const charges = new Provider()
      let late: Fiber.RuntimeFiber<unknown, unknown> | null = null
      const workflow = workflowOf(() =>
        Effect.gen(function* () {
          late = yield* Effect.forkDaemon(Effect.delay(Charge.perform(payment), "1 second"))
          return yield* Effect.fail(new Error("early"))
        }),
      )
      const exit = yield* Effect.gen(function* () {
        const handle = yield* Cairn.start(workflow, null, { runId: "r" })
        const ended = yield* Effect.exit(handle.result)
        expect(Exit.isFailure(yield* Fiber.await(late!))).toBe(true)
        return ended
      }).pipe(
        withWorker(bench, [workflow], chargeAt(charges)),
        Effect.withClock(makeVirtualClock()),
        Effect.provide(quiet),
      )
      expect(failureOf(exit).problem).toBe("early")
      expect(charges.calls).toHaveLength(0)
      expect(bench.commits.flatMap(({ effects }) => effects)).toEqual([])
    }),
  )
})

describe("a perform within a handler", () => {
  it.live("is no perform of the step: it is refused and never reaches a handler", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const mails = new Provider()
      const nested = Charge.toLayer(() =>
        Effect.as(Mail.perform({ to: "a", body: "b" }) as Effect.Effect<void>, { id: "ch", at: new Date(0) }),
      )
      const workflow = workflowOf(() => Charge.perform(payment))
      const exit = yield* outcome(bench, workflow, Layer.merge(nested, mailAt(mails)))
      expect(mails.calls).toHaveLength(0)
      const parked = failureOf(exit) as unknown as { readonly _tag: string; readonly reason: string }
      expect(parked).toMatchObject({ _tag: "RunParked", reason: "OutcomeUnknown" })
    }),
  )
})
