/** Paid calls: counted once, with every attempt, and never beyond a budget by more than what is under way. */
import { describe, expect } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Layer, Schema } from "effect"
import {
  Cairn,
  Effects,
  Operation,
  OnUnknown,
  Output,
  StoreError,
  Usage,
  Workflow,
  type AnyWorkflow,
  type CostOptions,
} from "../../src/index.js"
import { intercepted, refuseUnhandled, startWorker, storeLayer, type Bench } from "./support/bench.js"
import { followClock, row, test } from "./support/adding.js"

refuseUnhandled()

const prices = { big: { input: 2, output: 10, cachedInput: 0.5, cacheWrite: 2.5 }, small: { input: 0.25, output: 1 } }

/** A provider that bills what it is asked for, and keeps its own books. */
const provider = () => {
  const bills: Array<number> = []
  const ask = <A>(cost: number, answer: A | Error, atMost?: number) =>
    Usage.call(
      {
        model: "big",
        usage: () => ({ microDollars: cost }),
        failed: () => ({ microDollars: cost }),
        ...(atMost === undefined ? {} : { atMost: { microDollars: atMost } }),
      },
      Effect.suspend(() => {
        bills.push(cost)
        return answer instanceof Error ? Effect.fail(answer) : Effect.succeed(answer)
      }),
    )
  return { ask, bills, total: () => bills.reduce((sum, cost) => sum + cost, 0) }
}

const model = [Effects.read("model")]
const make = (name = "w", options: object = {}): any =>
  (Workflow.make as any)(name, { version: 1, input: Schema.Null, ...options })

const work = (bench: Bench, workflows: ReadonlyArray<AnyWorkflow>, options: object = {}, needs?: Layer.Layer<any>) =>
  startWorker(bench.store, { workflows, prices, ...options }, needs)

const begin = (bench: Bench, workflow: AnyWorkflow, runId = "r") =>
  Effect.provide(Cairn.start(workflow, null, { runId }), storeLayer(bench.store))

const run = (bench: Bench, workflow: AnyWorkflow, options: object = {}, needs?: Layer.Layer<any>) =>
  Effect.gen(function* () {
    yield* work(bench, [workflow], options, needs)
    const handle = yield* begin(bench, workflow)
    return yield* Effect.exit(handle.result)
  })

const sums = (bench: Bench, of: CostOptions) => Effect.provide(Cairn.cost(of), storeLayer(bench.store))
const calls = (bench: Bench, runId = "r") =>
  Effect.map(Effect.provide(Cairn.calls({ runId, limit: 100 }), storeLayer(bench.store)), (page) => page.calls)
const spent = (bench: Bench, runId = "r") => Effect.provide(Cairn.spend({ runId }), storeLayer(bench.store))

describe("what a paid call has used", () => {
  test("is priced by its model, cached tokens for less, and summed exactly", (bench) =>
    Effect.gen(function* () {
      const workflow = make()
        .step("a", { effects: model, output: Schema.Int }, function* () {
          const usage = { inputTokens: 1_000, outputTokens: 100, cachedInputTokens: 400, cacheWriteTokens: 200 }
          return yield* Usage.call({ model: "big", usage: () => usage }, Effect.succeed(1))
        })
        .step("b", { effects: model, output: Schema.Int }, ({ paid }: any) =>
          paid(
            { model: "small-2026-11-30", usage: (n: number) => ({ inputTokens: n, outputTokens: 1 }) },
            async () => 3,
          ),
        )
        .step("c", { effects: model, output: Schema.Void }, () =>
          Effect.forEach(Array.from({ length: 10 }), () =>
            Usage.report({ model: "flat", microDollars: Usage.dollars(0.1) }),
          ),
        )
        .compile()
      expect(yield* run(bench, workflow)).toEqual(Exit.succeed(undefined))
      const seen = (yield* calls(bench)).map(({ cost, microDollars, outcome, step }) => [
        step,
        cost,
        microDollars,
        outcome,
      ])
      expect(seen.slice(0, 2)).toEqual([
        // 400 * 2 + 400 * 0.5 + 200 * 2.5 + 100 * 10
        ["a", "known", 2_500, "kept"],
        // 1.75 micro-dollars: what is paid for is not rounded away.
        ["b", "known", 2, "kept"],
      ])
      expect(yield* sums(bench, { by: "model" })).toMatchObject([
        { key: "flat", calls: 10, microDollars: 1_000_000, unknown: 0 },
        { key: "big", microDollars: 2_500, inputTokens: 1_000, outputTokens: 100, cachedInputTokens: 400 },
        { key: "small-2026-11-30", microDollars: 2, inputTokens: 3 },
      ])
      expect(yield* spent(bench)).toEqual({ spent: 1_002_502, reserved: 0, calls: 12, unknown: 0 })
    }))

  // Field case P120.
  for (const [told, usage] of [
    ["nothing", undefined],
    ["null", null],
    ["negative tokens", { inputTokens: -1, outputTokens: 5 }],
    ["NaN", { microDollars: Number.NaN }],
    ["infinity", { microDollars: Number.POSITIVE_INFINITY }],
    ["more than can be counted", { microDollars: 1e21 }],
    ["more than any call costs", { microDollars: 1e12 + 1 }],
    ["the largest number that is exact", { microDollars: Number.MAX_SAFE_INTEGER }],
    ["more tokens than there are", { inputTokens: 1e12 + 1, outputTokens: 1 }],
    ["tokens that cost more than any call does", { inputTokens: 1e12, outputTokens: 1 }],
    ["a fraction", { microDollars: 0.5 }],
    ["a text", { microDollars: "12" }],
    ["half of it", { inputTokens: 7 }],
    ["a model without a price", { inputTokens: 7, outputTokens: 1 }, "unheard-of"],
    ["a name of every object", { inputTokens: 7, outputTokens: 1 }, "constructor"],
  ] as ReadonlyArray<readonly [string, any, string?]>) {
    test(`is unknown, and not 0, where the provider says ${told}`, (bench) =>
      Effect.gen(function* () {
        const name = told.startsWith("a model") ? "unheard-of" : told.startsWith("a name") ? "constructor" : "big"
        const workflow = make()
          .step("a", { effects: model, output: Schema.Int }, () =>
            Usage.call({ model: name, usage: () => usage }, Effect.succeed(1)),
          )
          .output(Schema.Int, ({ results }: any) => results.a)
          .compile()
        expect(yield* run(bench, workflow)).toEqual(Exit.succeed(1))
        expect(yield* sums(bench, { by: "step" })).toMatchObject([{ key: "a", calls: 1, unknown: 1, microDollars: 0 }])
        expect(yield* spent(bench)).toEqual({ spent: 0, reserved: 0, calls: 1, unknown: 1 })
      }))
  }

  // Field case P081.
  test("is unknown beyond a million dollars, and no other run is stopped by it", (bench) =>
    Effect.gen(function* () {
      const { ask } = provider()
      const amounts = [Number.MAX_SAFE_INTEGER, 1e12, 1e12, 7]
      const workflow = make()
        .step("a", { effects: model, output: Schema.Int }, () =>
          Effect.as(
            Effect.forEach(amounts, (n) => ask(n, 1)),
            1,
          ),
        )
        .output(Schema.Int, ({ results }: any) => results.a)
        .compile()
      expect(yield* run(bench, workflow)).toEqual(Exit.succeed(1))
      expect(yield* (yield* begin(bench, workflow, "other")).result).toBe(1)
      expect(yield* sums(bench, { by: "model" })).toMatchObject([{ calls: 8, unknown: 2, microDollars: 4e12 + 14 }])
      expect(yield* spent(bench)).toEqual({ spent: 2e12 + 7, reserved: 0, calls: 4, unknown: 1 })
    }))

  test("of an account that cannot be read parks the run before the call, until it is mended", (bench) =>
    Effect.gen(function* () {
      const { ask, bills } = provider()
      let broken = true
      let begun = 0
      const store = intercepted(bench.store, (method) =>
        Effect.suspend(() => {
          if (method !== "beginCall") return Effect.void
          begun += 1
          const problem = "column 'spent' holds no integer up to 2^53 - 1"
          return broken
            ? Effect.fail(new StoreError({ reason: "Corrupt", operation: "begin a call", problem }))
            : Effect.void
        }),
      )
      const workflow = make()
        .step("a", { effects: model, output: Schema.Int }, () => ask(5, 1))
        .output(Schema.Int, ({ results }: any) => results.a)
        .compile()
      yield* startWorker(store, { workflows: [workflow], prices })
      const handle = yield* begin(bench, workflow)
      const parked: any = yield* Effect.flip(handle.result)
      expect(parked).toMatchObject({ _tag: "RunParked", reason: "CommitRefused", step: "a" })
      expect(parked.message).toContain("column 'spent'")
      yield* Effect.sleep("2 minutes")
      expect([begun, bills]).toEqual([1, []])
      broken = false
      yield* Effect.provide(Cairn.resume({ runId: "r" }), storeLayer(bench.store))
      const again = yield* Effect.provide(Cairn.attach(workflow, { runId: "r" }), storeLayer(bench.store))
      expect(yield* again.result).toBe(1)
      expect(bills).toEqual([5])
    }))

  test("is unknown where the callback that tells it throws: the answer counts", (bench) =>
    Effect.gen(function* () {
      const usage = () => {
        throw new Error("no usage in the answer")
      }
      const workflow = make()
        .step("a", { effects: model, output: Schema.Int }, () => Usage.call({ model: "big", usage }, Effect.succeed(1)))
        .output(Schema.Int, ({ results }: any) => results.a)
        .compile()
      expect(yield* run(bench, workflow)).toEqual(Exit.succeed(1))
      expect(yield* sums(bench, { by: "step" })).toMatchObject([{ unknown: 1 }])
    }))

  // Field case P117.
  test("is kept of failed attempts, timeouts and interruptions", (bench) =>
    Effect.gen(function* () {
      const { ask } = provider()
      let attempt = 0
      const workflow = make()
        .step(
          "a",
          { effects: model, output: Schema.Int, timeout: "1 second", retry: { times: 3, delay: 10 } },
          function* () {
            attempt += 1
            if (attempt === 1) yield* ask(5, null)
            if (attempt === 2) return yield* ask(7, new Error("overloaded"))
            if (attempt === 3) return yield* Usage.call({ model: "big", usage: () => null }, Effect.never)
            if (attempt === 4) return yield* ask(8, 1)
            return yield* Effect.fail(new Error("again"))
          },
        )
        .compile()
      expect(Exit.isSuccess(yield* run(bench, workflow))).toBe(true)
      const seen = (yield* calls(bench)).map((call) => [call.attempt, call.cost, call.microDollars, call.outcome])
      expect(seen).toEqual([
        [1, "known", 5, "failed"],
        [2, "known", 7, "failed"],
        [3, "unknown", null, "failed"],
        [4, "known", 8, "kept"],
      ])
      expect(yield* spent(bench)).toEqual({ spent: 20, reserved: 0, calls: 4, unknown: 1 })
    }))

  test("of outputs that were refused is billed, and each attempt sees what was wrong", (bench) =>
    Effect.gen(function* () {
      const { ask, total } = provider()
      const prompts: Array<string | undefined> = []
      const answers = ['{"cents":"x"}', "no json", '{"cents":3}']
      const workflow = make()
        .step(
          "a",
          { effects: model, output: Schema.Struct({ cents: Schema.Int }), onInvalid: { retries: 2, then: "fail" } },
          function* ({ rejected }: any) {
            prompts.push(rejected?.issues)
            return Output.json((yield* ask(11, answers[prompts.length - 1]!)) as string)
          },
        )
        .compile()
      expect(Exit.isSuccess(yield* run(bench, workflow))).toBe(true)
      expect(total()).toBe(33)
      expect(prompts).toEqual([undefined, expect.stringContaining(".cents"), expect.stringContaining("no JSON")])
      expect((yield* calls(bench)).map(({ outcome }) => outcome)).toEqual(["rejected", "rejected", "kept"])
      const byOutcome = yield* sums(bench, { by: "outcome" })
      expect(byOutcome.map(({ key, microDollars }) => [key, microDollars])).toEqual([
        ["rejected", 22],
        ["kept", 11],
      ])
      expect(bench.commits.flatMap(({ steps }) => steps)).toHaveLength(1)
    }))

  test("of the handler of an operation is counted, and no budget cuts the operation off", (bench) =>
    Effect.gen(function* () {
      const Text = Operation.make("sms.send", {
        payload: Schema.String,
        success: Schema.Null,
        onUnknown: OnUnknown.review(),
        timeout: "5 seconds",
      } as any) as any
      const workflow = make("w", { budget: { run: 5 } })
        .perform("send", Text, { payload: () => "hello" })
        .compile()
      const handler = Text.toLayer(() => Effect.as(Usage.report({ model: "sms", microDollars: 70 }), null))
      expect(Exit.isSuccess(yield* run(bench, workflow, {}, handler))).toBe(true)
      expect(yield* sums(bench, { by: "step" })).toMatchObject([{ key: "send", microDollars: 70 }])
    }))

  test("is recorded nowhere outside of a step", () =>
    Effect.gen(function* () {
      const { ask, bills } = provider()
      expect(yield* ask(5, "answer")).toBe("answer")
      yield* Usage.report({ model: "big", microDollars: 1 })
      expect(bills).toEqual([5])
    }))

  test("of children counts for their parents, and once", (bench) =>
    Effect.gen(function* () {
      const { ask } = provider()
      const child = make("child")
        .step("a", { effects: model, output: Schema.Int }, () => ask(30, 1))
        .output(Schema.Int, ({ results }: any) => results.a)
        .compile()
      const parent = make("parent")
        .step("b", { effects: model, output: Schema.Int }, () => ask(4, 1))
        .child("c", child, { input: () => null })
        .compile()
      expect(Exit.isSuccess(yield* run(bench, parent))).toBe(true)
      expect((yield* spent(bench)).spent).toBe(34)
      expect((yield* sums(bench, { by: "workflow" })).map(({ key, microDollars }) => [key, microDollars])).toEqual([
        ["child", 30],
        ["parent", 4],
      ])
    }))
})

describe("a budget", () => {
  const looping = (ask: ReturnType<typeof provider>["ask"], options: object, atMost?: number) =>
    make("w", options)
      .loop(
        "agent",
        { state: Schema.Int, initial: () => 0, maxIterations: 50, onLimit: "fail" },
        (flow: any) => flow.step("think", { effects: model, output: Schema.Int }, () => ask(30, 1, atMost)),
        ({ turn }: any) => ({ done: turn >= 5, state: turn }),
      )
      .compile()

  test("of a run parks it before the call that it has no room for, and lets it go on once it is raised", (bench) =>
    Effect.gen(function* () {
      const { ask, bills } = provider()
      const tight = looping(ask, { budget: { run: 100 } }, 30)
      const exit = yield* Effect.scoped(run(bench, tight))
      expect(exit).toMatchObject({ cause: { error: { _tag: "RunParked", reason: "BudgetExceeded" } } })
      expect(bills).toHaveLength(3)
      const { parked } = (yield* row(bench, "r")) as any
      expect(JSON.parse(parked)).toMatchObject({
        step: "agent[3]/think",
        problem:
          "the run's budget of $0.0001 has $0.00009 spent; the next paid call may cost up to $0.00003: raise it and resume the run",
      })
      yield* work(bench, [looping(ask, { budget: { run: 1_000 } }, 30)])
      const resumed = yield* Effect.provide(Cairn.resume({ runId: "r" }), storeLayer(bench.store))
      expect(resumed).toBe(true)
      const handle = yield* Effect.provide(Cairn.attach(tight, { runId: "r" }), storeLayer(bench.store))
      expect(Exit.isSuccess(yield* Effect.exit(handle.result))).toBe(true)
      expect(yield* spent(bench)).toEqual({ spent: bills.length * 30, reserved: 0, calls: bills.length, unknown: 0 })
    }))

  test("hides nothing of what was paid before it was told: the next call finds no room", (bench) =>
    Effect.gen(function* () {
      const { ask, bills } = provider()
      const workflow = make("w", { budget: { run: 50 } })
        .step("a", { effects: model, output: Schema.Void }, () =>
          Effect.forEach([40, 30, 20], (microDollars) => Usage.report({ model: "big", microDollars })),
        )
        .step("b", { effects: model, output: Schema.Int }, () => ask(1, 1))
        .compile()
      const exit = yield* run(bench, workflow)
      expect(exit).toMatchObject({ cause: { error: { _tag: "RunParked", reason: "BudgetExceeded", step: "b" } } })
      expect(bills).toEqual([])
      expect(yield* spent(bench)).toEqual({ spent: 90, reserved: 0, calls: 3, unknown: 0 })
    }))

  test("of a day lets the run go on by itself when the day is over", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      const { ask, bills } = provider()
      const workflow = looping(ask, { budget: { day: 70 } }, 30)
      yield* work(bench, [workflow], { pollInterval: "10 minutes", maxPollInterval: "1 hour" })
      const from = yield* bench.driver.now
      const handle = yield* begin(bench, workflow)
      const first = yield* Effect.exit(handle.result)
      expect(first).toMatchObject({ cause: { error: { _tag: "RunParked", reason: "BudgetExceeded" } } })
      expect(bills).toHaveLength(2)
      const { wakeAt } = yield* row(bench, "r")
      expect(wakeAt! % 86_400_000).toBeLessThan(5)
      expect(wakeAt! - from).toBeLessThanOrEqual(86_400_005)
      yield* Effect.sleep(wakeAt! - (yield* bench.driver.now) + 4_000_000)
      expect(bills).toHaveLength(4)
      expect(yield* sums(bench, { by: "day" })).toMatchObject([{ microDollars: 60 }, { microDollars: 60 }])
    }))

  test("of a namespace is that of its workers", (bench) =>
    Effect.gen(function* () {
      const { ask, bills } = provider()
      const workflow = looping(ask, {}, 30)
      expect(yield* run(bench, workflow, { budget: { day: 65 } })).toMatchObject({
        cause: { error: { problem: expect.stringContaining("today's budget of namespace 'default' of $0.000065") } },
      })
      expect(bills).toHaveLength(2)
    }))

  test("of a parent holds for its children", (bench) =>
    Effect.gen(function* () {
      const { ask, bills } = provider()
      const child = looping(ask, {}, 30)
      const parent = make("parent", { budget: { run: 65 } })
        .child("c", child, { input: () => null })
        .compile()
      yield* work(bench, [parent])
      yield* begin(bench, parent)
      const store = storeLayer(bench.store)
      for (let looks = 0; looks < 100; looks++) {
        yield* Effect.sleep(100)
        const parked = yield* Effect.provide(Cairn.parked(), store)
        if (parked.length === 0) continue
        expect(parked).toMatchObject([
          { problem: expect.stringContaining("the budget of run 'r', which this one is a child of") },
        ])
        return expect(bills).toHaveLength(2)
      }
      return expect.fail("the child was not parked")
    }))

  // Field case P119.
  const abreast = (width: number, budget: number, said: number | undefined, cost: number) => (bench: Bench) =>
    Effect.gen(function* () {
      const bills: Array<number> = []
      const gate = yield* Deferred.make<void>()
      let under = 0
      let most = 0
      const call = Usage.call(
        {
          model: "big",
          usage: () => ({ microDollars: cost }),
          ...(said === undefined ? {} : { atMost: { microDollars: said } }),
        },
        Effect.gen(function* () {
          bills.push(cost)
          under += 1
          most = Math.max(most, under)
          yield* Effect.sleep(20)
          under -= 1
          return 1
        }),
      )
      yield* Deferred.succeed(gate, undefined)
      const arms = Object.fromEntries(
        Array.from({ length: width }, (_, n) => [
          `arm${n}`,
          (flow: any) => flow.step(`think${n}`, { effects: model, output: Schema.Int }, () => call),
        ]),
      )
      const workflow = make("w", { budget: { run: budget } })
        .parallel("all", arms)
        .compile()
      const exit = yield* run(bench, workflow)
      const { spent: total } = yield* spent(bench)
      return { exit, bills, most, total }
    })

  test("is not overdrawn by steps beside each other that say what they cost at most", (bench) =>
    Effect.gen(function* () {
      const { bills, exit, total } = yield* abreast(8, 10, 3, 3)(bench)
      expect(exit).toMatchObject({ cause: { error: { _tag: "RunParked", reason: "BudgetExceeded" } } })
      expect([bills.length, total]).toEqual([3, 9])
    }))

  test("lets calls wait for those under way, which may cost less than they said", (bench) =>
    Effect.gen(function* () {
      const { bills, exit, most, total } = yield* abreast(8, 10, 3, 1)(bench)
      expect(exit).toEqual(Exit.succeed(undefined))
      expect([bills.length, total]).toEqual([8, 8])
      expect(most).toBeLessThanOrEqual(3)
    }))

  test("is overdrawn by no more than what was under way where calls do not say what they cost", (bench) =>
    Effect.gen(function* () {
      const { bills, most } = yield* abreast(8, 10, undefined, 3)(bench)
      const before = bills.length - most
      expect(before * 3).toBeLessThan(10)
    }))

  test("counts what was reserved for calls of which nobody knows what they have cost", (bench) =>
    Effect.gen(function* () {
      let n = 0
      const workflow = make("w", { budget: { run: 100 } })
        .step("a", { effects: model, output: Schema.Int }, () =>
          Usage.call(
            { model: "big", atMost: { microDollars: 90 }, usage: () => null },
            Effect.sync(() => ++n),
          ),
        )
        .step("b", { effects: model, output: Schema.Int }, () =>
          Usage.call(
            { model: "big", atMost: { microDollars: 20 }, usage: () => null },
            Effect.sync(() => ++n),
          ),
        )
        .compile()
      expect(yield* run(bench, workflow)).toMatchObject({
        cause: {
          error: {
            problem: expect.stringContaining("$0.00 spent and $0.00009 reserved for calls whose cost is not known"),
          },
        },
      })
      expect(n).toBe(1)
    }))

  test("that is no amount, and a price that is none, is refused when the worker starts", (bench) =>
    Effect.gen(function* () {
      const { ask } = provider()
      for (const budget of [{ run: 0 }, { run: 0.5 }, { run: -1 }, { day: Number.NaN }, { week: 3 }, 5, null]) {
        const { diagnostics } = looping(ask, { budget })
        expect(
          diagnostics.map(({ code }: any) => code),
          JSON.stringify(budget),
        ).toEqual(["CRN110"])
      }
      for (const options of [
        { budget: { day: 0 } },
        { budget: { run: 5 } },
        { prices: { big: { input: -1, output: 1 } } },
        { prices: { big: { input: 1 } } },
        { prices: { big: { input: 1, output: Number.NaN } } },
      ]) {
        const exit = yield* Effect.exit(work(bench, [looping(ask, {})], options))
        expect(exit).toMatchObject({ cause: { error: { _tag: "CompileError" } } })
      }
    }))
})

describe("services", () => {
  class Model extends Context.Tag("test/Model")<Model, { readonly ask: (of: string) => Effect.Effect<string> }>() {}

  test("that were made before any step record in the step that uses them", (bench) =>
    Effect.gen(function* () {
      const { ask } = provider()
      const live = Layer.effect(
        Model,
        Effect.map(Effect.context<never>(), (context) => ({
          ask: (of: string) => Effect.orDie(Effect.provide(ask(9, of), context)),
        })),
      )
      const workflow = make()
        .step("a", { effects: [Effects.read(Model)], output: Schema.String }, function* () {
          return yield* (yield* Model).ask("why")
        })
        .compile()
      expect(Exit.isSuccess(yield* run(bench, workflow, {}, live))).toBe(true)
      expect(yield* sums(bench, { by: "step" })).toMatchObject([{ key: "a", microDollars: 9 }])
    }))
})
