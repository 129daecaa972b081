/** A child is started by the owner of its parent alone: none is left to run by itself (X5, X6, D1). */
import { describe, expect } from "@effect/vitest"
import { Deferred, Effect, Schema } from "effect"
import { Cairn, Workflow, type AnyWorkflow } from "../../src/index.js"
import { test } from "./support/adding.js"
import { intercepted, makeMortal, startDoomed, startWorker, storeLayer, type Bench } from "./support/bench.js"

const make = (name: string): any => (Workflow.make as any)(name, { version: 1, input: Schema.Null })

const child: AnyWorkflow = make("child")
  .step("work", { effects: [], output: Schema.Null }, () => Effect.as(Effect.sleep("1 minute"), null))
  .compile()

/** A run that starts a child. */
const parent: AnyWorkflow = make("parent")
  .child("ask", child, { input: () => null })
  .compile()
const workflows = [parent, child]

const on = <A, E>(bench: Bench, effect: Effect.Effect<A, E, any>) =>
  Effect.provide(effect, storeLayer(bench.store)) as Effect.Effect<A, E>

const starting = (bench: Bench) => on(bench, Cairn.start(parent as any, null as never, { runId: "r" }))
const childRow = (bench: Bench) => bench.driver.findRun("default", "r/ask")

describe("a worker that stalls just before it starts a child", () => {
  test("starts none of a run that another worker has canceled meanwhile", (bench) =>
    Effect.gen(function* () {
      const stalled = yield* Deferred.make<void>()
      const mortal = makeMortal(bench.store, (point, { step }) =>
        point === "beforeEffect" && step === "ask"
          ? Effect.sync(() => mortal.kill()).pipe(Effect.zipRight(Deferred.succeed(stalled, undefined)))
          : Effect.void,
      )
      yield* startDoomed(mortal, { workflows })
      const handle = yield* starting(bench)
      yield* Deferred.await(stalled)
      yield* startWorker(bench.store, { workflows })
      yield* on(bench, Cairn.cancel({ runId: "r" }))
      yield* Effect.exit(handle.result)
      expect((yield* handle.poll).status).toBe("canceled")
      expect(yield* childRow(bench)).toBeNull()
      mortal.wake()
      // Long enough for its lease to be missed, and for a child to be taken up.
      yield* Effect.sleep("5 minutes")
      expect(yield* childRow(bench)).toBeNull()
    }))

  test("gets the child that another one has started meanwhile, and leaves it alone", (bench) =>
    Effect.gen(function* () {
      const stalled = yield* Deferred.make<void>()
      const mortal = makeMortal(bench.store, (point, { step }) =>
        point === "beforeEffect" && step === "ask"
          ? Effect.sync(() => mortal.kill()).pipe(Effect.zipRight(Deferred.succeed(stalled, undefined)))
          : Effect.void,
      )
      yield* startDoomed(mortal, { workflows })
      const handle = yield* starting(bench)
      yield* Deferred.await(stalled)
      yield* startWorker(bench.store, { workflows })
      yield* Effect.repeat(Effect.zipRight(Effect.sleep("1 second"), childRow(bench)), { until: (row) => row !== null })
      mortal.wake()
      yield* handle.result
      expect(yield* childRow(bench)).toMatchObject({ status: "completed" })
    }))
})

describe("a cancel", () => {
  test("that comes while a child is on its way to the store takes it along", (bench) =>
    Effect.gen(function* () {
      const asked = yield* Deferred.make<void>()
      const mayCreate = yield* Effect.makeLatch(false)
      const store = intercepted(bench.store, (method) =>
        method === "createChild" ? Effect.zipRight(Deferred.succeed(asked, undefined), mayCreate.await) : Effect.void,
      )
      yield* startWorker(store, { workflows })
      const handle = yield* starting(bench)
      yield* Deferred.await(asked)
      yield* on(bench, Cairn.cancel({ runId: "r" }))
      yield* Effect.sleep("1 second")
      yield* mayCreate.open
      yield* Effect.exit(handle.result)
      expect((yield* handle.poll).status).toBe("canceled")
      expect(yield* childRow(bench)).toMatchObject({ status: "canceled" })
    }))
})
