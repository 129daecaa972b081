/** A workflow of one payment under run id 'r', run to its end, crashed at a point, or resumed on another worker. */
import { it } from "@effect/vitest"
import { Effect, Exit, Layer, Schema } from "effect"
import { Cairn, Workflow, type AnyWorkflow, type FaultPoint } from "../../../src/index.js"
import { makeBench, makeMortal, quiet, startDoomed, storeLayer, withWorker, type Bench } from "./bench.js"
import { Charge } from "./operations.js"
import { makeVirtualClock } from "./virtualClock.js"

export const make = (): any => (Workflow.make as any)("paying", { version: 1, input: Schema.Null })
export const payment = { customer: "ada", cents: 100 }
export const paying = (spec: object = {}): AnyWorkflow =>
  make()
    .perform("pay", Charge, { payload: () => payment, ...spec })
    .output(Schema.parseJson(), ({ results }: any) => results.pay)
    .compile()

export const runOn = (bench: Bench, workflow: AnyWorkflow, needs: Layer.Layer<any>, runId = "r") =>
  Effect.gen(function* () {
    const handle = yield* Cairn.start(workflow, null, { runId })
    return yield* Effect.exit(handle.result)
  }).pipe(withWorker(bench, [workflow], needs), Effect.provide(quiet)) as Effect.Effect<Exit.Exit<any, any>>

export const errorOf = (exit: Exit.Exit<unknown, any>): any =>
  Exit.isFailure(exit) && exit.cause._tag === "Fail" ? exit.cause.error : exit

export const effectAt = (bench: Bench, generation = 0, path = "pay") =>
  Effect.map(bench.driver.findEffect({ namespace: "default", runId: "r", path, generation }), (found) => found!)

/** Runs on a worker that dies at a point of a step. The run is left as the crash left it. */
export const crashAt = (
  bench: Bench,
  workflow: AnyWorkflow,
  needs: Layer.Layer<any>,
  point: FaultPoint,
  step = "pay",
  options: object = {},
) =>
  Effect.gen(function* () {
    let reached = false
    const mortal = makeMortal(bench.store, (at, site) =>
      Effect.sync(() => {
        if (at !== point || site.step !== step) return
        mortal.kill()
        reached = true
      }),
    )
    yield* startDoomed(mortal, { workflows: [workflow], ...options }, needs)
    yield* Effect.provide(Cairn.start(workflow, null, { runId: "r" }), storeLayer(bench.store))
    yield* Effect.repeat(Effect.sleep(10), { until: () => reached })
  }).pipe(Effect.provide(quiet))

export const resumeOn = (
  bench: Bench,
  workflow: AnyWorkflow,
  needs: Layer.Layer<any>,
  options: object = {},
  runId = "r",
) =>
  Effect.gen(function* () {
    const handle = yield* Cairn.attach(workflow, { runId })
    return yield* Effect.exit(handle.result)
  }).pipe(withWorker(bench, [workflow], needs, options), Effect.provide(quiet)) as Effect.Effect<Exit.Exit<any, any>>

/** A test on a fresh bench, under the virtual clock. */
export const test = (title: string, body: (bench: Bench) => Effect.Effect<void, any, any>) =>
  it.live(
    title,
    () =>
      Effect.flatMap(makeBench, body).pipe(Effect.scoped, Effect.withClock(makeVirtualClock())) as Effect.Effect<
        void,
        any
      >,
  )
