/**
 * How soon a worker hears of what another process has sent to a run that it executes (field case P099), over any SQL store:
 * registered by each store's own tests. All options are the usual ones: heartbeats come every ten seconds.
 */
import { Cairn, contextFromDriver, Worker, Workflow, type AnyWorkflow, type CheckpointDriver } from "@cairn/core"
import { Deferred, Effect, Layer, Logger, Schema, type Scope } from "effect"
import { describe, expect, it } from "vitest"
import type { Place } from "./lifecycle.js"

/** A second by default; double, for machines that have other things to do. */
const withinMs = 2_000

const flow = (name: string): any => (Workflow.make as any)(name, { version: 1, input: Schema.Null })

const on = (driver: CheckpointDriver) => Layer.succeedContext(contextFromDriver(driver)) as Layer.Layer<any>

const worker = (driver: CheckpointDriver, workflows: ReadonlyArray<AnyWorkflow>, options: object = {}) =>
  Layer.build(
    Worker.layer({ workflows, ...options } as any).pipe(
      Layer.provide(on(driver)),
      Layer.provide(Logger.remove(Logger.defaultLogger)),
    ) as Layer.Layer<any>,
  )

/** A workflow whose one step never ends by itself: when it has begun, and when its signal fired. */
const patient = (name: string) => {
  const begun = Effect.runSync(Deferred.make<void>())
  const aborted = Effect.runSync(Deferred.make<number>())
  const workflow: AnyWorkflow = flow(name)
    .step("work", { effects: [], output: Schema.Void }, async ({ signal }: { readonly signal: AbortSignal }) => {
      signal.addEventListener("abort", () => Deferred.unsafeDone(aborted, Effect.succeed(performance.now())))
      Deferred.unsafeDone(begun, Effect.void)
      await new Promise(() => {})
    })
    .compile()
  return { workflow, begun: Deferred.await(begun), aborted: Deferred.await(aborted) }
}

export const arrivals = (name: string, opened: Effect.Effect<Place, unknown, Scope.Scope>): void => {
  const run = (body: (place: Place) => Effect.Effect<void, any, any>) => () =>
    Effect.runPromise(Effect.scoped(Effect.flatMap(opened, body)) as Effect.Effect<void>)

  describe(`with the usual options, over ${name}, a worker hears within a second of`, () => {
    it(
      "a cancel by another process, and its step's signal fires",
      run(({ driver, second }) =>
        Effect.gen(function* () {
          const { aborted, begun, workflow } = patient("patient")
          yield* worker(driver, [workflow])
          yield* Effect.provide(Cairn.start(workflow, null, { runId: "r" }), on(driver))
          yield* begun
          const from = performance.now()
          expect(yield* Effect.provide(Cairn.cancel({ runId: "r" }), on(second))).toBe(true)
          expect((yield* aborted) - from).toBeLessThan(withinMs)
        }),
      ),
      20_000,
    )

    it(
      "a pause by another process, and begins nothing more",
      run(({ driver, second }) =>
        Effect.gen(function* () {
          let turns = 0
          const counting: AnyWorkflow = flow("counting")
            .loop(
              "again",
              { state: Schema.Int, initial: () => 0, maxIterations: 10_000, onLimit: "fail" },
              (body: any) =>
                body.step("turn", { effects: [], output: Schema.Int }, () => Effect.as(Effect.sleep(20), ++turns)),
              ({ results }: any) => ({ done: false, state: results.turn }),
            )
            .compile()
          expect(counting.diagnostics).toEqual([])
          yield* worker(driver, [counting])
          yield* Effect.provide(Cairn.start(counting, null, { runId: "r" }), on(driver))
          yield* Effect.repeat(Effect.sleep(10), { until: () => turns > 0 })
          expect(yield* Effect.provide(Cairn.pause({ runId: "r" }), on(second))).toBe(true)
          yield* Effect.sleep(withinMs)
          const { leaseOwner, status } = (yield* second.findRun("default", "r"))!
          expect([status, leaseOwner]).toEqual(["pending", null])
          const stood = turns
          yield* Effect.sleep(100)
          expect(turns).toBe(stood)
        }),
      ),
      20_000,
    )

    it(
      "a signal from another process, for one arm while another is at work",
      run(({ driver, second }) =>
        Effect.gen(function* () {
          const working = yield* Deferred.make<void>()
          const heard = yield* Deferred.make<number>()
          const arms: AnyWorkflow = flow("arms")
            .parallel("both", {
              busy: (arm: any) =>
                arm.step("work", { effects: [], output: Schema.Void }, () =>
                  Effect.zipRight(Deferred.succeed(working, undefined), Effect.never),
                ),
              waits: (arm: any) =>
                arm.signal("go", { schema: Schema.Int }).step("went", { effects: [], output: Schema.Void }, () =>
                  Effect.asVoid(
                    Effect.flatMap(
                      Effect.sync(() => performance.now()),
                      (at) => Deferred.succeed(heard, at),
                    ),
                  ),
                ),
            })
            .compile()
          expect(arms.diagnostics).toEqual([])
          yield* worker(driver, [arms])
          yield* Effect.provide(Cairn.start(arms, null, { runId: "r" }), on(driver))
          yield* Deferred.await(working)
          yield* Effect.repeat(Effect.delay(second.loadWaits("default", "r"), 10), {
            until: (loaded) => (loaded?.waits.length ?? 0) > 0,
          })
          const from = performance.now()
          yield* Effect.provide((Cairn.signal as any)(arms, { runId: "r" }, "go", 1), on(second)) as Effect.Effect<void>
          expect((yield* Deferred.await(heard)) - from).toBeLessThan(withinMs)
        }),
      ),
      20_000,
    )

    it(
      "the cancel of a run whose child it executes, and another worker the parent",
      run(({ driver, second }) =>
        Effect.gen(function* () {
          const { aborted, begun, workflow: child } = patient("child")
          const parent: AnyWorkflow = flow("parent")
            .child("one", child, { input: () => null })
            .compile()
          // It has one place, and that is the child's.
          yield* worker(driver, [parent], { concurrency: 1 })
          yield* Effect.provide(Cairn.start(parent, null, { runId: "r" }), on(driver))
          yield* begun
          yield* worker(second, [parent])
          const from = performance.now()
          expect(yield* Effect.provide(Cairn.cancel({ runId: "r" }), on(second))).toBe(true)
          expect((yield* aborted) - from).toBeLessThan(withinMs)
        }),
      ),
      20_000,
    )
  })
}
