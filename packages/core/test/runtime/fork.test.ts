/** Forks: what they begin with, what they would do again, and what becomes of it. */
import { describe, expect } from "@effect/vitest"
import { Effect, Exit, Schema, type Layer } from "effect"
import { Cairn, Workflow, type AnyWorkflow, type ForkOptions } from "../../src/index.js"
import { intercepted, startWorker, storeLayer, type Bench } from "./support/bench.js"
import { row, test } from "./support/adding.js"
import { Book } from "./support/trips.js"

const flow = (name = "w"): any => (Workflow.make as any)(name, { version: 1, input: Schema.Null })
const done = (built: any): AnyWorkflow => {
  const workflow = built.compile()
  expect(workflow.diagnostics).toEqual([])
  return workflow
}
const provided = <A, E>(bench: Bench, effect: Effect.Effect<A, E, any>) =>
  Effect.provide(effect, storeLayer(bench.store)) as Effect.Effect<A, E>
const start = (bench: Bench, workflow: AnyWorkflow) => provided(bench, Cairn.start(workflow, null, { runId: "r" }))
const fork = (bench: Bench, workflow: AnyWorkflow, options: Partial<ForkOptions> & { readonly step: string }) =>
  provided(bench, Cairn.fork(workflow, { runId: "r", newRunId: "f", ...options }))
const refusal = <A>(effect: Effect.Effect<A, any, any>) => Effect.flip(effect) as Effect.Effect<any, any, any>

/** Books a room of what a step before it says; counts what was done, and under which keys. */
const world = () => {
  const keys: Array<string> = []
  const counts: Record<string, number> = {}
  let city = "rome"
  let refusals = 0
  const needs = Book.toLayer(({ what }, { idempotencyKey }) => {
    keys.push(idempotencyKey)
    return refusals-- > 0 ? Effect.fail({ full: what }) : Effect.succeed({ id: `${what} ${keys.length}` })
  }) as Layer.Layer<any>
  const count = (name: string, value: unknown) => () => {
    counts[name] = (counts[name] ?? 0) + 1
    return typeof value === "function" ? (value as () => unknown)() : value
  }
  const workflow = done(
    flow()
      .step(
        "where",
        { effects: [], output: Schema.String },
        count("where", () => city),
      )
      .step("what", { effects: [], output: Schema.String }, count("what", "room"))
      .perform("book", Book, {
        payload: ({ results }: any) => ({ what: `${results.what} in ${results.where}` }),
        retry: { times: 3, delay: 1, when: () => true },
      })
      .step("thanks", { effects: [], output: Schema.String }, ({ results }: any) => count("thanks", results.book.id)())
      .output(Schema.String, ({ results }: any) => results.thanks),
  )
  const moveTo = (next: string) => void (city = next)
  return { keys, counts, needs, workflow, moveTo, refuse: (times: number) => void (refusals = times) }
}

describe("a fork", () => {
  test("goes on from what was committed before its step, and leaves the original as it is", (bench) =>
    Effect.gen(function* () {
      const { counts, keys, needs, workflow } = world()
      yield* startWorker(bench.store, { workflows: [workflow] }, needs)
      expect(yield* (yield* start(bench, workflow)).result).toBe("room in rome 1")
      const before = yield* bench.driver.load("default", "r")
      const handle = yield* fork(bench, workflow, { step: "thanks" })
      expect([handle.created, handle.runId]).toEqual([true, "f"])
      expect(yield* handle.result).toBe("room in rome 1")
      expect(counts).toEqual({ where: 1, what: 1, thanks: 2 })
      expect(keys).toHaveLength(1)
      expect(yield* bench.driver.load("default", "r")).toEqual(before)
      // Asked for again it is the same one; another run's id it does not take.
      expect((yield* fork(bench, workflow, { step: "thanks" })).created).toBe(false)
      expect((yield* refusal(fork(bench, workflow, { step: "thanks", newRunId: "r" })))._tag).toBe("RunConflict")
    }))

  test("that would do something again is refused, with what that is, and nothing is created", (bench) =>
    Effect.gen(function* () {
      const { needs, workflow } = world()
      yield* startWorker(bench.store, { workflows: [workflow] }, needs)
      yield* (yield* start(bench, workflow)).result
      for (const step of ["where", "what", "book"]) {
        const refused = yield* refusal(fork(bench, workflow, { step }))
        expect([refused._tag, refused.reason]).toEqual(["ForkRefused", "EffectsWouldRepeat"])
        expect(refused.effects).toEqual([
          { runId: "r", path: "book", operation: "book", idempotencyKey: "default/r/book#0", isKnown: true },
        ])
      }
      expect((yield* refusal(fork(bench, workflow, { step: "nowhere" }))).reason).toBe("UnknownStep")
      const wrong = fork(bench, workflow, { step: "book", effects: "again" as "reuse" })
      expect((yield* refusal(wrong))._tag).toBe("InvalidValue")
      expect((yield* refusal(fork(bench, workflow, { step: "book", runId: "none" })))._tag).toBe("RunNotFound")
      expect(yield* bench.driver.findRun("default", "f")).toBeNull()
    }))

  test("with its own keys does it again", (bench) =>
    Effect.gen(function* () {
      const { keys, moveTo, needs, workflow } = world()
      yield* startWorker(bench.store, { workflows: [workflow] }, needs)
      yield* (yield* start(bench, workflow)).result
      moveTo("oslo")
      const handle = yield* fork(bench, workflow, { step: "where", effects: "newKeys" })
      expect(yield* handle.result).toBe("room in oslo 2")
      expect(keys).toEqual(["default/r/book#0", "default/f/book#0"])
    }))

  test("that reuses results does nothing again, from whatever step, and after whatever refusals", (bench) =>
    Effect.gen(function* () {
      for (const [step, refusals] of [
        ["where", 0],
        ["book", 2],
      ] as const) {
        const { counts, keys, needs, refuse, workflow } = world()
        refuse(refusals)
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* startWorker(bench.store, { workflows: [workflow] }, needs)
            const from = yield* provided(bench, Cairn.start(workflow, null, { runId: step }))
            const first = yield* from.result
            expect(keys.at(-1)).toBe(`default/${step}/book#${refusals}`)
            const handle = yield* fork(bench, workflow, { runId: step, newRunId: `f ${step}`, step, effects: "reuse" })
            expect(yield* handle.result).toBe(first)
            expect([keys.length, counts["thanks"]]).toEqual([refusals + 1, 2])
          }),
        )
      }
    }))

  test("that reuses a result and would now do something else waits for a person", (bench) =>
    Effect.gen(function* () {
      const { keys, moveTo, needs, workflow } = world()
      yield* startWorker(bench.store, { workflows: [workflow] }, needs)
      yield* (yield* start(bench, workflow)).result
      moveTo("oslo")
      const handle = yield* fork(bench, workflow, { step: "where", effects: "reuse" })
      const exit = yield* Effect.exit(handle.result)
      expect(Exit.isFailure(exit) && exit.cause).toMatchObject({
        error: { _tag: "RunParked", reason: "IntentMismatch" },
      })
      expect(keys).toHaveLength(1)
    }))

  test("of a loop goes its own way from a turn on", (bench) =>
    Effect.gen(function* () {
      let factor = 1
      const workflow = done(
        flow()
          .loop(
            "l",
            { state: Schema.Number, initial: () => 1, maxIterations: 10 },
            (flow: any) =>
              flow.step("grow", { effects: [], output: Schema.Number }, ({ state }: any) => state * 10 + factor),
            ({ results, turn }: any) => ({ done: turn === 2, state: results.grow }),
          )
          .output(Schema.Number, ({ results }: any) => results.l),
      )
      yield* startWorker(bench.store, { workflows: [workflow] })
      expect(yield* (yield* start(bench, workflow)).result).toBe(1111)
      factor = 5
      const at = (step: string) =>
        Effect.flatMap(fork(bench, workflow, { step, newRunId: step }), ({ result }) => result)
      expect(yield* at("l[2]/grow")).toBe(1115)
      expect(yield* at("l[1]/grow")).toBe(1155)
      expect(yield* at("l[2]")).toBe(1115)
      expect(yield* at("l")).toBe(1111)
    }))

  test("of a run whose child has done something is told of that", (bench) =>
    Effect.gen(function* () {
      const { keys, needs, workflow: child } = world()
      const parent = done(
        flow("parent")
          .step("before", { effects: [], output: Schema.Number }, () => 1)
          .child("part", child, { input: () => null })
          .step("after", { effects: [], output: Schema.Number }, () => 2),
      )
      yield* startWorker(bench.store, { workflows: [child, parent] }, needs)
      yield* (yield* start(bench, parent)).result
      const { runs } = yield* provided(bench, Cairn.list({ parent: "r" }))
      for (const effects of ["refuse", "reuse"] as const) {
        const refused = yield* refusal(fork(bench, parent, { step: "part", effects }))
        expect(refused.effects).toMatchObject([{ runId: runs[0]!.runId, path: "book", operation: "book" }])
      }
      yield* (yield* fork(bench, parent, { step: "after" })).result
      expect(keys).toHaveLength(1)
      yield* (yield* fork(bench, parent, { step: "part", effects: "newKeys", newRunId: "g" })).result
      expect(keys).toHaveLength(2)
    }))

  test("of a run that is under way begins with what is committed, and both go on", (bench) =>
    Effect.gen(function* () {
      const workflow = done(
        flow()
          .step("one", { effects: [], output: Schema.Number }, () => 1)
          .signal("go", { schema: Schema.Number })
          .output(Schema.Number, ({ results }: any) => results.one + results.go),
      )
      yield* startWorker(bench.store, { workflows: [workflow] })
      const handle = yield* start(bench, workflow)
      yield* Effect.repeat(Effect.zipRight(Effect.sleep(10), row(bench, "r")), {
        until: ({ status }) => status === "waiting",
      })
      const forked = yield* fork(bench, workflow, { step: "go" })
      yield* provided(bench, Cairn.signal(workflow, { runId: "f" }, "go", 10))
      expect(yield* forked.result).toBe(11)
      yield* provided(bench, Cairn.signal(workflow, { runId: "r" }, "go", 20))
      expect(yield* handle.result).toBe(21)
    }))

  test("reads what it goes on with at the steps that have it, and at no other", (bench) =>
    Effect.gen(function* () {
      const keys: Array<string> = []
      const needs = Book.toLayer(({ what }, { idempotencyKey }) => {
        keys.push(idempotencyKey)
        return Effect.succeed({ id: `${what} ${keys.length}` })
      }) as Layer.Layer<any>
      const payload = ({ state }: any) => ({ what: `room ${state}` })
      const built = flow()
        .step("what", { effects: [], output: Schema.String }, () => "room")
        .loop(
          "days",
          { state: Schema.Int, initial: () => 0, maxIterations: 10, onLimit: "stop" },
          (turn: any) =>
            turn
              .step("look", { effects: [], output: Schema.Int }, ({ state }: any) => state)
              .perform("book", Book, { payload })
              .step("note", { effects: [], output: Schema.String }, ({ results }: any) => results.book.id),
          ({ state }: any) => ({ done: false, state: state + 1 }),
        )
      const workflow = done(
        Array.from({ length: 20 }).reduce(
          (flow: any, _, n) => flow.step(`after ${n}`, { effects: [], output: Schema.Int }, () => n),
          built,
        ),
      )
      const calls: Array<string> = []
      const store = intercepted(bench.store, (method) => Effect.sync(() => void calls.push(method)))
      yield* startWorker(store, { workflows: [workflow] }, needs)
      yield* (yield* start(bench, workflow)).result
      expect(keys).toHaveLength(10)
      calls.length = 0
      const forked = yield* fork(bench, workflow, { step: "days[4]/look", effects: "reuse" })
      yield* forked.result
      expect(keys).toHaveLength(10)
      const reads = (method: string) => calls.filter((call) => call === method).length
      // Where it begins, and the six turns whose bookings it goes on with.
      expect([reads("loadPerformed"), reads("loadOpen")]).toEqual([1, 7])
      const rows = yield* bench.driver.loadSteps({
        ...{ namespace: "default", runId: "f", scopes: ["days[9]"] },
        ...{ newestFirst: false, after: null, limit: null, withResults: true },
      })
      expect(rows.map(({ path, result }) => [path, result])).toEqual([
        ["days[9]/look", "9"],
        ["days[9]/book", '{"id":"room 9 10"}'],
        ["days[9]/note", '"room 9 10"'],
      ])
    }))

  test("whose asker dies before or after it is there, is there once when asked for again", (bench) =>
    Effect.gen(function* () {
      const { counts, needs, workflow } = world()
      yield* startWorker(bench.store, { workflows: [workflow] }, needs)
      yield* (yield* start(bench, workflow)).result
      const before = intercepted(bench.store, (method) => (method === "forkRun" ? Effect.die("killed") : Effect.void))
      const after: typeof bench.store = {
        ...bench.store,
        forkRun: (given) => Effect.zipRight(bench.store.forkRun(given), Effect.die("killed")),
      }
      for (const store of [before, after]) {
        const asked = Cairn.fork(workflow, { runId: "r", newRunId: "f", step: "thanks" })
        expect(Exit.isFailure(yield* Effect.exit(Effect.provide(asked, storeLayer(store))))).toBe(true)
      }
      const handle = yield* fork(bench, workflow, { step: "thanks" })
      expect(handle.created).toBe(false)
      expect(yield* handle.result).toBe("room in rome 1")
      expect(counts["thanks"]).toBe(2)
    }))
})
