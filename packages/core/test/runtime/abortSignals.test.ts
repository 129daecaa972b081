/** Abort signals of a long run: each step's is its own, and none gathers listeners (field case P104). */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { getEventListeners } from "node:events"
import { Cairn, Workflow } from "../../src/index.js"
import { makeBench, quiet, refuseUnhandled, withWorker } from "./support/bench.js"

refuseUnhandled()

const turns = 50_000

/** How many listen to it. */
const listeners = (signal: AbortSignal): number => getEventListeners(signal, "abort").length

describe(`a run of ${turns} steps that listen to their signals and take no listener away`, () => {
  it.scopedLive("finds nobody listening when a step begins, and adds nobody to the signal of its caller", () =>
    Effect.gen(function* () {
      const warnings: Array<string> = []
      const warned = (warning: Error): void => void warnings.push(warning.name)
      process.on("warning", warned)
      yield* Effect.addFinalizer(() => Effect.sync(() => process.off("warning", warned)))
      const bench = yield* makeBench
      const caller = new AbortController()
      let atFirst = 0
      let most = 0
      let mostOfCaller = 0
      const workflow = (Workflow.make as any)("listening", { version: 1, input: Schema.Null })
        .loop(
          "turns",
          { state: Schema.Int, initial: () => 0, maxIterations: turns, onLimit: "fail" },
          (flow: any) =>
            flow.step("listen", { effects: [], output: Schema.Int }, async ({ signal, turn }: any) => {
              atFirst += listeners(signal)
              signal.addEventListener("abort", () => {})
              most = Math.max(most, listeners(signal))
              mostOfCaller = Math.max(mostOfCaller, listeners(caller.signal))
              return turn
            }),
          ({ state }: any) => ({ done: state + 1 === turns, state: state + 1 }),
        )
        .output(Schema.Int, ({ results }: any) => results.turns)
        .compile()
      expect(workflow.diagnostics).toEqual([])
      const run = Effect.flatMap(Cairn.start(workflow, null, { runId: "r" }), ({ result }) => result)
      const whole = run.pipe(withWorker(bench, [workflow]), Effect.provide(quiet))
      expect(yield* Effect.promise(() => Effect.runPromise(whole, { signal: caller.signal }))).toBe(turns)
      expect([atFirst, most]).toEqual([0, 1])
      expect(mostOfCaller).toBeLessThanOrEqual(1)
      // Node warns of eleven.
      expect(warnings).toEqual([])
    }),
  )
})
