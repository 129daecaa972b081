/** Workers: what they claim, how they stop, and how they bear a store that is away. */
import { afterEach, describe, expect, it, vi } from "@effect/vitest"
import { Clock, Deferred, Effect, Exit, Layer, Schema, Scope } from "effect"
import { Cairn, CompileError, StoreError, Worker, Workflow, type AnyWorkflow } from "../../src/index.js"
import {
  intercepted,
  makeBench,
  quiet,
  refuseUnhandled,
  startWorker,
  storeLayer,
  withWorker,
  type Bench,
} from "./support/bench.js"
import { Charge, chargeAt, Provider } from "./support/operations.js"
import { makeVirtualClock } from "./support/virtualClock.js"

refuseUnhandled()
afterEach(() => {
  vi.restoreAllMocks()
})

const Input = Schema.Struct({ a: Schema.Int, b: Schema.Int })
const make = (name: string, version = 1): any => (Workflow.make as any)(name, { version, input: Input })
const input = { a: 1, b: 2 }

const adding = (name = "adding", version = 1): AnyWorkflow =>
  make(name, version)
    .step("sum", { effects: [], output: Schema.Int }, ({ input: { a, b } }: any) => a + b)
    .output(Schema.Int, ({ results }: any) => results.sum)
    .compile()

const start = (bench: Bench, workflow: AnyWorkflow, runId: string, given: unknown = input) =>
  Effect.provide(Cairn.start(workflow, given, { runId }), storeLayer(bench.store))

const test = (title: string, body: (bench: Bench) => Effect.Effect<void, any, any>) =>
  it.live(
    title,
    () =>
      Effect.flatMap(makeBench, body).pipe(
        Effect.scoped,
        Effect.provide(quiet),
        Effect.withClock(makeVirtualClock()),
      ) as Effect.Effect<void, any>,
  )

const row = (bench: Bench, runId: string) => Effect.map(bench.driver.findRun("default", runId), (found) => found!)

describe("claims", () => {
  test("leave workflows and versions alone that the worker does not know", (bench) =>
    Effect.gen(function* () {
      yield* start(bench, adding("other"), "other")
      yield* start(bench, adding("adding", 2), "newer")
      const known = yield* start(bench, adding(), "known")
      yield* startWorker(bench.store, { workflows: [adding()] })
      expect(yield* known.result).toBe(3)
      yield* Effect.sleep("1 minute")
      expect(
        [yield* row(bench, "other"), yield* row(bench, "newer")].map(({ status, fence }) => [status, fence]),
      ).toEqual([
        ["pending", 0],
        ["pending", 0],
      ])
    }))

  test("never hold more runs at once than the worker may", (bench) =>
    Effect.gen(function* () {
      let running = 0
      let most = 0
      const workflow = make("slow")
        .step("s", { effects: [], output: Schema.Null }, () =>
          Effect.gen(function* () {
            most = Math.max(most, ++running)
            yield* Effect.sleep("1 second")
            running--
            return null
          }),
        )
        .compile()
      const handles = yield* Effect.forEach(
        Array.from({ length: 10 }, (_, n) => `r${n}`),
        (id) => start(bench, workflow, id),
      )
      yield* startWorker(bench.store, { workflows: [workflow], concurrency: 3 })
      yield* Effect.forEach(handles, ({ result }) => result, { concurrency: "unbounded" })
      expect(most).toBe(3)
    }))

  test("stay within the worker's namespace", (bench) =>
    Effect.gen(function* () {
      const workflow = adding()
      const theirs = Cairn.start(workflow, input, { runId: "r", namespace: "theirs" })
      const handle = yield* Effect.provide(theirs, storeLayer(bench.store))
      yield* startWorker(bench.store, { workflows: [workflow] })
      yield* Effect.sleep("10 seconds")
      expect((yield* handle.poll).status).toBe("pending")
      yield* startWorker(bench.store, { workflows: [workflow], namespace: "theirs" })
      expect(yield* handle.result).toBe(3)
    }))
})

describe("starting the same id", () => {
  test("twenty times at once is one run", (bench) =>
    Effect.gen(function* () {
      const provider = new Provider()
      const workflow = make("paying")
        .perform("pay", Charge, { payload: () => ({ customer: "ada", cents: 1 }) })
        .output(Schema.String, ({ results }: any) => results.pay.id)
        .compile()
      yield* startWorker(bench.store, { workflows: [workflow] }, chargeAt(provider))
      const started = yield* Effect.forEach(
        Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? { a: 1, b: 2 } : { b: 2, a: 1 })),
        (given) =>
          Effect.gen(function* () {
            const handle = yield* start(bench, workflow, "r", given)
            return [handle.created, yield* handle.result]
          }),
        { concurrency: "unbounded" },
      )
      expect(started.filter(([created]) => created)).toHaveLength(1)
      expect(new Set(started.map(([, result]) => result))).toEqual(new Set(["ch_1"]))
      expect(provider.calls).toHaveLength(1)
    }))

  test("with another workflow or input is a typed conflict that leaves the run alone", (bench) =>
    Effect.gen(function* () {
      yield* start(bench, adding(), "r")
      const before = yield* row(bench, "r")
      expect(yield* Effect.flip(start(bench, adding(), "r", { a: 1, b: 3 }))).toMatchObject({
        _tag: "RunConflict",
        reason: "InputDiffers",
      })
      expect(yield* Effect.flip(start(bench, adding("other"), "r"))).toMatchObject({
        _tag: "RunConflict",
        reason: "WorkflowDiffers",
      })
      const attach = Effect.provide(Cairn.attach(adding("other"), { runId: "r" }), storeLayer(bench.store))
      expect(yield* Effect.flip(attach)).toMatchObject({ _tag: "RunConflict" })
      const nobody = Effect.provide(Cairn.attach(adding(), { runId: "nobody" }), storeLayer(bench.store))
      expect(yield* Effect.flip(nobody)).toMatchObject({ _tag: "RunNotFound" })
      expect(yield* row(bench, "r")).toEqual(before)
    }))

  test("with an unusable id or input is refused before anything is stored", (bench) =>
    Effect.gen(function* () {
      for (const runId of ["", "a\u0000b", "\ud800", "x".repeat(256)]) {
        expect(yield* Effect.flip(start(bench, adding(), runId))).toMatchObject({ _tag: "InvalidId" })
      }
      const refused = start(bench, adding(), "r", { a: 1, b: "2" })
      expect(yield* Effect.flip(refused)).toMatchObject({ _tag: "InvalidValue", field: ".b" })
      expect(yield* bench.driver.findRun("default", "r")).toBeNull()
    }))

  test("for ids that objects treat specially are runs like any other", (bench) =>
    Effect.gen(function* () {
      const workflow = adding()
      yield* startWorker(bench.store, { workflows: [workflow] })
      for (const runId of ["__proto__", "constructor", "prototype", "a/b", "a#1", " "]) {
        expect(yield* (yield* start(bench, workflow, runId)).result).toBe(3)
      }
      expect(({} as any).status).toBeUndefined()
    }))
})

describe("a worker that stops", () => {
  const long = (log: Array<string>, duration: string): AnyWorkflow =>
    make("long")
      .step("first", { effects: [], output: Schema.Null }, () =>
        Effect.sync(() => log.push("begun")).pipe(
          Effect.zipRight(Effect.sleep(duration as never)),
          Effect.zipRight(Effect.sync(() => log.push("ended"))),
          Effect.onInterrupt(() => Effect.sync(() => log.push("interrupted"))),
          Effect.as(null),
        ),
      )
      .step("second", { effects: [], output: Schema.Null }, () => {
        log.push("second")
        return null
      })
      .compile()

  const stopping = (bench: Bench, workflow: AnyWorkflow, log: ReadonlyArray<string>, options: object = {}) =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      yield* Scope.extend(startWorker(bench.store, { workflows: [workflow], concurrency: 1, ...options }), scope)
      yield* start(bench, workflow, "r")
      yield* Effect.repeat(Effect.sleep(10), { until: () => log.length > 0 })
      yield* start(bench, workflow, "waiting")
      const asked = yield* Clock.currentTimeMillis
      yield* Scope.close(scope, Exit.void)
      return (yield* Clock.currentTimeMillis) - asked
    })

  test("lets the step under way end, begins no other, and claims nothing", (bench) =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const tookMs = yield* stopping(bench, long(log, "5 seconds"), log)
      expect(log).toEqual(["begun", "ended"])
      expect(tookMs).toBeLessThan(6_000)
      expect((yield* row(bench, "waiting")).fence).toBe(0)
      const run = yield* row(bench, "r")
      expect([run.status, run.leaseOwner, run.recoveries]).toEqual(["pending", null, 0])
    }))

  test("interrupts a step that takes longer than it may wait, and gives its run back", (bench) =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const tookMs = yield* stopping(bench, long(log, "1 hour"), log, { drain: "2 seconds" })
      expect(log).toEqual(["begun", "interrupted"])
      expect(tookMs).toBeLessThan(4_000)
      expect((yield* row(bench, "r")).status).toBe("pending")
      expect((yield* bench.driver.load("default", "r"))!.steps).toEqual([])
    }))

  test("leaves its runs to another, which takes them at once and not as recoveries", (bench) =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const workflow = long(log, "5 seconds")
      yield* stopping(bench, workflow, log)
      const asked = yield* Clock.currentTimeMillis
      yield* startWorker(bench.store, { workflows: [workflow] })
      const handle = yield* Effect.provide(Cairn.attach(workflow, { runId: "r" }), storeLayer(bench.store))
      yield* handle.result
      // Far less than a lease.
      expect((yield* Clock.currentTimeMillis) - asked).toBeLessThan(3_000)
      expect(log.filter((entry) => entry === "second")).toHaveLength(1)
      expect((yield* row(bench, "r")).recoveries).toBe(0)
    }))

  test("records what it knows of an operation that is interrupted after its answer", (bench) =>
    Effect.gen(function* () {
      const provider = new Provider()
      const answered = yield* Deferred.make<void>()
      const paying = (then: Effect.Effect<void>): AnyWorkflow =>
        make("paying")
          .step("pay", { effects: [Charge], output: Schema.Null }, () =>
            Effect.as(Effect.zipRight(Charge.perform({ customer: "ada", cents: 1 }), then), null),
          )
          .compile()
      const stalls = paying(Effect.zipRight(Deferred.succeed(answered, undefined), Effect.never))
      const scope = yield* Scope.make()
      const stopped = startWorker(bench.store, { workflows: [stalls], drain: 0 }, chargeAt(provider))
      yield* Scope.extend(stopped, scope)
      const handle = yield* start(bench, stalls, "r")
      yield* Deferred.await(answered)
      yield* Scope.close(scope, Exit.void)
      const effect = yield* bench.driver.findEffect({ namespace: "default", runId: "r", path: "pay", generation: 0 })
      expect(effect?.state).toBe("succeeded")
      yield* startWorker(bench.store, { workflows: [paying(Effect.void)] }, chargeAt(provider))
      yield* handle.result
      expect(provider.calls).toHaveLength(1)
    }))

  test("does not wait for a run that sleeps", (bench) =>
    Effect.gen(function* () {
      const workflow = make("sleeping")
        .step("s", { effects: [], output: Schema.Null, retry: { times: 1, delay: "50 seconds" } }, () =>
          Effect.fail("no"),
        )
        .compile()
      const scope = yield* Scope.make()
      yield* Scope.extend(startWorker(bench.store, { workflows: [workflow] }), scope)
      yield* start(bench, workflow, "r")
      yield* Effect.repeat(Effect.zipRight(Effect.sleep(10), row(bench, "r")), {
        until: ({ status }) => status === "sleeping",
      })
      const asked = yield* Clock.currentTimeMillis
      yield* Scope.close(scope, Exit.void)
      expect((yield* Clock.currentTimeMillis) - asked).toBeLessThan(2_000)
      expect((yield* row(bench, "r")).status).toBe("sleeping")
    }))

  test("does not wait for a store that has stopped answering", (bench) =>
    Effect.gen(function* () {
      let away = false
      const store = intercepted(bench.store, () => (away ? Effect.never : Effect.void))
      const scope = yield* Scope.make()
      yield* Scope.extend(startWorker(store, { workflows: [adding()] }), scope)
      yield* Effect.sleep("2 seconds")
      away = true
      yield* Effect.sleep("1 minute")
      const asked = yield* Clock.currentTimeMillis
      yield* Scope.close(scope, Exit.void)
      expect((yield* Clock.currentTimeMillis) - asked).toBeLessThan(15_000)
    }))
})

describe("a store that fails", () => {
  const failing = (bench: Bench, fails: (method: string) => StoreError["reason"] | null) =>
    intercepted(bench.store, (method) =>
      Effect.suspend(() => {
        const reason = fails(method)
        return reason === null
          ? Effect.void
          : Effect.fail(new StoreError({ reason, operation: method, problem: "test" }))
      }),
    )

  for (const reason of ["Busy", "Unavailable"] as const) {
    for (const method of ["load", "commit", "findRun", "claim", "beat"]) {
      test(`${reason} at ${method} for a while is waited out`, (bench) =>
        Effect.gen(function* () {
          let left = 0
          const store = failing(bench, (called) => (called === method && left-- > 0 ? reason : null))
          const workflow = make("three")
            .step("a", { effects: [], output: Schema.Null }, () => null)
            .step("b", { effects: [], output: Schema.Int }, ({ input: { a, b } }: any) => a + b)
            .output(Schema.Int, ({ results }: any) => results.b)
            .compile()
          yield* startWorker(store, { workflows: [workflow] })
          left = 4
          const handle = yield* Effect.provide(Cairn.start(workflow, input, { runId: "r" }), storeLayer(store))
          expect(yield* handle.result).toBe(3)
          // By the claim that began it: it was never given back.
          const { fence, recoveries } = yield* row(bench, "r")
          expect([fence, recoveries]).toEqual([1, 0])
        }))
    }
  }

  for (const reason of ["Full", "Corrupt", "Permission", "Unknown"] as const) {
    for (const method of ["load", "commit"]) {
      test(`${reason} at ${method} ends the run's fiber alone, and the run goes on once the store is well`, (bench) =>
        Effect.gen(function* () {
          let broken: string | null = "sick"
          const store = failing(bench, (called) => (called === method && broken === "sick" ? reason : null))
          yield* startWorker(store, { workflows: [adding()] })
          const handle = yield* start(bench, adding(), "sick")
          yield* Effect.sleep("15 seconds")
          expect((yield* bench.driver.load("default", "sick"))!.steps).toEqual([])
          expect((yield* row(bench, "sick")).status).not.toBe("failed")
          broken = null
          const healthy = yield* start(bench, adding(), "healthy")
          expect(yield* healthy.result).toBe(3)
          expect(yield* handle.result).toBe(3)
        }))
    }
  }

  test("that never answers one heartbeat does not stop the heart: the next ones are answered", (bench) =>
    Effect.gen(function* () {
      const clock = yield* Clock.clockWith(Effect.succeed)
      const startedAt = clock.unsafeCurrentTimeMillis()
      vi.spyOn(performance, "now").mockImplementation(() => clock.unsafeCurrentTimeMillis() - startedAt)
      let beats = 0
      const store = intercepted(bench.store, (method) =>
        method === "beat" && ++beats === 2 ? Effect.never : Effect.void,
      )
      yield* startWorker(store, { workflows: [adding()] })
      yield* Effect.sleep("3 minutes")
      expect(yield* (yield* start(bench, adding(), "r")).result).toBe(3)
      expect(beats).toBeGreaterThan(5)
    }))

  test("away at the first heartbeat is a typed error of the layer", (bench) =>
    Effect.gen(function* () {
      const store = failing(bench, (method) => (method === "beat" ? "Permission" : null))
      expect(yield* Effect.flip(startWorker(store, { workflows: [adding()] }))).toMatchObject({
        _tag: "StoreError",
        reason: "Permission",
      })
    }))

  test("away for longer than the lease: nothing is sent meanwhile, and the run goes on afterwards", (bench) =>
    Effect.gen(function* () {
      const clock = yield* Clock.clockWith(Effect.succeed)
      const startedAt = clock.unsafeCurrentTimeMillis()
      vi.spyOn(performance, "now").mockImplementation(() => clock.unsafeCurrentTimeMillis() - startedAt)
      let away = false
      const provider = new Provider()
      let left = false
      const store = failing(bench, () => (away ? "Unavailable" : null))
      const workflow = make("paying")
        .step("wait", { effects: [], output: Schema.Null }, () => {
          // Once: after the outage this step may run again.
          if (!left) away = left = true
          return null
        })
        .perform("pay", Charge, { payload: () => ({ customer: "ada", cents: 1 }) })
        .compile()
      yield* startWorker(store, { workflows: [workflow] }, chargeAt(provider))
      const handle = yield* start(bench, workflow, "r")
      yield* Effect.sleep("5 minutes")
      expect(provider.calls).toHaveLength(0)
      away = false
      yield* handle.result
      expect(provider.keys()).toHaveLength(1)
    }))
})

describe("options", () => {
  const refused: Record<string, object> = {
    "a lease of 0": { lease: 0 },
    "a negative lease": { lease: -1 },
    "a lease of NaN": { lease: NaN },
    "an infinite lease": { lease: Infinity },
    "a lease of 1e20": { lease: 1e20 },
    "a lease of no duration": { lease: "" },
    "a poll of 0": { pollInterval: 0 },
    "a negative drain": { drain: -1 },
    "a drain of NaN": { drain: NaN },
    "an infinite drain": { drain: "Infinity" },
    "no concurrency": { concurrency: 0 },
    "half a run": { concurrency: 1.5 },
    "a concurrency of NaN": { concurrency: NaN },
    "a value length of 0": { maxValueLength: 0 },
  }
  for (const [what, options] of Object.entries(refused)) {
    test(`${what} is refused when the worker starts (CRN110)`, (bench) =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(startWorker(bench.store, { workflows: [adding()], ...options }))
        expect(error).toBeInstanceOf(CompileError)
        expect((error as CompileError).diagnostics.map(({ code }) => code)).toEqual(["CRN110"])
      }))
  }

  test("an unusable namespace is refused", (bench) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(startWorker(bench.store, { workflows: [adding()], namespace: "" }))
      expect(error).toMatchObject({ _tag: "InvalidId", kind: "namespace" })
    }))

  test("a handler that nobody provides is a typed error when the worker starts", (bench) =>
    Effect.gen(function* () {
      const workflow = make("paying")
        .perform("pay", Charge, { payload: () => ({ customer: "a", cents: 1 }) })
        .compile()
      const error = yield* Effect.flip(startWorker(bench.store, { workflows: [workflow] }))
      expect(error).toMatchObject({ _tag: "CompileError", diagnostics: [{ code: "CRN107", step: "pay" }] })
    }))

  test("a workflow that does not compile is a typed error when the worker starts, and at every start", (bench) =>
    Effect.gen(function* () {
      const broken = make("broken")
        .step("s", { effects: [Charge, Charge], output: Schema.Null }, () => null)
        .compile()
      expect(yield* Effect.flip(startWorker(bench.store, { workflows: [broken] }))).toMatchObject({
        _tag: "CompileError",
      })
      expect(yield* Effect.flip(start(bench, broken, "r"))).toMatchObject({ _tag: "CompileError" })
    }))

  test("the worker says which runs it executes", (bench) =>
    Effect.gen(function* () {
      const workflow = make("slow")
        .step("s", { effects: [], output: Schema.Null }, () => Effect.as(Effect.sleep("5 seconds"), null))
        .compile()
      const worker = yield* startWorker(bench.store, { workflows: [workflow] })
      const handle = yield* start(bench, workflow, "r")
      yield* Effect.sleep("2 seconds")
      expect(yield* worker.running).toEqual(["r"])
      yield* handle.result
      yield* Effect.yieldNow()
      yield* Effect.sleep(1)
      expect(yield* worker.running).toEqual([])
    }))
})

describe("the layer", () => {
  it.live("runs while it lives, and nothing of it is left afterwards", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const live = Worker.layer({ workflows: [adding()] }).pipe(Layer.provideMerge(storeLayer(bench.store)))
      const result = yield* Effect.provide(
        Effect.flatMap(Cairn.start(adding(), input, { runId: "r" }), (handle) => handle.result),
        live as Layer.Layer<any>,
      )
      expect(result).toBe(3)
      const after = yield* start(bench, adding(), "later")
      yield* Effect.sleep(50)
      expect((yield* after.poll).status).toBe("pending")
    }),
  )

  test("two workers share one store, and each run is executed once", (bench) =>
    Effect.gen(function* () {
      const counts = new Map<number, number>()
      const workflow = make("counting")
        .step("s", { effects: [], output: Schema.Int }, ({ input: { a } }: any) => {
          counts.set(a, (counts.get(a) ?? 0) + 1)
          return Effect.as(Effect.sleep(5), a)
        })
        .compile()
      yield* startWorker(bench.store, { workflows: [workflow] })
      yield* startWorker(bench.store, { workflows: [workflow] })
      const runs = Array.from({ length: 60 }, (_, a) => start(bench, workflow, `r${a}`, { a, b: 0 }))
      const handles = yield* Effect.all(runs, { concurrency: "unbounded" })
      yield* Effect.forEach(handles, ({ result }) => result, { concurrency: "unbounded" })
      expect([...counts.values()]).toEqual(Array.from({ length: 60 }, () => 1))
    }))

  it.live("does not need a worker of its own to look at a run", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const snapshot = yield* Effect.gen(function* () {
        const handle = yield* Cairn.start(adding(), input, { runId: "r" })
        yield* handle.result
        return yield* handle.poll
      }).pipe(withWorker(bench, [adding()]))
      expect(snapshot).toMatchObject({
        status: "completed",
        result: { _tag: "Some", value: { _tag: "Success", value: 3 } },
      })
    }),
  )
})
