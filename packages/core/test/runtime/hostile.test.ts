/** What a user's function gives or throws may be anything: a draft of immer is a revoked proxy once its recipe has ended. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Layer, Schema } from "effect"
import { Cairn, Effects, OnUnknown, Operation, Workflow, type AnyWorkflow } from "../../src/index.js"
import {
  makeBench,
  makeMortal,
  nothing,
  quiet,
  refuseUnhandled,
  startWorker,
  storeLayer,
  withWorker,
} from "./support/bench.js"
import { Charge } from "./support/operations.js"
import { makeVirtualClock } from "./support/virtualClock.js"

refuseUnhandled()

const Json: Schema.Schema<any> = Schema.suspend(() =>
  Schema.Union(
    Schema.String,
    Schema.Number,
    Schema.Boolean,
    Schema.Null,
    Schema.Array(Json),
    Schema.Record({ key: Schema.String, value: Json }),
  ),
)

const make = (options: object = {}): any => (Workflow.make as any)("hostile", { version: 1, input: Json, ...options })
const revoked = () => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}
const raise = (error: unknown): never => {
  throw error
}

const values: Record<string, () => object> = {
  "a revoked proxy": revoked,
  "a proxy that throws": () =>
    new Proxy({}, { get: () => raise(revoked()), has: () => raise(1), ownKeys: () => raise(1) }),
  "a proxy of which no prototype can be read": () => new Proxy({}, { getPrototypeOf: () => raise(revoked()) }),
  "an object without a prototype": () => Object.create(null) as object,
}

/** Gives it, or throws it, and counts. */
type Act = () => any

const plain = { effects: [], output: Json }
const twice = { ...plain, retry: { times: 1, delay: 10 } }
const none = (flow: any) => flow
const one = (flow: any) => flow.step("one", plain, () => 1)
const asked = { decision: Json, deadline: "1 minute", onReject: "fail", onTimeout: "fail" }
const looping = { state: Json, initial: () => 1, maxIterations: 2 }
const call = { model: "m", usage: () => ({ inputTokens: 1 }) }
const windowed = { window: { schema: Json, initial: () => 1, maxBytes: 1_000 } }

/** Workflows that call it in each place, and how often they do. */
const places: Record<string, (act: Act) => any> = {
  "a step": (act) => make().step("s", twice, act),
  "a step of an effect": (act) =>
    make().step("s", twice, () => Effect.suspend(() => Effect.try({ try: act, catch: (thrown) => thrown }))),
  "a step of a promise": (act) => make().step("s", twice, async () => act()),
  "a generator": (act) =>
    make().step("s", twice, function* () {
      yield* Effect.void
      return act()
    }),
  "a step that emits": (act) => make().step("s", plain, ({ emit }: any) => emit(act())),
  "the cases of a branch": (act) => make().branch("s", act, { a: none }),
  "the value of a match": (act) => make().match("s", "_tag", act, { a: none }),
  "the tag of a match": (act) => make().match("s", "_tag", () => ({ _tag: act() }), { a: none }),
  "the first state of a loop": (act) =>
    make().loop("s", { ...looping, initial: act }, one, () => ({ done: true, state: 1 })),
  "the next turn of a loop": (act) => make().loop("s", looping, one, act),
  "the end of a loop": (act) => make().loop("s", looping, one, () => ({ done: act(), state: 1 })),
  "the next state of a loop": (act) => make().loop("s", looping, one, () => ({ done: true, state: act() })),
  items: (act) => make().forEach("s", { items: act, item: Json, key: () => "k" }, one),
  "an item": (act) => make().forEach("s", { items: () => [act()], item: Json, key: () => "k" }, one),
  "an item without a schema": (act) => make().forEach("s", { items: () => [act()], key: () => "k" }, one),
  "the key of an item": (act) => make().forEach("s", { items: () => [1], item: Json, key: act }, one),
  "the length of a sleep": (act) => make().sleep("s", act),
  "the end of a sleep": (act) => make().sleepUntil("s", act),
  "what a review shows": (act) => make().review("s", { ...asked, show: act }),
  "a repair": (act) =>
    make().step("s", { ...plain, output: Schema.Int, onInvalid: { retries: 0, then: "fail", repair: act } }, () => "x"),
  "a payload": (act) => make().perform("s", Charge, { payload: act }),
  "an output": (act) =>
    make()
      .step("s", plain, () => 1)
      .output(Json, act),
  "a failure": (act) => make({ failure: Schema.Struct({ why: Json }) }).fail("s", act),
  "an early end": (act) => make().end("s", act),
  "a paid call": (act) =>
    make().step("s", { effects: [Effects.read("model")], output: Json }, ({ paid }: any) =>
      paid(call, async () => act()),
    ),
  "the usage of a paid call": (act) =>
    make().step("s", { effects: [Effects.read("model")], output: Json }, ({ paid }: any) =>
      paid({ ...call, usage: act }, async () => 1),
    ),
  "the input of a child": (act) =>
    make().child(
      "s",
      (Workflow.make as any)("child", { version: 1, input: Json })
        .step("c", plain, () => 1)
        .output(Json, () => 1)
        .compile(),
      { input: act },
    ),
  "whether to retry": (act) =>
    make().step("s", { ...plain, retry: { times: 1, when: act } }, () => raise(new Error("no"))),
  "a change of the window": (act) => make(windowed).step("s", plain, ({ changeWindow }: any) => (changeWindow(act), 1)),
}

const run = (
  workflow: AnyWorkflow,
  needs: Layer.Layer<any> = Charge.toLayer(() => Effect.succeed({ id: "c" }) as never),
) =>
  Effect.gen(function* () {
    const bench = yield* makeBench
    const exit = yield* Effect.gen(function* () {
      const handle = yield* Cairn.start(workflow, 1, { runId: "r" })
      return yield* Effect.exit(handle.result)
    }).pipe(withWorker(bench, [workflow], needs), Effect.withClock(makeVirtualClock()), Effect.provide(quiet))
    return { exit: exit as Exit.Exit<unknown, any>, row: (yield* bench.driver.findRun("default", "r"))! }
  })

describe.each(Object.entries(places))("%s", (name, place) => {
  for (const [what, value] of Object.entries(values)) {
    for (const how of ["given", "thrown"]) {
      it.live(`${what} that is ${how} fails the run, if it cannot be used`, () =>
        Effect.gen(function* () {
          let calls = 0
          const act = () => {
            calls += 1
            return how === "given" ? value() : raise(value())
          }
          const unfinished = place(act)
          const workflow = name === "an output" ? unfinished.compile() : unfinished.output(Json, () => 1).compile()
          const { exit, row } = yield* run(workflow)
          const error: any = Exit.isFailure(exit) && exit.cause._tag === "Fail" ? exit.cause.error : null
          expect(calls).toBeGreaterThan(0)
          // Of these a plain object can be made use of; what is thrown, never, but that a call was paid for is known without it.
          const mayPass = (how === "given" && what !== "a revoked proxy") || name === "the usage of a paid call"
          if (Exit.isSuccess(exit) && mayPass) expect(row.status).toBe("completed")
          else {
            expect(error, Exit.isFailure(exit) ? String(exit.cause) : "it went well").toMatchObject({
              isRetryable: false,
            })
            expect(row.status).toBe("failed")
          }
          // What cannot be looked at has failed like what is thrown; what the schema refuses is no matter for a retry.
          const hasFailed = how === "thrown" || what === "a revoked proxy"
          if (hasFailed && ["a step", "a step of a promise"].includes(name)) expect(calls).toBe(2)
        }),
      )
    }
  }
})

describe("a handler", () => {
  const Send: any = (Operation.make as any)("send", {
    payload: Json,
    success: Json,
    onUnknown: OnUnknown.review(),
    timeout: "1 second",
  })
  for (const [what, value] of Object.entries(values)) {
    const handlers: Record<string, () => any> = {
      gives: () => value(),
      "gives in time": () => Effect.sync(value),
      promises: async () => value(),
      throws: () => raise(value()),
      rejects: async () => raise(value()),
    }
    for (const [how, handle] of Object.entries(handlers)) {
      it.live(`that ${how} ${what} is called once; its run waits for a person where that is no answer`, () =>
        Effect.gen(function* () {
          let calls = 0
          const handler = () => {
            calls += 1
            return handle()
          }
          const workflow = make()
            .perform("s", Send, { payload: () => 1 })
            .output(Json, () => 1)
            .compile()
          const { exit, row } = yield* run(workflow, Send.toLayer(handler))
          expect(calls).toBe(1)
          if (Exit.isSuccess(exit)) expect(what).not.toBe("a revoked proxy")
          else {
            expect(row.status).toBe("review")
            expect(["OutcomeUnknown", "OutputInvalid"]).toContain(JSON.parse(row.parked!).reason)
          }
        }),
      )
    }
  }
})

describe("a defect of the run itself", () => {
  it.live("parks it, with the step that it broke and what was committed before", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const calls = { first: 0, second: 0 }
      let broken = true
      const mortal = makeMortal(bench.store, (point, site) =>
        Effect.suspend(() =>
          broken && point === "beforeCommit" && site.step === "second" ? Effect.die(revoked()) : Effect.void,
        ),
      )
      const workflow = make()
        .step("first", plain, () => ++calls.first)
        .step("second", plain, () => ++calls.second)
        .output(Json, ({ results }: any) => [results.first, results.second])
        .compile()
      yield* startWorker(bench.store, { workflows: [workflow] }, nothing, mortal.faults)
      const client = storeLayer(bench.store)
      const handle = yield* Effect.provide(Cairn.start(workflow, 1, { runId: "r" }), client)
      const parked: any = yield* Effect.flip(handle.result)
      expect(parked).toMatchObject({ _tag: "RunParked", reason: "Defect", step: "second" })
      expect(parked.message).toContain("Cairn.resume")
      yield* Effect.sleep("2 minutes")
      expect(calls).toEqual({ first: 1, second: 1 })
      broken = false
      yield* Effect.provide(Cairn.resume({ runId: "r" }), client)
      const again = yield* Effect.provide(Cairn.attach(workflow, { runId: "r" }), client)
      expect(yield* again.result).toEqual([1, 2])
    }).pipe(Effect.scoped, Effect.withClock(makeVirtualClock()), Effect.provide(quiet)),
  )
})
