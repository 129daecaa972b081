/** One attempt: its timeout, its signal, its gate, and what is kept of outputs that the gate refuses. */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, FiberRef, Layer, Schema } from "effect"
import { Cairn, Output, Workflow, type AnyWorkflow } from "../../src/index.js"
import { makeBench, nothing, quiet, refuseUnhandled, withWorker, type Bench } from "./support/bench.js"
import { Charge, chargeAt, Provider } from "./support/operations.js"
import { makeVirtualClock } from "./support/virtualClock.js"

refuseUnhandled()

const make = (): any => (Workflow.make as any)("attempts", { version: 1, input: Schema.Null })
const waitMs = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

const runOn = (bench: Bench, workflow: AnyWorkflow, needs: Layer.Layer<any> = nothing) =>
  Effect.gen(function* () {
    const handle = yield* Cairn.start(workflow, null, { runId: "r" })
    return yield* Effect.exit(handle.result)
  }).pipe(withWorker(bench, [workflow], needs), Effect.provide(quiet)) as Effect.Effect<Exit.Exit<any, any>>

const virtual = Effect.withClock(makeVirtualClock())

describe("a timeout", () => {
  it.live("interrupts the fiber of a step, and its failure says so", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const interrupted = yield* Deferred.make<void>()
      const workflow = make()
        .step("s", { effects: [], output: Schema.Null, timeout: "3 seconds" }, () =>
          Effect.onInterrupt(Effect.never, () => Deferred.succeed(interrupted, undefined)),
        )
        .compile()
      const exit = yield* runOn(bench, workflow)
      expect(Exit.isFailure(exit) && exit.cause).toMatchObject({
        error: { _tag: "RunFailed", step: "s", details: { tag: "StepTimeout" } },
      })
      expect(yield* Deferred.isDone(interrupted)).toBe(true)
    }).pipe(virtual),
  )

  it.live("aborts the signal of a promise, and a late value is in no row", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const aborts: Array<string> = []
      const workflow = make()
        .step(
          "s",
          { effects: [], output: Schema.String, timeout: 20, retry: { times: 1, delay: 0 } },
          ({ signal }: any) => {
            signal.addEventListener("abort", () => aborts.push("abort"))
            return aborts.length === 0 ? waitMs(60).then(() => "late") : Promise.resolve("second")
          },
        )
        .output(Schema.String, ({ results }: any) => results.s)
        .compile()
      const exit = yield* runOn(bench, workflow)
      expect(exit).toEqual(Exit.succeed("second"))
      expect(aborts).toEqual(["abort"])
      expect(JSON.stringify(bench.commits)).not.toContain("late")
    }),
  )

  it.live("of a promise that heeds its signal never lets two attempts overlap", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      let running = 0
      let most = 0
      const workflow = make()
        .step(
          "s",
          { effects: [], output: Schema.Null, timeout: 10, retry: { times: 3, delay: 0 } },
          async ({ signal }: any) => {
            most = Math.max(most, ++running)
            // It takes a while to close what it has opened.
            await new Promise<void>((resolve) => signal.addEventListener("abort", () => setTimeout(resolve, 40)))
            running--
            return null
          },
        )
        .compile()
      yield* runOn(bench, workflow)
      expect(most).toBe(1)
      expect(running).toBe(0)
    }),
  )

  it.live("leaves a promise behind that ignores its signal, and what it performs later is refused", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const charges = new Provider()
      let refused: unknown = null
      let late: Promise<void> = Promise.resolve()
      const workflow = make()
        .step("s", { effects: [Charge], output: Schema.Null, timeout: 10 }, ({ perform }: any) => {
          const work = waitMs(700).then(() => perform(Charge, { customer: "a", cents: 1 }))
          late = work.then(
            () => {},
            (error: unknown) => void (refused = error),
          )
          return work
        })
        .compile()
      const exit = yield* runOn(bench, workflow, chargeAt(charges))
      expect(Exit.isFailure(exit) && exit.cause).toMatchObject({ error: { details: { tag: "StepTimeout" } } })
      yield* Effect.promise(() => late)
      expect(refused).toMatchObject({ _tag: "StepMisuse", code: "CRN109" })
      expect(charges.calls).toHaveLength(0)
      expect(bench.commits.flatMap(({ effects }) => effects)).toEqual([])
    }),
  )

  it.live("leaves a promise behind that never ends", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const workflow = make()
        .step("s", { effects: [], output: Schema.Null, timeout: 10 }, () => new Promise(() => {}))
        .compile()
      const exit = yield* runOn(bench, workflow)
      expect(Exit.isFailure(exit) && exit.cause).toMatchObject({ error: { details: { tag: "StepTimeout" } } })
    }),
  )
})

describe("an output that its schema refuses", () => {
  const Verdict = Schema.Struct({ passed: Schema.Boolean })
  const judging = (answers: ReadonlyArray<unknown>, onInvalid?: object) => {
    let calls = 0
    const workflow: AnyWorkflow = make()
      .step("judge", { effects: [], output: Verdict, ...(onInvalid === undefined ? {} : { onInvalid }) }, () =>
        Output.unvalidated(answers[Math.min(calls++, answers.length - 1)]),
      )
      .output(Verdict, ({ results }: any) => results.judge)
      .compile()
    return { workflow, calls: () => calls }
  }
  const wrong = { passed: "true" }

  it.live("fails the run at once without onInvalid", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const { workflow, calls } = judging([wrong])
      const exit = yield* runOn(bench, workflow)
      expect(Exit.isFailure(exit) && exit.cause).toMatchObject({ error: { _tag: "RunFailed", step: "judge" } })
      expect(calls()).toBe(1)
    }).pipe(virtual),
  )

  it.live("is asked for again as often as declared, then parked for a person, with what was refused kept", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const { workflow, calls } = judging([wrong], { retries: 2, then: "review" })
      const exit = yield* runOn(bench, workflow)
      expect(Exit.isFailure(exit) && exit.cause).toMatchObject({
        error: { _tag: "RunParked", reason: "OutputInvalid", step: "judge" },
      })
      expect(calls()).toBe(3)
      const { steps, run } = (yield* bench.driver.load("default", "r"))!
      const { attempts } = yield* bench.driver.loadOpen("default", "r", ["judge"])
      expect(attempts.map(({ kind, output }) => [kind, output])).toEqual(
        Array.from({ length: 3 }, () => ["rejected", '{"passed":"true"}']),
      )
      expect(steps).toEqual([])
      expect(run.leaseOwner).toBeNull()
    }).pipe(virtual),
  )

  it.live("goes on after Cairn.resume", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const { workflow } = judging([wrong, wrong, { passed: true }], { retries: 1, then: "review" })
      yield* runOn(bench, workflow)
      const exit = yield* Effect.gen(function* () {
        expect(yield* Cairn.resume({ runId: "r" })).toBe(true)
        expect(yield* Cairn.resume({ runId: "nobody" })).toBe(false)
        const handle = yield* Cairn.attach(workflow, { runId: "r" })
        return yield* Effect.exit(handle.result)
      }).pipe(withWorker(bench, [workflow]), Effect.provide(quiet))
      expect(exit).toEqual(Exit.succeed({ passed: true }))
    }).pipe(virtual),
  )

  it.live("fails the run where that is declared", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const { workflow, calls } = judging([wrong], { retries: 1, then: "fail" })
      const exit = yield* runOn(bench, workflow)
      expect(Exit.isFailure(exit) && exit.cause).toMatchObject({ error: { _tag: "RunFailed" } })
      expect(calls()).toBe(2)
    }).pipe(virtual),
  )

  it.live("stands in no step row at any time, only in the attempts that were refused", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const { workflow } = judging([{ passed: "poison" }, { passed: true }], { retries: 3, then: "fail" })
      const seen: Array<string> = []
      const polling = Effect.forever(
        Effect.tap(Effect.delay(bench.driver.load("default", "r"), 1), (rows) =>
          Effect.sync(() => seen.push(JSON.stringify([rows?.run, rows?.steps]))),
        ),
      )
      const exit = yield* Effect.raceFirst(runOn(bench, workflow), polling)
      expect(exit).toEqual(Exit.succeed({ passed: true }))
      const written = JSON.stringify(bench.commits.map(({ run, steps, effects }) => [run, steps, effects]))
      expect([...seen, written].filter((text) => text.includes("poison"))).toEqual([])
      expect(JSON.stringify(bench.commits)).toContain("poison")
    }),
  )

  it.live("text that is no JSON is refused with its beginning", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const workflow = make()
        .step("judge", { effects: [], output: Verdict }, () => Output.json("I think it passed"))
        .compile()
      const exit = yield* runOn(bench, workflow)
      expect(Exit.isFailure(exit) && (exit.cause as any).error.problem).toContain("I think it passed")
    }).pipe(virtual),
  )

  it.live("longer than the worker allows is refused, not stored", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const workflow = make()
        .step("s", { effects: [], output: Schema.String }, () => "x".repeat(2_000))
        .compile()
      const exit = yield* Effect.gen(function* () {
        const handle = yield* Cairn.start(workflow as AnyWorkflow, null, { runId: "r" })
        return yield* Effect.exit(handle.result)
      }).pipe(withWorker(bench, [workflow], nothing, { maxValueLength: 1_000 }), Effect.provide(quiet))
      expect(Exit.isFailure(exit) && (exit.cause as any).error.problem).toContain("at most 1000")
      expect(JSON.stringify(bench.commits)).not.toContain("xxxxxxxx")
    }).pipe(virtual),
  )
})

describe("what a step finds around it", () => {
  it.live("the worker's references and log annotations, and nothing of another run", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const tenant = FiberRef.unsafeMake("nobody")
      const workflow: AnyWorkflow = (Workflow.make as any)("around", { version: 1, input: Schema.String })
        .step("mark", { effects: [], output: Schema.String }, ({ input }: any) =>
          Effect.gen(function* () {
            const before = yield* FiberRef.get(tenant)
            yield* FiberRef.set(tenant, input)
            yield* Effect.sleep(Math.ceil(input.length))
            return `${before} ${yield* FiberRef.get(tenant)} ${JSON.stringify([...(yield* FiberRef.get(FiberRef.currentLogAnnotations))])}`
          }),
        )
        .output(Schema.String, ({ results }: any) => results.mark)
        .compile()
      const inputs = Array.from({ length: 50 }, (_, n) => `t${"x".repeat(n % 7)}${n}`)
      const texts = yield* Effect.forEach(
        inputs,
        (input) => Effect.flatMap(Cairn.start(workflow, input, { runId: input }), (handle) => handle.result),
        { concurrency: "unbounded" },
      ).pipe(Effect.locally(tenant, "client"), withWorker(bench, [workflow]), Effect.provide(quiet))
      for (const [n, text] of texts.entries()) {
        expect(text).toContain(`nobody ${inputs[n]} `)
        expect(text).toContain(`["runId","${inputs[n]}"]`)
        expect(text).toContain('["step","mark"]')
      }
    }).pipe(virtual),
  )

  const mark = FiberRef.unsafeMake("untouched")
  const marked = Effect.zipLeft(FiberRef.get(mark), FiberRef.set(mark, "left behind"))
  const seeing = (body: Effect.Effect<string, any>) => [{ effects: [], output: Schema.String }, () => body] as const
  const annotations = Effect.map(Effect.logAnnotations, (all) => JSON.stringify(Object.fromEntries(all)))

  it.live(
    "what an attempt changes of its references ends with it, however it ends, as it does after a resume (P137)",
    () =>
      Effect.gen(function* () {
        const bench = yield* makeBench
        const seen: Array<string> = []
        const noted = Effect.tap(marked, (value) => Effect.sync(() => void seen.push(value)))
        const workflow = make()
          .step("a", ...seeing(noted))
          .step("failing", { effects: [], output: Schema.String, retry: { times: 1, delay: 5 } }, () =>
            Effect.flatMap(noted, (value) => (seen.length < 3 ? Effect.fail("once") : Effect.succeed(value))),
          )
          .step("slow", { effects: [], output: Schema.String, timeout: 50, retry: { times: 1, delay: 5 } }, () =>
            Effect.tap(noted, () => (seen.length < 5 ? Effect.never : Effect.void)),
          )
          .step(
            "scoped",
            ...seeing(
              Effect.zipRight(
                Effect.addFinalizer(() => FiberRef.set(mark, "finalized")),
                noted,
              ) as never,
            ),
          )
          .perform("charge", Charge, { payload: () => ({ customer: "c", cents: 1 }) })
          .parallel("both", {
            left: (arm: any) => arm.step("left", ...seeing(noted)),
            right: (arm: any) => arm.step("right", ...seeing(noted)),
          })
          .sleep("rests", "2 minutes")
          .step("resumed", ...seeing(noted))
          .output(Schema.Null, () => null)
          .compile()
        const handler = Charge.toLayer(() => Effect.as(noted, { id: "ch", at: new Date(0) }))
        expect(yield* runOn(bench, workflow, handler)).toEqual(Exit.succeed(null))
        expect(seen).toEqual(Array.from({ length: 10 }, () => "untouched"))
      }).pipe(virtual),
  )

  it.live("the worker's references and annotations are those of every step, also of arms and after a rest (P137)", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const step = seeing(Effect.zipWith(FiberRef.get(mark), annotations, (value, all) => `${value} ${all}`))
      const workflow = make()
        .step("a", ...step)
        .parallel("both", { left: (arm: any) => arm.step("in", ...step), right: (arm: any) => arm.step("in", ...step) })
        .sleep("rests", "2 minutes")
        .step("b", ...step)
        .output(Schema.Array(Schema.String), ({ results: { a, both, b } }: any) => [a, both.left.in, both.right.in, b])
        .compile()
      const exit = yield* runOn(bench, workflow).pipe(
        Effect.locally(mark, "worker"),
        Effect.annotateLogs("app", "shop"),
      )
      const texts: ReadonlyArray<string> = Exit.isSuccess(exit) ? exit.value : []
      expect(texts).toHaveLength(4)
      for (const [n, path] of ["a", "both:left/in", "both:right/in", "b"].entries()) {
        expect(texts[n]).toMatch(/^worker \{/)
        expect(JSON.parse(texts[n]!.slice("worker ".length))).toMatchObject({ app: "shop", runId: "r", step: path })
      }
    }).pipe(virtual),
  )

  it.live("what a promise-style step performs is logged as its own (P137)", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      let logged = ""
      const workflow = make()
        .step("before", ...seeing(Effect.succeed("")))
        .step("charge", { effects: [Charge], output: Schema.Void }, async ({ perform }: any) => {
          await perform(Charge, { customer: "c", cents: 1 })
        })
        .output(Schema.Null, () => null)
        .compile()
      const handler = Charge.toLayer(() => Effect.map(annotations, (all) => ({ id: (logged = all), at: new Date(0) })))
      expect(yield* runOn(bench, workflow, handler)).toEqual(Exit.succeed(null))
      expect(JSON.parse(logged)).toMatchObject({ step: "charge" })
    }).pipe(virtual),
  )
})
