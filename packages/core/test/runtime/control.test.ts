/** Control flow, from the first claim to the end: what each combinator hands on, and what is recorded of it. */
import { describe, expect } from "@effect/vitest"
import { Clock, Effect, Exit, Schema } from "effect"
import { Cairn, Workflow, type AnyWorkflow } from "../../src/index.js"
import { startWorker, storeLayer, type Bench } from "./support/bench.js"
import { row, test } from "./support/adding.js"

const Json: Schema.Schema<any> = Schema.suspend(() =>
  Schema.Union(
    ...[Schema.String, Schema.Number, Schema.Boolean, Schema.Null],
    Schema.Array(Json),
    Schema.Record({ key: Schema.String, value: Json }),
  ),
)

const flow = (name = "w"): any => (Workflow.make as any)(name, { version: 1, input: Json, failure: Schema.String })
const done = (built: any, select: (context: any) => unknown): AnyWorkflow => {
  const workflow = built.output(Json, select).compile()
  expect(workflow.diagnostics).toEqual([])
  return workflow
}
const value = (of: unknown): any => [{ effects: [], output: Json }, () => of]

/** For waits of days: nobody looks at the store each second. */
const rarely = { pollInterval: "1 hour", maxPollInterval: "1 hour" }

const begin = (bench: Bench, workflow: AnyWorkflow, input: unknown = null, options: object = {}) =>
  Effect.gen(function* () {
    yield* startWorker(bench.store, { workflows: [workflow], ...options })
    return yield* Effect.provide(Cairn.start(workflow, input, { runId: "r" }), storeLayer(bench.store))
  })
const run = (bench: Bench, workflow: AnyWorkflow, input: unknown = null, options: object = {}) =>
  Effect.flatMap(begin(bench, workflow, input, options), (handle) => Effect.exit(handle.result))
const success = (exit: Exit.Exit<unknown, unknown>): unknown =>
  Exit.isSuccess(exit) ? exit.value : expect.fail(String(exit))
const paths = (bench: Bench, ...scopes: ReadonlyArray<string>) =>
  Effect.map(
    bench.driver.loadSteps({
      namespace: "default",
      runId: "r",
      scopes,
      newestFirst: false,
      after: null,
      limit: null,
      withResults: true,
    }),
    (steps) => steps.map(({ path }) => path),
  )
const provided = <A, E>(bench: Bench, effect: Effect.Effect<A, E, any>) =>
  Effect.provide(effect, storeLayer(bench.store)) as Effect.Effect<A, E>
const until = (bench: Bench, status: string) =>
  Effect.repeat(Effect.zipRight(Effect.sleep(10), row(bench, "r")), { until: (found) => found.status === status })

describe("a branch", () => {
  test("runs one case, and hands on which with its results", (bench) =>
    Effect.gen(function* () {
      const workflow = done(
        flow()
          .step("cents", ...value(5))
          .branch("route", ({ results }: any) => (results.cents > 3 ? "large" : "small"), {
            large: (flow: any) =>
              flow
                .step("approve", ...value("yes"))
                .step(
                  "note",
                  { effects: [], output: Json },
                  ({ results }: any) => `${results.approve}${results.cents}`,
                ),
            small: (flow: any) => flow,
          })
          .step("after", { effects: [], output: Json }, ({ results }: any) => results.route.results.note),
        ({ results }) => ({ ...results, route: { case: results.route.case, note: results.route.results.note } }),
      )
      expect(success(yield* run(bench, workflow))).toEqual({
        cents: 5,
        route: { case: "large", note: "yes5" },
        after: "yes5",
      })
      expect(yield* paths(bench, "")).toEqual(["cents", "route", "route:large/approve", "route:large/note", "after"])
    }))

  test("matches a tagged union", (bench) =>
    Effect.gen(function* () {
      const workflow = done(
        flow()
          .step("choice", ...value({ tool: "search", query: "q" }))
          .match("act", "tool", ({ results }: any) => results.choice, {
            search: (flow: any) => flow.step("run", { effects: [], output: Json }, ({ value }: any) => value.query),
            stop: (flow: any) => flow,
          }),
        ({ results }) => [results.act.case, results.act.results.run],
      )
      expect(success(yield* run(bench, workflow))).toEqual(["search", "q"])
    }))
})

describe("a loop", () => {
  test("carries its state, and forgets its turns", (bench) =>
    Effect.gen(function* () {
      const workflow = done(
        flow().loop(
          "agent",
          {
            state: Schema.Struct({ n: Schema.Number }),
            initial: ({ input }: any) => ({ n: input }),
            maxIterations: 100,
          },
          (flow: any) =>
            flow.step("think", { effects: [], output: Json }, ({ state, turn }: any) => state.n * 10 + turn),
          ({ results, state, turn }: any) => ({ done: turn === 2, state: { n: state.n + results.think } }),
        ),
        ({ results }) => results.agent,
      )
      // 1 -> 1+10=11 -> 11+111=122 -> 122+1222=1344
      expect(success(yield* run(bench, workflow, 1))).toEqual({ n: 1344 })
      expect(yield* paths(bench, "", "agent[", "agent[0]", "agent[1]", "agent[2]")).toEqual([
        "agent[0]",
        "agent[0]/think",
        "agent[1]",
        "agent[1]/think",
        "agent[2]",
        "agent[2]/think",
        "agent",
      ])
    }))

  const looping = (onLimit: string) =>
    done(
      flow().loop(
        "l",
        { state: Schema.Number, initial: () => 0, maxIterations: 3, onLimit },
        (flow: any) => flow,
        ({ state }: any) => ({ done: false, state: state + 1 }),
      ),
      ({ results }) => results.l,
    )

  test("that is never done stops at its limit", (bench) =>
    Effect.gen(function* () {
      expect(success(yield* run(bench, looping("stop")))).toBe(3)
    }))

  test("that is never done fails where it says so", (bench) =>
    Effect.gen(function* () {
      const failed = yield* Effect.flip(Effect.flatten(run(bench, looping("fail"))))
      expect(failed).toMatchObject({ _tag: "RunFailed", step: "l", details: { tag: "LoopLimitReached" } })
    }))
})

describe("forEach", () => {
  const each = (rest: object, body: (flow: any) => any) =>
    flow().forEach(
      "each",
      { items: ({ input }: any) => input, key: (item: any) => item.id, concurrency: 3, ...rest },
      body,
    )

  test("runs each item, so many at a time, and hands on a reader", (bench) =>
    Effect.gen(function* () {
      let active = 0
      let most = 0
      const items = Array.from({ length: 250 }, (_, n) => ({ id: `k/${n}`, n }))
      const workflow = done(
        each({}, (flow) =>
          flow.step("twice", { effects: [], output: Json }, ({ item }: any) =>
            Effect.sync(() => (most = Math.max(most, ++active))).pipe(
              Effect.zipRight(Effect.yieldNow()),
              Effect.map(() => (active--, item.n * 2)),
            ),
          ),
        ).step("sum", { effects: [], output: Json }, async ({ results }: any) => {
          let sum = 0
          const keys = new Set<string>()
          for await (const item of results.each) {
            sum += item.results.twice
            keys.add(item.key)
          }
          return { sum, keys: keys.size, first: keys.has("k/0") }
        }),
        ({ results }) => ({ ...results.sum, total: results.each.total, failed: results.each.failed }),
      )
      expect(success(yield* run(bench, workflow, items))).toEqual({
        sum: 62_250,
        keys: 250,
        first: true,
        total: 250,
        failed: 0,
      })
      expect(most).toBe(3)
    }))

  test("hands on what stands inside branches and arms of an item", (bench) =>
    Effect.gen(function* () {
      const inner = (flow: any) => flow.step("s", { effects: [], output: Json }, ({ key }: any) => `in ${key}`)
      const workflow = done(
        each({}, (flow) => flow.branch("b", () => "x", { x: inner, y: inner }).parallel("p", { l: inner })).step(
          "all",
          { effects: [], output: Json },
          async ({ results }: any) => {
            const all: Array<unknown> = []
            for await (const item of results.each) all.push([item.results.b.results.s, item.results.p.l.s])
            return all.sort()
          },
        ),
        ({ results }) => results.all,
      )
      expect(success(yield* run(bench, workflow, [{ id: "1" }, { id: "2" }]))).toEqual([
        ["in 1", "in 1"],
        ["in 2", "in 2"],
      ])
    }))

  test("collects failures, item by item", (bench) =>
    Effect.gen(function* () {
      const workflow = done(
        each({ onFailure: "collect" }, (flow) =>
          flow
            .step("first", ...value(1))
            .step("odd", { effects: [], output: Json }, ({ item }: any) =>
              item.n % 2 === 0 ? Effect.fail(new Error(`even ${item.n}`)) : item.n,
            ),
        ).step("all", { effects: [], output: Json }, async ({ results }: any) => {
          const all: Array<unknown> = []
          for await (const item of results.each)
            all.push([item.key, item.ok, item.ok ? item.results.odd : item.error.problem])
          return all.sort()
        }),
        ({ results }) => [results.each.succeeded, results.each.failed, results.all],
      )
      const items = [0, 1, 2, 3].map((n) => ({ id: String(n), n }))
      expect(success(yield* run(bench, workflow, items))).toEqual([
        2,
        2,
        [
          ["0", false, "even 0"],
          ["1", true, 1],
          ["2", false, "even 2"],
          ["3", true, 3],
        ],
      ])
    }))

  test("stops the run at the first failure", (bench) =>
    Effect.gen(function* () {
      const workflow = done(
        each({ concurrency: 1 }, (flow) =>
          flow.step("s", { effects: [], output: Json }, ({ key }: any) =>
            key === "1" ? Effect.fail(new Error("no")) : key,
          ),
        ),
        () => null,
      )
      const exit = yield* run(
        bench,
        workflow,
        [0, 1, 2].map((n) => ({ id: String(n) })),
      )
      expect(Exit.isFailure(exit) && exit.cause).toMatchObject({ error: { _tag: "RunFailed", step: "each[1]/s" } })
      expect(yield* paths(bench, "each[2]")).toEqual([])
    }))

  test("over nothing is done at once; keys are unique", (bench) =>
    Effect.gen(function* () {
      const workflow = done(
        each({}, (flow) => flow),
        ({ results }) => results.each.total,
      )
      expect(success(yield* run(bench, workflow, []))).toBe(0)
      const handle = yield* provided(bench, Cairn.start(workflow, [{ id: "a" }, { id: "a" }], { runId: "twice" }))
      expect(yield* Effect.flip(handle.result)).toMatchObject({
        _tag: "RunFailed",
        problem: expect.stringContaining("'a'"),
      })
    }))
})

describe("parallel", () => {
  test("runs its arms side by side", (bench) =>
    Effect.gen(function* () {
      const slow = (ms: number, of: unknown): any => [
        { effects: [], output: Json },
        () => Effect.delay(Effect.succeed(of), ms),
      ]
      const workflow = done(
        flow().parallel("both", {
          a: (flow: any) => flow.step("x", ...slow(300, 1)).step("y", ...slow(300, 2)),
          b: (flow: any) => flow.step("x", ...slow(500, 3)),
        }),
        ({ results }) => [results.both.a.x, results.both.a.y, results.both.b.x],
      )
      const from = yield* Clock.currentTimeMillis
      expect(success(yield* run(bench, workflow))).toEqual([1, 2, 3])
      expect((yield* Clock.currentTimeMillis) - from).toBeLessThan(700)
    }))

  test("keeps what the others have when one arm fails, and says why", (bench) =>
    Effect.gen(function* () {
      const workflow = done(
        flow().parallel("both", {
          a: (flow: any) => flow.step("x", ...value(1)).signal("never", { schema: Schema.Null }),
          b: (flow: any) =>
            flow.step("y", { effects: [], output: Json }, () => Effect.delay(Effect.fail(new Error("why")), 10)),
        }),
        () => null,
      )
      const exit = yield* run(bench, workflow)
      expect(Exit.isFailure(exit) && exit.cause).toMatchObject({ error: { _tag: "RunFailed", problem: "why" } })
      expect(yield* paths(bench, "")).toEqual(["both:a/x"])
    }))
})

describe("sleep", () => {
  test("takes as long as it says, and holds nothing meanwhile", (bench) =>
    Effect.gen(function* () {
      const workflow = done(
        flow()
          .sleep("pause", "30 days")
          .sleep("short", 300)
          .step("s", ...value(1)),
        ({ results }) => results.s,
      )
      const from = yield* Clock.currentTimeMillis
      const handle = yield* begin(bench, workflow, null, rarely)
      yield* until(bench, "sleeping")
      expect(yield* row(bench, "r")).toMatchObject({ leaseOwner: null, wakeAt: expect.any(Number) })
      yield* Effect.sleep("30 days")
      expect(success(yield* Effect.exit(handle.result))).toBe(1)
      const took = (yield* Clock.currentTimeMillis) - from
      expect(took).toBeGreaterThanOrEqual(30 * 86_400_000 + 300)
      expect(took).toBeLessThan(30 * 86_400_000 + 70_000)
    }))

  test("until a time, or not at all", (bench) =>
    Effect.gen(function* () {
      const from = yield* Clock.currentTimeMillis
      const workflow = done(
        flow()
          .sleepUntil("past", new Date(0))
          .sleep("zero", 0)
          .sleepUntil("at", ({ input }: any) => new Date(input)),
        () => "ok",
      )
      expect(success(yield* run(bench, workflow, from + 3_600_000))).toBe("ok")
      expect((yield* Clock.currentTimeMillis) - from).toBeGreaterThanOrEqual(3_600_000)
    }))

  test("of no duration fails", (bench) =>
    Effect.gen(function* () {
      const workflow = done(
        flow().sleep("bad", () => Number.NaN),
        () => null,
      )
      const exit = yield* run(bench, workflow)
      expect(Exit.isFailure(exit) && exit.cause).toMatchObject({
        error: { _tag: "RunFailed", step: "bad", problem: expect.stringContaining("NaN") },
      })
    }))
})

describe("a signal", () => {
  const waiting = done(
    flow()
      .signal("go", { schema: Schema.Struct({ n: Schema.Number }) })
      .step("s", { effects: [], output: Json }, ({ results }: any) => results.go.n),
    ({ results }) => results.s,
  )

  test("wakes the run that waits for it", (bench) =>
    Effect.gen(function* () {
      const handle = yield* begin(bench, waiting)
      yield* until(bench, "waiting")
      expect(yield* provided(bench, Cairn.signal(waiting, { runId: "r" }, "go", { n: 7 }))).toBe(true)
      expect(success(yield* Effect.exit(handle.result))).toBe(7)
    }))

  test("that comes early is kept, and each is taken once", (bench) =>
    Effect.gen(function* () {
      const twice = done(
        flow()
          .sleep("first", "1 hour")
          .signal("a", { schema: Schema.Number, signal: "n" })
          .signal("b", { schema: Schema.Number, signal: "n" }),
        ({ results }) => [results.a, results.b],
      )
      const handle = yield* begin(bench, twice)
      const send = (n: number, signalId: string) =>
        provided(bench, Cairn.signal(twice, { runId: "r", signalId }, "n", n))
      expect([yield* send(1, "x"), yield* send(1, "x"), yield* send(2, "y")]).toEqual([true, false, true])
      expect(yield* Effect.flip(send(3, "x"))).toMatchObject({ _tag: "SignalRefused", reason: "IdTaken" })
      expect(success(yield* Effect.exit(handle.result))).toEqual([1, 2])
      expect(yield* Effect.flip(send(4, "z"))).toMatchObject({ _tag: "SignalRefused", reason: "Ended" })
    }))

  test("that does not come in time is a timeout", (bench) =>
    Effect.gen(function* () {
      const settling = done(
        flow().signal("go", { schema: Schema.Null, timeout: "2 days", onTimeout: "continue" }),
        ({ results }) => results.go,
      )
      const handle = yield* begin(bench, settling, null, rarely)
      yield* Effect.sleep("2 days")
      expect(success(yield* Effect.exit(handle.result))).toEqual({ ok: false, error: "timeout" })
    }))
})

describe("a review", () => {
  const reviewed = (rest: object = {}) =>
    done(
      flow()
        .step("draft", ...value({ text: "t" }))
        .review("approve", {
          decision: Schema.Struct({ note: Schema.String }),
          show: ({ results }: any) => results.draft,
          deadline: "2 days",
          onReject: "continue",
          onTimeout: "reject",
          ...rest,
        }),
      ({ results }) => ({ ...results.approve, at: results.approve.at instanceof Date }),
    )
  const decide = (bench: Bench, workflow: AnyWorkflow, said: any) =>
    provided(bench, Cairn.review(workflow, { runId: "r" }, said))

  test("waits for a person, and hands on what they said", (bench) =>
    Effect.gen(function* () {
      const workflow = reviewed()
      const handle = yield* begin(bench, workflow)
      yield* until(bench, "review")
      expect(yield* Effect.flip(decide(bench, workflow, { by: "ann", approve: { type: "yes" } }))).toMatchObject({
        _tag: "InvalidValue",
      })
      yield* decide(bench, workflow, { by: "ann", approve: { note: "fine" } })
      expect(success(yield* Effect.exit(handle.result))).toEqual({
        outcome: "approved",
        decision: { note: "fine" },
        by: "ann",
        at: true,
      })
      expect(yield* Effect.flip(decide(bench, workflow, { by: "bob", reject: null }))).toMatchObject({
        _tag: "DecisionRefused",
        reason: "NotWaiting",
      })
    }))

  test("that is rejected, or not decided in time, is neither approved nor the other", (bench) =>
    Effect.gen(function* () {
      const workflow = reviewed()
      const handle = yield* begin(bench, workflow, null, rarely)
      yield* until(bench, "review")
      yield* decide(bench, workflow, { by: "ann", reject: "no" })
      expect(yield* Effect.flip(decide(bench, workflow, { by: "bob", reject: null }))).toMatchObject({
        reason: "AlreadyDecided",
      })
      expect(success(yield* Effect.exit(handle.result))).toEqual({
        outcome: "rejected",
        reason: "no",
        by: "ann",
        at: true,
      })
      const late = yield* provided(bench, Cairn.start(workflow, null, { runId: "late" }))
      yield* Effect.sleep("2 days")
      expect(success(yield* Effect.exit(late.result))).toEqual({ outcome: "expired", at: true })
      const strict = reviewed({ onReject: "fail", onTimeout: "fail" })
      expect(strict.version).toBe(1)
    }))
})

describe("a child", () => {
  const child = done(
    flow("child").step("s", { effects: [], output: Json }, ({ input }: any) =>
      input === "bad" ? Effect.fail(new Error("child's")) : `c${input}`,
    ),
    ({ results }) => results.s,
  )
  const parent = (settle: boolean) =>
    done(flow("parent").child("sub", child, { input: ({ input }: any) => input, settle }), ({ results }) => results.sub)

  test("hands its output to its parent, which holds nothing meanwhile", (bench) =>
    Effect.gen(function* () {
      expect(success(yield* run(bench, parent(false), "x"))).toBe("cx")
      expect((yield* row(bench, "r/sub")).parentRunId).toBe("r")
    }))

  test("that fails fails its parent, or is settled", (bench) =>
    Effect.gen(function* () {
      const exit = yield* run(bench, parent(false), "bad")
      expect(Exit.isFailure(exit) && exit.cause).toMatchObject({
        error: { _tag: "RunFailed", step: "sub", problem: expect.stringContaining("child's") },
      })
    }))

  test("that fails is a value where it is settled", (bench) =>
    Effect.gen(function* () {
      expect(success(yield* run(bench, parent(true), "bad"))).toMatchObject({ ok: false, error: { _tag: "RunFailed" } })
    }))
})

describe("an early end", () => {
  test("is the workflow's output", (bench) =>
    Effect.gen(function* () {
      const workflow = done(
        flow()
          .branch("b", ({ input }: any) => input, {
            end: (flow: any) => flow.end("early", () => "early"),
            fail: (flow: any) => flow.fail("no", () => "said no"),
            on: (flow: any) => flow,
          })
          .step("s", ...value("late")),
        ({ results }) => results.s,
      )
      expect(success(yield* run(bench, workflow, "end"))).toBe("early")
      const on = yield* provided(bench, Cairn.start(workflow, "on", { runId: "on" }))
      expect(success(yield* Effect.exit(on.result))).toBe("late")
      const failing = yield* provided(bench, Cairn.start(workflow, "fail", { runId: "fail" }))
      expect(yield* Effect.flip(failing.result)).toBe("said no")
    }))
})
