/** What each policy makes of an unknown outcome, after a crash at every point and live: effects are counted. */
import { describe, expect } from "@effect/vitest"
import { Clock, Effect, Exit, Layer, Schema } from "effect"
import {
  Cairn,
  Faults,
  OnUnknown,
  Operation,
  type AnyWorkflow,
  type Checked,
  type FaultPoint,
  type HandlerContext,
} from "../../src/index.js"
import { quiet, refuseUnhandled, startWorker, storeLayer, type Bench } from "./support/bench.js"
import { Checking, letter, Outbox, Recording, Reviewing, type Sent } from "./support/mailing.js"
import { crashAt, effectAt, errorOf, make, resumeOn, runOn, test } from "./support/paying.js"

refuseUnhandled()

type Policy = typeof Checking | typeof Recording | typeof Reviewing

/** Sends in a step of its own form, or from within a step. */
const sending = (operation: Policy, form: "perform" | "step" = "perform", payload: object = letter): AnyWorkflow =>
  (form === "perform"
    ? make().perform("pay", operation, { payload: () => payload })
    : make().step("pay", { effects: [operation], output: Schema.parseJson() }, () =>
        (operation.perform as any)(payload),
      )
  ).compile()

const points: ReadonlyArray<FaultPoint> = [
  "beforeIntent",
  "afterIntent",
  "beforeEffect",
  "afterEffect",
  "afterGate",
  "beforeCommit",
  "afterCommit",
]

const key = "default/r/pay#0"
const statusOf = (bench: Bench) => Effect.map(bench.driver.findRun("default", "r"), (row) => row?.status)

describe("after a crash", () => {
  const unknownAt = (point: FaultPoint) => point !== "beforeIntent" && point !== "afterCommit"
  const sentBefore = (point: FaultPoint) => points.indexOf(point) >= points.indexOf("afterEffect")

  for (const form of ["perform", "step"] as const) {
    for (const point of points) {
      test(`at ${point} of a ${form}, checkFirst asks where it must and performs once`, (bench) =>
        Effect.gen(function* () {
          const outbox = new Outbox()
          const workflow = sending(Checking, form)
          const needs = outbox.layerOf(Checking)
          yield* crashAt(bench, workflow, needs, point)
          expect(Exit.isSuccess(yield* resumeOn(bench, workflow, needs))).toBe(true)
          expect(outbox.sent).toEqual([{ key, ...letter }])
          expect(outbox.asked).toEqual(unknownAt(point) ? [{ key, ...letter }] : [])
          expect(yield* effectAt(bench)).toMatchObject({ state: "succeeded", outcome: expect.stringContaining("m_1") })
        }))

      test(`at ${point} of a ${form}, review parks where the outcome is unknown and sends nothing again`, (bench) =>
        Effect.gen(function* () {
          const outbox = new Outbox()
          const workflow = sending(Reviewing, form)
          const needs = outbox.layerOf(Reviewing)
          yield* crashAt(bench, workflow, needs, point)
          const exit = yield* resumeOn(bench, workflow, needs)
          if (!unknownAt(point)) return expect([Exit.isSuccess(exit), outbox.sent.length]).toEqual([true, 1])
          expect(errorOf(exit)).toMatchObject({ _tag: "RunParked", reason: "OutcomeUnknown", step: "pay" })
          expect(outbox.sent).toHaveLength(sentBefore(point) ? 1 : 0)
          // Resuming is no answer.
          yield* Effect.provide(Cairn.resume({ runId: "r" }), storeLayer(bench.store))
          expect(errorOf(yield* resumeOn(bench, workflow, needs))).toMatchObject({ reason: "OutcomeUnknown" })
          expect(outbox.sent).toHaveLength(sentBefore(point) ? 1 : 0)
        }))
    }

    for (const point of [...points, "afterRecord"] as const) {
      test(`at ${point} of a ${form}, recordFirst performs again only where the record is missing`, (bench) =>
        Effect.gen(function* () {
          const outbox = new Outbox()
          const workflow = sending(Recording, form)
          const needs = outbox.layerOf(Recording)
          yield* crashAt(bench, workflow, needs, point)
          const recorded = yield* bench.driver.findEffect({
            namespace: "default",
            runId: "r",
            path: "pay",
            generation: 0,
          })
          if (["afterRecord", "afterGate", "beforeCommit"].includes(point)) expect(recorded?.state).toBe("succeeded")
          expect(Exit.isSuccess(yield* resumeOn(bench, workflow, needs))).toBe(true)
          expect(outbox.sent).toHaveLength(point === "afterEffect" ? 2 : 1)
          expect(new Set(outbox.sent.map(({ key: each }) => each))).toEqual(new Set([key]))
        }))
    }
  }

  for (const policy of [Checking, Recording, Reviewing]) {
    test(`what a late worker of ${policy.name} has recorded is read before anything else is done`, (bench) =>
      Effect.gen(function* () {
        const outbox = new Outbox()
        const workflow = sending(policy)
        const needs = outbox.layerOf(policy)
        yield* crashAt(bench, workflow, needs, "afterEffect")
        const { idempotencyKey, payloadHash, claimToken } = yield* effectAt(bench)
        const late = {
          namespace: "default",
          runId: "r",
          path: "pay",
          generation: 0,
          idempotencyKey,
          payloadHash,
          claimToken,
        }
        const outcome = JSON.stringify({ id: "m_late", at: new Date(7) })
        yield* bench.driver.recordOutcome({ ...late, state: "succeeded", outcome })
        expect(Exit.isSuccess(yield* resumeOn(bench, workflow, needs))).toBe(true)
        expect([outbox.sent.length, outbox.asked.length]).toEqual([1, 0])
        expect((yield* bench.driver.load("default", "r"))!.steps[0]!.result).toBe(outcome)
      }))
  }

  test("an outcome that is recorded just before the new owner's intent is read, and nobody is asked", (bench) =>
    Effect.gen(function* () {
      const outbox = new Outbox()
      const workflow = sending(Checking)
      const needs = outbox.layerOf(Checking)
      yield* crashAt(bench, workflow, needs, "afterEffect")
      const { idempotencyKey, payloadHash, claimToken } = yield* effectAt(bench)
      const late = {
        namespace: "default",
        runId: "r",
        path: "pay",
        generation: 0,
        idempotencyKey,
        payloadHash,
        claimToken,
      }
      const outcome = JSON.stringify({ id: "m_late", at: new Date(7) })
      const faults = Layer.succeed(Faults, {
        reach: (point) =>
          point === "beforeIntent"
            ? Effect.asVoid(Effect.orDie(bench.driver.recordOutcome({ ...late, state: "succeeded", outcome })))
            : Effect.void,
      })
      yield* startWorker(bench.store, { workflows: [workflow] }, needs, faults)
      const handle = yield* Effect.provide(Cairn.attach(workflow, { runId: "r" }), storeLayer(bench.store))
      yield* handle.result
      expect([outbox.sent.length, outbox.asked.length]).toEqual([1, 0])
    }).pipe(Effect.provide(quiet)))

  for (const policy of [Checking, Recording, Reviewing]) {
    test(`another payload under the key of ${policy.name} is an IntentMismatch, and nothing is sent or asked`, (bench) =>
      Effect.gen(function* () {
        const outbox = new Outbox()
        const needs = outbox.layerOf(policy)
        yield* crashAt(bench, sending(policy), needs, "afterEffect")
        const changed = sending(policy, "perform", { to: "eve" })
        expect(errorOf(yield* resumeOn(bench, changed, needs))).toMatchObject({
          _tag: "RunParked",
          reason: "IntentMismatch",
        })
        expect([outbox.sent.length, outbox.asked.length]).toEqual([1, 0])
      }))
  }
})

describe("a live unknown", () => {
  const unknowns: Record<string, () => Effect.Effect<never, any>> = {
    "a lost connection": () => Effect.die(new Error("connection lost")),
    "an undeclared failure": () => Effect.fail("something else"),
    "a timeout": () => Effect.never,
    "an interruption from within": () => Effect.interrupt,
  }
  for (const [what, ending] of Object.entries(unknowns)) {
    const once = (sent: Sent, _: HandlerContext, count: number) => (count === 1 ? ending() : Effect.succeed(sent))

    test(`${what} is asked about by checkFirst, and not performed again`, (bench) =>
      Effect.gen(function* () {
        const outbox = new Outbox()
        const exit = yield* runOn(bench, sending(Checking), outbox.layerOf(Checking, once))
        expect(Exit.isSuccess(exit)).toBe(true)
        expect([outbox.sent.length, outbox.asked]).toEqual([1, [{ key, ...letter }]])
      }))

    test(`${what} is performed again by recordFirst, under the same key`, (bench) =>
      Effect.gen(function* () {
        const outbox = new Outbox()
        const exit = yield* runOn(bench, sending(Recording), outbox.layerOf(Recording, once))
        expect(Exit.isSuccess(exit)).toBe(true)
        expect(outbox.sent.map(({ key: each }) => each)).toEqual([key, key])
      }))

    test(`${what} parks a run with review, and nothing is sent again`, (bench) =>
      Effect.gen(function* () {
        const outbox = new Outbox()
        const exit = yield* runOn(bench, sending(Reviewing), outbox.layerOf(Reviewing, once))
        expect(errorOf(exit)).toMatchObject({ _tag: "RunParked", reason: "OutcomeUnknown" })
        expect(outbox.sent).toHaveLength(1)
      }))
  }

  test("a known outcome is no unknown: review goes on after NotPerformed under a new key", (bench) =>
    Effect.gen(function* () {
      const keys: Array<string> = []
      const handler = Reviewing.toLayer((_, { idempotencyKey }) => {
        keys.push(idempotencyKey)
        const refused = { _tag: "NotPerformed", problem: "429", isRetryable: true }
        return (keys.length === 1 ? Effect.fail(refused) : Effect.succeed({ id: "m", at: new Date(1) })) as never
      })
      const workflow = make()
        .perform("pay", Reviewing, { payload: () => letter, retry: { times: 1 } })
        .compile()
      expect(Exit.isSuccess(yield* runOn(bench, workflow, handler))).toBe(true)
      expect(keys).toEqual([key, "default/r/pay#1"])
    }))
})

describe("a check", () => {
  /** The first send gets lost before it has any effect. */
  const lostFirst = (
    check: (count: number, context: HandlerContext) => Effect.Effect<Checked<Sent>, unknown> | Promise<Checked<Sent>>,
  ) => {
    const seen = { sends: [] as Array<string>, sentAt: [] as Array<number>, checkedAt: [] as Array<number> }
    const layer = Checking.toLayer(
      (_, { idempotencyKey }) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          seen.sends.push(idempotencyKey)
          seen.sentAt.push(now)
          return seen.sends.length === 1 ? Effect.die("lost") : Effect.succeed({ id: "m", at: new Date(1) })
        }),
      {
        check: (_, context) =>
          Effect.flatMap(Clock.currentTimeMillis, (now) => {
            seen.checkedAt.push(now)
            const found = check(seen.checkedAt.length, context)
            return Effect.isEffect(found) ? found : Effect.promise(() => found)
          }),
      },
    )
    return { seen, layer }
  }
  const no = Effect.succeed({ happened: false } as const)

  test("that says no has the operation performed again, under the same key", (bench) =>
    Effect.gen(function* () {
      const { seen, layer } = lostFirst(() => no)
      expect(Exit.isSuccess(yield* runOn(bench, sending(Checking), layer))).toBe(true)
      expect(seen.sends).toEqual([key, key])
      expect((yield* effectAt(bench)).sends).toBe(2)
    }))

  test("is not asked while what was cut off may still be under way", (bench) =>
    Effect.gen(function* () {
      const { seen, layer } = lostFirst(() => no)
      yield* runOn(bench, sending(Checking), layer)
      expect(seen.checkedAt[0]! - seen.sentAt[0]!).toBeGreaterThanOrEqual(30_000)
    }))

  const failing: Record<string, () => Effect.Effect<Checked<Sent>, unknown>> = {
    fails: () => Effect.fail("provider away"),
    dies: () => Effect.die(new Error("bug")),
    throws: () => {
      throw new Error("bug")
    },
    "never answers": () => Effect.never,
    "is interrupted from within": () => Effect.interrupt,
    "says neither": () => Effect.succeed({} as never),
  }
  for (const [how, ending] of Object.entries(failing)) {
    test(`that ${how} is asked again, and nothing is sent meanwhile`, (bench) =>
      Effect.gen(function* () {
        let sends = 0
        const { seen, layer } = lostFirst((count) => {
          sends = seen.sends.length
          return count < 3 ? ending() : no
        })
        expect(Exit.isSuccess(yield* runOn(bench, sending(Checking), layer))).toBe(true)
        expect([seen.checkedAt.length, sends, seen.sends.length]).toEqual([3, 1, 2])
      }))
  }

  test("that keeps failing parks the run after the declared number of sends and checks", (bench) =>
    Effect.gen(function* () {
      const { seen, layer } = lostFirst(() => Effect.fail("provider away"))
      const parked = errorOf(yield* runOn(bench, sending(Checking), layer))
      expect(parked).toMatchObject({ _tag: "RunParked", reason: "OutcomeUnknown", step: "pay" })
      expect([seen.sends.length, seen.checkedAt.length]).toEqual([1, 3])
    }))

  test("whose result does not fit the schema parks the run, and the result is kept", (bench) =>
    Effect.gen(function* () {
      const { seen, layer } = lostFirst(() => Effect.succeed({ happened: true, result: { id: 7 } } as never))
      const parked = errorOf(yield* runOn(bench, sending(Checking), layer))
      expect(parked).toMatchObject({ reason: "OutputInvalid" })
      expect(seen.sends).toHaveLength(1)
      const { attempts } = yield* bench.driver.loadOpen("default", "r", ["pay"])
      expect(attempts.map(({ output }) => output)).toEqual(['{"id":7}'])
    }))

  test("may answer with a promise, is told the recorded payload and key, and is aborted at its timeout", (bench) =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      let aborted = 0
      const layer = Checking.toLayer(() => Promise.reject(new Error("lost")), {
        check: (payload, { idempotencyKey, signal }) => {
          seen.push(payload, idempotencyKey)
          if (seen.length > 2) return Promise.resolve({ happened: true, result: { id: "m", at: new Date(1) } })
          return new Promise((_, reject) =>
            signal.addEventListener("abort", () => {
              aborted++
              reject(new Error("aborted"))
            }),
          )
        },
      })
      expect(Exit.isSuccess(yield* runOn(bench, sending(Checking), layer))).toBe(true)
      expect([seen, aborted]).toEqual([[letter, key, letter, key], 1])
    }))

  test("that is missing is found when the worker starts", (bench) =>
    Effect.gen(function* () {
      const layer = (Checking.toLayer as any)(() => Effect.never)
      const exit = yield* Effect.exit(startWorker(bench.store, { workflows: [sending(Checking)] }, layer))
      expect(errorOf(exit)).toMatchObject({ _tag: "CompileError" })
      expect(errorOf(exit).message).toContain("CRN107: step 'pay' has no check for 'mail.checking'")
    }))

  test("is not asked past the key window: the run is parked", (bench) =>
    Effect.gen(function* () {
      const Brief = Operation.make("brief", {
        payload: Schema.Null,
        success: Schema.Void,
        timeout: "10 seconds",
        onUnknown: OnUnknown.checkFirst({ keyWindow: "1 minute" }),
      })
      let asked = 0
      const layer = Brief.toLayer(() => Effect.void, {
        check: () => Effect.sync(() => ({ happened: ++asked > 0 }) as const) as never,
      })
      const workflow = make()
        .perform("pay", Brief, { payload: () => null })
        .compile()
      yield* crashAt(bench, workflow, layer, "afterEffect")
      yield* Effect.sleep("50 seconds")
      expect(errorOf(yield* resumeOn(bench, workflow, layer))).toMatchObject({ reason: "OutcomeUnknown" })
      expect(asked).toBe(0)
    }))
})

describe("a choice", () => {
  const Act = Operation.oneOf({ ask: Checking, tell: Reviewing })
  const choosing = (name: "ask" | "tell"): AnyWorkflow =>
    make()
      .perform("pay", Act, { payload: () => ({ case: name, payload: letter }) })
      .output(Schema.parseJson(), ({ results }: any) => [results.pay.case, results.pay.result.id])
      .compile()

  test("keeps each member's own policy", (bench) =>
    Effect.gen(function* () {
      const outbox = new Outbox()
      const needs = Layer.merge(outbox.layerOf(Checking), outbox.layerOf(Reviewing))
      yield* crashAt(bench, choosing("ask"), needs, "afterEffect")
      const exit = yield* resumeOn(bench, choosing("ask"), needs)
      expect(exit).toEqual(Exit.succeed(["ask", "m_1"]))
      expect([outbox.sent.length, outbox.asked.length]).toEqual([1, 1])
    }))

  test("of a member with review is parked, and goes on with a person's answer", (bench) =>
    Effect.gen(function* () {
      const outbox = new Outbox()
      const needs = Layer.merge(outbox.layerOf(Checking), outbox.layerOf(Reviewing))
      yield* crashAt(bench, choosing("tell"), needs, "afterEffect")
      expect(errorOf(yield* resumeOn(bench, choosing("tell"), needs))).toMatchObject({ reason: "OutcomeUnknown" })
      yield* Effect.provide(
        Cairn.answer(choosing("tell"), { runId: "r" }, { happened: true, result: { id: "m_1", at: new Date(1) } }),
        storeLayer(bench.store),
      )
      expect(yield* resumeOn(bench, choosing("tell"), needs)).toEqual(Exit.succeed(["tell", "m_1"]))
      expect(outbox.sent).toHaveLength(1)
      expect(yield* statusOf(bench)).toBe("completed")
    }))
})
