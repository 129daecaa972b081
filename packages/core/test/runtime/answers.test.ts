/** What a person says of an unknown outcome: checked, taken once, and what the run makes of it. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Layer, Option, Schema } from "effect"
import {
  Cairn,
  CheckpointStore,
  MemoryStore,
  OnUnknown,
  Operation,
  Output,
  type OutcomeAnswer,
} from "../../src/index.js"
import { nothing, quiet, refuseUnhandled, storeLayer, type Bench } from "./support/bench.js"
import { letter, Outbox, Reviewing } from "./support/mailing.js"
import { Charge, chargeAt, Provider } from "./support/operations.js"
import { crashAt, effectAt, errorOf, make, payment, resumeOn, runOn, test } from "./support/paying.js"

refuseUnhandled()

const workflow = make()
  .perform("pay", Reviewing, { payload: () => letter, retry: { times: 2 } })
  .output(Schema.parseJson(), ({ results }: any) => results.pay.id)
  .compile()

const result = { id: "m_1", at: new Date(1) }
const happened = { happened: true, result } as const

/** A run that is parked after its operation was sent. */
const parkedRun = (bench: Bench) =>
  Effect.gen(function* () {
    const outbox = new Outbox()
    const needs = outbox.layerOf(Reviewing)
    yield* crashAt(bench, workflow, needs, "afterEffect")
    expect(errorOf(yield* resumeOn(bench, workflow, needs))).toMatchObject({ reason: "OutcomeUnknown" })
    return { outbox, needs }
  })

const on = <A, E>(bench: Bench, effect: Effect.Effect<A, E, CheckpointStore>) =>
  Effect.provide(effect, storeLayer(bench.store))

const say = (bench: Bench, said: OutcomeAnswer, of: object = {}, flow = workflow) =>
  Effect.exit(on(bench, Cairn.answer(flow, { runId: "r", ...of }, said)))

const attempts = (bench: Bench) =>
  Effect.map(bench.driver.loadOpen("default", "r", ["pay"]), (open) =>
    open.attempts.map(({ attempt, kind }) => ({ attempt, kind })),
  )

describe("an answer", () => {
  test("that it happened is the operation's result: nothing is sent again", (bench) =>
    Effect.gen(function* () {
      const { outbox, needs } = yield* parkedRun(bench)
      expect(yield* say(bench, happened)).toEqual(Exit.void)
      expect(yield* effectAt(bench)).toMatchObject({
        state: "succeeded",
        outcome: '{"id":"m_1","at":"1970-01-01T00:00:00.001Z"}',
      })
      expect(yield* resumeOn(bench, workflow, needs)).toEqual(Exit.succeed("m_1"))
      expect(outbox.sent).toHaveLength(1)
    }))

  test("may give the result in its encoded form", (bench) =>
    Effect.gen(function* () {
      const { needs } = yield* parkedRun(bench)
      const encoded = Output.json('{"id":"m_9","at":"1970-01-01T00:00:00.001Z"}')
      expect(yield* say(bench, { happened: true, result: encoded })).toEqual(Exit.void)
      expect(yield* resumeOn(bench, workflow, needs)).toEqual(Exit.succeed("m_9"))
    }))

  test("that it did not happen has it performed again, under a new key", (bench) =>
    Effect.gen(function* () {
      const { outbox, needs } = yield* parkedRun(bench)
      expect(yield* say(bench, { happened: false })).toEqual(Exit.void)
      expect(yield* effectAt(bench)).toMatchObject({ state: "notPerformed", outcome: null })
      expect(yield* attempts(bench)).toEqual([{ attempt: 1, kind: "refused" }])
      expect(yield* resumeOn(bench, workflow, needs)).toEqual(Exit.succeed("m_2"))
      expect(outbox.sent.map(({ key }) => key)).toEqual(["default/r/pay#0", "default/r/pay#1"])
    }))

  test("with a result that does not fit is refused, and the run stays parked", (bench) =>
    Effect.gen(function* () {
      const { needs } = yield* parkedRun(bench)
      for (const wrong of [{ id: 7 }, undefined, Output.unvalidated({ id: "m" }), Output.json("{")]) {
        expect(errorOf(yield* say(bench, { happened: true, result: wrong }))).toMatchObject({ _tag: "InvalidValue" })
      }
      expect((yield* effectAt(bench)).state).toBe("intended")
      expect((yield* bench.driver.findRun("default", "r"))!.status).toBe("review")
      expect(yield* say(bench, happened)).toEqual(Exit.void)
      expect(yield* resumeOn(bench, workflow, needs)).toEqual(Exit.succeed("m_1"))
    }))

  for (const first of [happened, { happened: false }] as const) {
    for (const second of [happened, { happened: false }] as const) {
      test(`${first.happened} is taken once: ${second.happened} after it is refused`, (bench) =>
        Effect.gen(function* () {
          yield* parkedRun(bench)
          expect(yield* say(bench, first)).toEqual(Exit.void)
          const before = yield* effectAt(bench)
          expect(errorOf(yield* say(bench, second))).toMatchObject({ _tag: "AnswerRefused", reason: "AlreadyAnswered" })
          expect(yield* effectAt(bench)).toEqual(before)
        }))
    }
  }

  test("of twenty at once one is taken", (bench) =>
    Effect.gen(function* () {
      const { needs } = yield* parkedRun(bench)
      const said = yield* Effect.forEach(
        Array.from({ length: 20 }, (_, n) => ({ happened: true, result: { ...result, id: `m_${n}` } }) as const),
        (each) => say(bench, each),
        { concurrency: "unbounded" },
      )
      const taken = said.flatMap((exit, n) => (Exit.isSuccess(exit) ? [n] : []))
      expect(taken).toHaveLength(1)
      expect(new Set(said.filter(Exit.isFailure).map((exit) => errorOf(exit).reason))).toEqual(
        new Set(["AlreadyAnswered"]),
      )
      expect(yield* resumeOn(bench, workflow, needs)).toEqual(Exit.succeed(`m_${taken[0]}`))
    }))

  test("is refused where somebody else was first between looking and writing", (bench) =>
    Effect.gen(function* () {
      yield* parkedRun(bench)
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
      const store = {
        ...bench.store,
        answer: (given: Parameters<typeof bench.store.answer>[0]) =>
          Effect.zipRight(
            bench.driver.recordOutcome({ ...late, state: "succeeded", outcome: "1" }),
            bench.store.answer(given),
          ),
      }
      const exit = yield* say({ ...bench, store }, { happened: false })
      expect(errorOf(exit)).toMatchObject({ _tag: "AnswerRefused", reason: "AlreadyAnswered" })
      expect(yield* effectAt(bench)).toMatchObject({ state: "succeeded", outcome: "1" })
      expect(yield* attempts(bench)).toEqual([])
    }))

  test("is refused for a run that is not parked, that does not exist, or is another workflow's", (bench) =>
    Effect.gen(function* () {
      expect(errorOf(yield* say(bench, happened))).toMatchObject({ _tag: "RunNotFound" })
      yield* on(bench, Cairn.start(workflow, null, { runId: "r" }))
      expect(errorOf(yield* say(bench, happened))).toMatchObject({ _tag: "AnswerRefused", reason: "NotParked" })
      const other = make()
        .perform("pay", Charge, { payload: () => payment })
        .compile()
      const newer = { ...other, plan: Effect.map(other.plan, (plan: any) => ({ ...plan, version: 2 })) }
      expect(errorOf(yield* say(bench, happened, {}, newer))).toMatchObject({ _tag: "RunConflict" })
    }))

  test("for another step than the run is parked at is refused", (bench) =>
    Effect.gen(function* () {
      yield* parkedRun(bench)
      expect(errorOf(yield* say(bench, happened, { step: "other" }))).toMatchObject({ reason: "StepDiffers" })
      expect(yield* say(bench, happened, { step: "pay" })).toEqual(Exit.void)
    }))

  test("is refused where nothing is unknown", (bench) =>
    Effect.gen(function* () {
      const invalid = make()
        .step(
          "pay",
          { effects: [], output: Schema.Number, onInvalid: { retries: 0, then: "review" } },
          () => "no" as never,
        )
        .compile()
      yield* runOn(bench, invalid, nothing)
      expect(errorOf(yield* say(bench, happened, {}, invalid))).toMatchObject({ reason: "NothingUnknown" })
    }))

  test("settles what is parked past its number of sends as well", (bench) =>
    Effect.gen(function* () {
      const Twice = Operation.make("twice", {
        payload: Schema.Null,
        success: Schema.Void,
        onUnknown: OnUnknown.retryWithKey({ keyWindow: "1 day", maxSends: 2 }),
      })
      let sends = 0
      const layer = Twice.toLayer(() => Effect.die(`lost ${++sends}`))
      const flow = make()
        .perform("pay", Twice, { payload: () => null })
        .compile()
      expect(errorOf(yield* runOn(bench, flow, layer))).toMatchObject({ reason: "OutcomeUnknown" })
      expect(yield* say(bench, { happened: true }, {}, flow)).toEqual(Exit.void)
      expect(Exit.isSuccess(yield* resumeOn(bench, flow, layer))).toBe(true)
      expect(sends).toBe(2)
    }))

  test("to another payload than the recorded one: only that it did not happen, and the new one is sent under a new key", (bench) =>
    Effect.gen(function* () {
      const provider = new Provider()
      const paying = (cents: number) =>
        make()
          .perform("pay", Charge, { payload: () => ({ ...payment, cents }) })
          .compile()
      yield* crashAt(bench, paying(1), chargeAt(provider), "afterIntent")
      expect(errorOf(yield* resumeOn(bench, paying(2), chargeAt(provider)))).toMatchObject({ reason: "IntentMismatch" })
      expect(
        errorOf(yield* say(bench, { happened: true, result: { id: "ch", at: new Date(1) } }, {}, paying(2))),
      ).toMatchObject({
        reason: "IntentDiffers",
      })
      expect(yield* say(bench, { happened: false }, {}, paying(2))).toEqual(Exit.void)
      expect(Exit.isSuccess(yield* resumeOn(bench, paying(2), chargeAt(provider)))).toBe(true)
      expect(provider.calls.map(({ key, payload }) => [key, (payload as any).cents])).toEqual([["default/r/pay#1", 2]])
    }))

  test("settles a compensation's unknown outcome", (bench) =>
    Effect.gen(function* () {
      const outbox = new Outbox()
      const provider = new Provider()
      const flow = make()
        .perform("book", Charge, {
          payload: () => payment,
          compensate: { operation: Reviewing, payload: () => letter },
        })
        .step("last", { effects: [], output: Schema.Void }, () => Effect.fail(new Error("late")))
        .compile()
      const needs = Layer.merge(
        chargeAt(provider),
        outbox.layerOf(Reviewing, () => Effect.die("lost")),
      )
      expect(errorOf(yield* runOn(bench, flow, needs))).toMatchObject({
        reason: "OutcomeUnknown",
        step: "book/compensate",
      })
      expect(yield* say(bench, happened, {}, flow)).toEqual(Exit.void)
      expect(errorOf(yield* resumeOn(bench, flow, needs))).toMatchObject({ _tag: "RunFailed", step: "last" })
      expect(outbox.sent).toHaveLength(1)
    }))
})

describe("parked runs", () => {
  test("are listed with what is unknown of them, page by page", (bench) =>
    Effect.gen(function* () {
      const outbox = new Outbox()
      const needs = outbox.layerOf(Reviewing, () => Effect.die("lost"))
      for (const runId of ["c", "a", "b"]) yield* runOn(bench, workflow, needs, runId)
      const first = yield* on(bench, Cairn.parked({ limit: 2 }))
      expect(first.map(({ runId }) => runId)).toEqual(["a", "b"])
      const { updatedAt } = (yield* bench.driver.findRun("default", "a"))!
      expect(first[0]).toMatchObject({
        workflow: "paying",
        version: 1,
        reason: "OutcomeUnknown",
        step: "pay",
        since: updatedAt,
        operation: {
          name: "mail.reviewing",
          idempotencyKey: "default/a/pay#0",
          payload: '{"to":"ada"}',
          sends: 1,
        },
      })
      const second = yield* on(bench, Cairn.parked({ after: "b" }))
      expect(second.map(({ runId }) => runId)).toEqual(["c"])
      expect(yield* on(bench, Cairn.parked({ namespace: "other" }))).toEqual([])
      yield* on(bench, Cairn.answer(workflow, { runId: "b" }, { happened: false }))
      expect((yield* on(bench, Cairn.parked())).map(({ runId }) => runId)).toEqual(["a", "c"])
    }))

  test("name no operation where none is unknown", (bench) =>
    Effect.gen(function* () {
      const invalid = make()
        .step(
          "pay",
          { effects: [], output: Schema.Number, onInvalid: { retries: 0, then: "review" } },
          () => "no" as never,
        )
        .compile()
      yield* runOn(bench, invalid, nothing)
      expect(yield* on(bench, Cairn.parked())).toMatchObject([{ reason: "OutputInvalid", operation: null }])
    }))
})

it("a client in promise style lists and answers as well", async () => {
  let sends = 0
  const handlers = Reviewing.toLayer(async () => {
    sends++
    throw new Error("lost")
  })
  const cairn = await Cairn.open({
    store: MemoryStore.layer,
    workflows: [workflow],
    handlers: Layer.merge(handlers, quiet) as never,
  })
  const handle = await cairn.start(workflow, null, { runId: "p" })
  await expect(handle.result()).rejects.toMatchObject({ _tag: "RunParked" })
  expect((await cairn.parked()).map(({ runId }) => runId)).toEqual(["p"])
  await expect(cairn.answer(workflow, { runId: "p" }, { happened: true, result: 1 })).rejects.toMatchObject({
    _tag: "InvalidValue",
  })
  await cairn.answer(workflow, { runId: "p" }, happened)
  expect(await handle.result()).toBe("m_1")
  expect(Option.isSome((await handle.poll()).result)).toBe(true)
  expect(sends).toBe(1)
  await cairn.close()
})
