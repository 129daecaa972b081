/** A workflow with a long queue does not keep the others waiting, and what a worker does can be counted. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Metric, Schema } from "effect"
import { Cairn, Worker, WorkerMetrics, Workflow } from "../../src/index.js"
import { makeBench, quiet, storeLayer } from "./support/bench.js"

/** A workflow that notes when a run of it begins. */
const noting = <const Name extends string>(name: Name, begun: Array<string>) =>
  Workflow.make(name, { version: 1, input: Schema.Null })
    .step("begin", { effects: [], output: Schema.Void }, () =>
      Effect.yieldNow().pipe(Effect.map(() => void begun.push(name))),
    )
    .compile()

describe("a worker of several workflows", () => {
  it.live("gives each its share while one has a long queue", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const begun: Array<string> = []
      const workflows = [noting("long", begun), noting("short", begun), noting("rare", begun)] as const
      yield* Effect.gen(function* () {
        for (let index = 0; index < 60; index++) yield* Cairn.start(workflows[0], null)
        const late = [yield* Cairn.start(workflows[1], null), yield* Cairn.start(workflows[2], null)]
        yield* Effect.forEach(late, (handle) => handle.result, { discard: true }).pipe(
          Effect.provide(Worker.layer({ workflows, concurrency: 2 })),
        )
      }).pipe(Effect.provide(storeLayer(bench.store)), Effect.provide(quiet))
      // Started last, behind sixty others: by their age they would come at the very end.
      expect(begun.indexOf("short")).toBeGreaterThanOrEqual(0)
      expect(begun.indexOf("short")).toBeLessThan(12)
      expect(begun.indexOf("rare")).toBeLessThan(12)
    }),
  )

  it.live("asks the store once for all of them while nothing waits", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const claims: Array<number> = []
      const store = {
        ...bench.store,
        claim: (request: Parameters<typeof bench.store.claim>[0]) => {
          claims.push(request.workflows.length)
          return bench.store.claim(request)
        },
      }
      const workflows = [noting("a", []), noting("b", [])] as const
      yield* Effect.sleep("100 millis").pipe(
        Effect.provide(Layer.provide(Worker.layer({ workflows, pollInterval: "10 millis" }), storeLayer(store))),
        Effect.provide(quiet),
      )
      expect(claims.length).toBeGreaterThan(2)
      expect(new Set(claims)).toEqual(new Set([2]))
    }),
  )

  it.live("counts runs and steps by workflow and outcome, never by run", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const counted = noting("counted", [])
      const failing = Workflow.make("failing", { version: 1, input: Schema.Null })
        .step("fails", { effects: [], output: Schema.Void }, () => Effect.fail("no"))
        .compile()
      yield* Effect.gen(function* () {
        for (let index = 0; index < 3; index++) yield* (yield* Cairn.start(counted, null)).result
        yield* Effect.exit((yield* Cairn.start(failing, null)).result)
      }).pipe(
        Effect.provide(Worker.layer({ workflows: [counted, failing] })),
        Effect.provide(storeLayer(bench.store)),
        Effect.provide(quiet),
      )
      const of = (metric: typeof WorkerMetrics.claimed, labels: Readonly<Record<string, string>>) =>
        Object.entries(labels).reduce((tagged, [key, value]) => Metric.tagged(tagged, key, value), metric)
      const value = (metric: typeof WorkerMetrics.claimed, labels: Readonly<Record<string, string>>) =>
        Effect.map(Metric.value(of(metric, labels)), (state) => state.count)
      expect(yield* value(WorkerMetrics.claimed, { workflow: "counted" })).toBe(3)
      expect(yield* value(WorkerMetrics.recovered, { workflow: "counted" })).toBe(0)
      expect(yield* value(WorkerMetrics.ended, { workflow: "counted", outcome: "final" })).toBe(3)
      expect(yield* value(WorkerMetrics.steps, { workflow: "counted" })).toBe(3)
      expect(yield* value(WorkerMetrics.ended, { workflow: "failing", outcome: "final" })).toBe(1)
      expect(yield* value(WorkerMetrics.steps, { workflow: "failing" })).toBe(0)
      expect((yield* Metric.value(WorkerMetrics.active)).value).toBe(0)
      const duration = yield* Metric.value(Metric.tagged(WorkerMetrics.stepDuration, "workflow", "counted"))
      expect(duration.count).toBe(3)
    }),
  )
})
