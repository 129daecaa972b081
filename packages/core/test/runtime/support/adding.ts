/** Workflows over two numbers, started on a bench: what tests of workers share. */
import { it, vi } from "@effect/vitest"
import { Clock, Effect, Schema } from "effect"
import { Cairn, Workflow, type AnyWorkflow } from "../../../src/index.js"
import { makeBench, quiet, storeLayer, type Bench } from "./bench.js"
import { makeVirtualClock } from "./virtualClock.js"

const Input = Schema.Struct({ a: Schema.Int, b: Schema.Int })
export const make = (name: string, version = 1, durability?: "step" | "barrier"): any =>
  (Workflow.make as any)(name, { version, input: Input, durability })
export const input = { a: 1, b: 2 }

export const adding = (name = "adding", version = 1): AnyWorkflow =>
  make(name, version)
    .step("sum", { effects: [], output: Schema.Int }, ({ input: { a, b } }: any) => a + b)
    .output(Schema.Int, ({ results }: any) => results.sum)
    .compile()

export const start = (bench: Bench, workflow: AnyWorkflow, runId: string, given: unknown = input) =>
  Effect.provide(Cairn.start(workflow, given, { runId }), storeLayer(bench.store))

export const test = (title: string, body: (bench: Bench) => Effect.Effect<void, any, any>) =>
  it.live(
    title,
    () =>
      Effect.flatMap(makeBench, body).pipe(
        Effect.scoped,
        Effect.provide(quiet),
        Effect.withClock(makeVirtualClock()),
      ) as Effect.Effect<void, any>,
  )

export const row = (bench: Bench, runId: string) =>
  Effect.map(bench.driver.findRun("default", runId), (found) => found!)

/** The process's monotonic clock follows the virtual one. `vi.restoreAllMocks` ends it. */
export const followClock = Effect.map(Clock.clockWith(Effect.succeed), (clock) => {
  const startedAt = clock.unsafeCurrentTimeMillis()
  vi.spyOn(performance, "now").mockImplementation(() => clock.unsafeCurrentTimeMillis() - startedAt)
})
