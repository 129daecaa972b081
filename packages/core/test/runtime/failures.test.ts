/** What a client receives when a run fails: declared failures with their tags and fields, anything else as RunFailed. */
import { describe, expect, it } from "@effect/vitest"
import { Data, Effect, Exit, Layer, Schema } from "effect"
import { Cairn, NotPerformed, RunFailed, Workflow, type AnyWorkflow } from "../../src/index.js"
import { makeBench, nothing, quiet, refuseUnhandled, withWorker } from "./support/bench.js"
import { Charge, Declined } from "./support/operations.js"
import { makeVirtualClock } from "./support/virtualClock.js"

refuseUnhandled()

class OutOfStock extends Schema.TaggedError<OutOfStock>()("OutOfStock", { sku: Schema.String, since: Schema.Date }) {}

const make = (options: object = {}): any =>
  (Workflow.make as any)("failing", { version: 1, input: Schema.Null, ...options })

const exitOf = (workflow: AnyWorkflow, needs: Layer.Layer<any> = nothing) =>
  Effect.gen(function* () {
    const bench = yield* makeBench
    const exit = yield* Effect.gen(function* () {
      const handle = yield* Cairn.start(workflow, null, { runId: "r" })
      return yield* Effect.exit(handle.result)
    }).pipe(withWorker(bench, [workflow], needs), Effect.withClock(makeVirtualClock()), Effect.provide(quiet))
    return { exit: exit as Exit.Exit<unknown, any>, state: (yield* bench.driver.load("default", "r"))!, bench }
  })

const errorOf = (exit: Exit.Exit<unknown, any>): any =>
  Exit.isFailure(exit) && exit.cause._tag === "Fail" ? exit.cause.error : exit

describe("all four forms of a step's function", () => {
  const forms: Record<string, () => unknown> = {
    "an Effect": () => Effect.succeed("made"),
    "a promise": async () => "made",
    "a plain value": () => "made",
    "a generator": function* () {
      return yield* Effect.succeed("made")
    },
  }
  for (const [form, run] of Object.entries(forms)) {
    it.live(`${form} gives the output`, () =>
      Effect.gen(function* () {
        const workflow = make()
          .step("s", { effects: [], output: Schema.String }, run)
          .output(Schema.String, ({ results }: any) => results.s)
          .compile()
        expect((yield* exitOf(workflow)).exit).toEqual(Exit.succeed("made"))
      }),
    )
  }

  const failing: Record<string, () => unknown> = {
    "an Effect": () => Effect.fail(new OutOfStock({ sku: "a1", since: new Date(7) })),
    "a promise": async () => {
      throw new OutOfStock({ sku: "a1", since: new Date(7) })
    },
    "a plain function": () => {
      throw new OutOfStock({ sku: "a1", since: new Date(7) })
    },
    "a generator": function* () {
      return yield* new OutOfStock({ sku: "a1", since: new Date(7) })
    },
  }
  for (const [form, run] of Object.entries(failing)) {
    it.live(`a declared failure of ${form} arrives decoded`, () =>
      Effect.gen(function* () {
        const workflow = make({ failure: OutOfStock }).step("s", { effects: [], output: Schema.String }, run).compile()
        const error = errorOf((yield* exitOf(workflow)).exit)
        expect(error).toBeInstanceOf(OutOfStock)
        expect(error).toMatchObject({ _tag: "OutOfStock", sku: "a1", since: new Date(7) })
      }),
    )
  }
})

describe("failures of operations", () => {
  const declines = Charge.toLayer(() => Effect.fail(new Declined({ code: "stolen" })))
  const paying = (spec: object = {}) =>
    make()
      .perform("pay", Charge, { payload: () => ({ customer: "ada", cents: 1 }), ...spec })
      .output(Schema.parseJson(), ({ results }: any) => results.pay)
      .compile()

  it.live("arrive with their own tag and fields", () =>
    Effect.gen(function* () {
      const error = errorOf((yield* exitOf(paying(), declines)).exit)
      expect(error).toBeInstanceOf(Declined)
      expect(error.code).toBe("stolen")
    }),
  )

  it.live("of a promise handler as well", () =>
    Effect.gen(function* () {
      const rejecting = Charge.toLayer(async () => {
        throw new Declined({ code: "expired" })
      })
      expect(errorOf((yield* exitOf(paying(), rejecting)).exit)).toMatchObject({ _tag: "Declined", code: "expired" })
    }),
  )

  it.live("thrown by a plain handler as well", () =>
    Effect.gen(function* () {
      const throwing = Charge.toLayer(() => {
        throw new Declined({ code: "plain" })
      })
      expect(errorOf((yield* exitOf(paying(), throwing)).exit)).toMatchObject({ _tag: "Declined", code: "plain" })
    }),
  )

  it.live("become a value where the step settles", () =>
    Effect.gen(function* () {
      const { exit } = yield* exitOf(
        make()
          .perform("pay", Charge, { payload: () => ({ customer: "ada", cents: 1 }), settle: true })
          .output(Schema.String, ({ results }: any) => `${results.pay.ok} ${results.pay.error.code}`)
          .compile(),
        declines,
      )
      expect(exit).toEqual(Exit.succeed("false stolen"))
    }),
  )

  it.live("NotPerformed that is not retried is a RunFailed of that step, settle or not", () =>
    Effect.gen(function* () {
      const refuses = Charge.toLayer(() => Effect.fail(new NotPerformed({ problem: "429" })))
      for (const settle of [false, true]) {
        const error = errorOf((yield* exitOf(paying({ settle }), refuses)).exit)
        expect(error).toMatchObject({ _tag: "RunFailed", step: "pay", problem: "Not performed: 429" })
      }
    }),
  )

  it.live("an optional operation that is left out gives null and sends nothing", () =>
    Effect.gen(function* () {
      let calls = 0
      const counts = Charge.toLayer(() => Effect.die(`called ${++calls} times`))
      const { exit, state } = yield* exitOf(paying({ optional: true, payload: () => null }), counts)
      expect(exit).toEqual(Exit.succeed(null))
      expect(calls).toBe(0)
      expect(state.steps.map(({ effect, idempotencyKey }) => [effect, idempotencyKey])).toEqual([
        ["external:payments.charge", null],
      ])
    }),
  )

  it.live("a payload that its schema refuses fails the run before any intent", () =>
    Effect.gen(function* () {
      let calls = 0
      const counts = Charge.toLayer(() => Effect.die(`called ${++calls} times`))
      const { exit, bench } = yield* exitOf(paying({ payload: () => ({ customer: "ada", cents: 1.5 }) }), counts)
      expect(errorOf(exit)).toMatchObject({ _tag: "RunFailed", step: "pay", details: { tag: "InvalidValue" } })
      expect(calls).toBe(0)
      expect(bench.commits.flatMap(({ effects }) => effects)).toEqual([])
    }),
  )
})

class Undeclared extends Data.TaggedError("Undeclared")<{ readonly cause: unknown }> {
  override get message() {
    return "outer"
  }
}

describe("undeclared failures", () => {
  it.live("keep step, message, tag and the chain of causes", () =>
    Effect.gen(function* () {
      const cause = new TypeError("middle", { cause: new RangeError("inner") })
      const workflow = make()
        .step("s", { effects: [], output: Schema.String }, () => Effect.fail(new Undeclared({ cause })))
        .compile()
      const error: RunFailed = errorOf((yield* exitOf(workflow)).exit)
      expect(error).toMatchObject({
        _tag: "RunFailed",
        runId: "r",
        step: "s",
        problem: "outer",
        details: {
          tag: "Undeclared",
          message: "outer",
          cause: { name: "TypeError", message: "middle", cause: { name: "RangeError", message: "inner", cause: null } },
        },
      })
    }),
  )

  it.live("in the output's function fail the run, and the steps stay", () =>
    Effect.gen(function* () {
      const workflow = make()
        .step("s", { effects: [], output: Schema.Null }, () => null)
        .output(Schema.String, () => {
          throw new Error("no output")
        })
        .compile()
      const { exit, state } = yield* exitOf(workflow)
      expect(errorOf(exit)).toMatchObject({ _tag: "RunFailed", step: "(output)", problem: "no output" })
      expect(state.steps).toHaveLength(1)
    }),
  )
})

const hostile = (): object =>
  new Proxy(Object.freeze({}), {
    get: () => {
      throw new Error("do not look")
    },
    has: () => {
      throw new Error("do not look")
    },
    getPrototypeOf: () => {
      throw new Error("do not look")
    },
    ownKeys: () => {
      throw new Error("do not look")
    },
  })

const circular = (): Error => {
  const error = new Error("round")
  error.cause = error
  return error
}

const thrown: Record<string, () => unknown> = {
  undefined: () => undefined,
  null: () => null,
  "a string": () => "x",
  "an empty string": () => "",
  "a number": () => 42,
  "a bigint": () => 10n,
  "a symbol": () => Symbol("s"),
  "a function": () => () => 1,
  "an object without prototype": () => Object.create(null),
  "a frozen proxy that throws": hostile,
  "an error with itself as cause": circular,
  "an error whose message throws": () =>
    Object.defineProperty(new Error(), "message", {
      get: () => {
        throw new Error("no message")
      },
    }),
  "a circular object": () => {
    const object: Record<string, unknown> = {}
    object["self"] = object
    return object
  },
  "a rejected promise": () => {
    const promise = Promise.reject(new Error("inner"))
    promise.catch(() => {})
    return promise
  },
}

describe("any thrown value ends the run with a readable cause", () => {
  const ways: Record<string, (value: unknown) => () => unknown> = {
    "thrown by a function": (value) => () => {
      throw value
    },
    "rejected by a promise": (value) => () => Promise.reject(value),
    "failed by an Effect": (value) => () => Effect.fail(value),
    "died with by an Effect": (value) => () => Effect.die(value),
  }
  for (const [what, value] of Object.entries(thrown)) {
    for (const [how, way] of Object.entries(ways)) {
      it.live(`${what}, ${how}`, () =>
        Effect.gen(function* () {
          const step = { effects: [], output: Schema.String, retry: { times: 1, when: (error: any) => error.again } }
          const workflow = make({ failure: OutOfStock }).step("s", step, way(value())).compile()
          const { exit, state, bench } = yield* exitOf(workflow)
          const error = errorOf(exit)
          expect(error._tag).toBe("RunFailed")
          expect(error.problem.length).toBeGreaterThan(0)
          expect(state.run.status).toBe("failed")
          expect((yield* bench.driver.loadOpen("default", "r", ["s"])).attempts).toHaveLength(1)
        }),
      )
    }
  }

  for (const [what, value] of Object.entries(thrown)) {
    it.live(`${what}, thrown by a handler, leaves the outcome unknown until the run is parked`, () =>
      Effect.gen(function* () {
        let calls = 0
        const handler = Charge.toLayer(async () => {
          calls++
          throw value()
        })
        const workflow = make()
          .perform("pay", Charge, { payload: () => ({ customer: "ada", cents: 1 }) })
          .compile()
        const { exit } = yield* exitOf(workflow, handler)
        expect(errorOf(exit)).toMatchObject({ _tag: "RunParked", reason: "OutcomeUnknown", step: "pay" })
        expect(calls).toBe(10)
      }),
    )
  }
})

const sentinel = "S3NTINEL"

class Unsaid extends Data.TaggedError("Unsaid")<{ readonly config: unknown; readonly retryable: boolean }> {}

class Answer {
  readonly token = sentinel
}

const request = () => ({ headers: { authorization: sentinel } })

// Field case P125.
describe("what an error without a message holds is stored nowhere: its fields are named", () => {
  const cases: Record<string, readonly [() => unknown, string, string]> = {
    "a tagged error": [
      () => new Unsaid({ config: request(), retryable: false }),
      "Unsaid",
      "Unsaid was thrown, without a message; its fields are config, retryable",
    ],
    "a plain object": [
      () => ({ _tag: "Refused", config: request() }),
      "Refused",
      "Refused was thrown, without a message; its fields are config",
    ],
    "an instance of a class": [
      () => new Answer(),
      "Answer",
      "Answer was thrown, without a message; its fields are token",
    ],
    "an object without prototype": [
      () => Object.assign(Object.create(null), { authorization: sentinel }),
      "Object",
      "Object was thrown, without a message; its fields are authorization",
    ],
    "a list": [() => [sentinel], "Array", "Array was thrown, without a message"],
    "a function": [() => () => sentinel, "Function", "Function was thrown, without a message"],
    "an object of many fields": [
      () => Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`f${n}`, sentinel])),
      "Object",
      `Object was thrown, without a message; its fields are ${Array.from({ length: 20 }, (_, n) => `f${n}`).join(", ")}, …`,
    ],
    "a cause": [
      () =>
        new Error("no answer", { cause: { authorization: sentinel, of: new Unsaid({ config: 1, retryable: true }) } }),
      "Error",
      "no answer",
    ],
  }
  for (const [what, [value, name, problem]] of Object.entries(cases)) {
    it.live(what, () =>
      Effect.gen(function* () {
        const step = { effects: [], output: Schema.String, retry: { times: 1 } }
        const { exit, state, bench } = yield* exitOf(
          make()
            .step("s", step, () => Effect.fail(value()))
            .compile(),
        )
        expect(errorOf(exit)).toMatchObject({ _tag: "RunFailed", problem, details: { name, message: problem } })
        const { attempts } = yield* bench.driver.loadOpen("default", "r", ["s"])
        expect(attempts).toHaveLength(2)
        expect(JSON.stringify([state, attempts])).not.toContain(sentinel)
        if (what !== "a cause") return
        const { cause } = errorOf(exit).details
        expect(cause.message).toBe("Object was thrown, without a message; its fields are authorization, of")
      }),
    )
  }

  it.live("a declared failure keeps its fields, by its schema", () =>
    Effect.gen(function* () {
      const workflow = make({ failure: OutOfStock })
        .step("s", { effects: [], output: Schema.String }, () =>
          Effect.fail(new OutOfStock({ sku: "a1", since: new Date(7) })),
        )
        .compile()
      const { exit, state } = yield* exitOf(workflow)
      expect(errorOf(exit)).toMatchObject({ _tag: "OutOfStock", sku: "a1", since: new Date(7) })
      expect(JSON.parse(state.run.failure!)).toMatchObject({ kind: "declared", value: expect.stringContaining("a1") })
    }),
  )
})

describe("starting an id whose run has failed", () => {
  it.live("attaches to the dead run and gives its failure, never a silent success", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      let calls = 0
      const workflow = make()
        .step("s", { effects: [], output: Schema.String }, () => Effect.die(`call ${++calls}`))
        .compile()
      const exits = yield* Effect.gen(function* () {
        const first = yield* Cairn.start(workflow as AnyWorkflow, null, { runId: "r" })
        const one = yield* Effect.exit(first.result)
        const second = yield* Cairn.start(workflow as AnyWorkflow, null, { runId: "r" })
        const third = yield* Cairn.attach(workflow as AnyWorkflow, { runId: "r" })
        expect([first.created, second.created, third.created]).toEqual([true, false, false])
        return [one, yield* Effect.exit(second.result), yield* Effect.exit(third.result)]
      }).pipe(withWorker(bench, [workflow]), Effect.withClock(makeVirtualClock()), Effect.provide(quiet))
      expect(exits.map(errorOf).map(({ _tag, problem }) => [_tag, problem])).toEqual([
        ["RunFailed", "call 1"],
        ["RunFailed", "call 1"],
        ["RunFailed", "call 1"],
      ])
      expect(calls).toBe(1)
    }),
  )
})
