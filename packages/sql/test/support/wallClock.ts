/**
 * Waits of up to a second belong to the process that owns the run, and take their time whatever becomes of the wall clock meanwhile:
 * registered by each store's own tests over its own database.
 */
import { Cairn, contextFromDriver, Worker, Workflow, type AnyWorkflow, type CheckpointDriver } from "@cairn/core"
import { Effect, Exit, Layer, Logger, Schema, type Scope } from "effect"
import { afterEach, describe, expect, it, vi } from "vitest"

const hour = 3_600_000

const flow = (name: string): any => (Workflow.make as any)(name, { version: 1, input: Schema.Null })

interface Waiting {
  readonly workflow: AnyWorkflow
  readonly begun: Promise<unknown>
}

/** A workflow that waits for `ms`, and when it has begun to. */
type Waits = (ms: number) => Waiting

const built = (build: (begin: () => void) => any): Waiting => {
  let begin = (): void => {}
  const begun = new Promise<void>((resolve) => (begin = resolve))
  return { workflow: build(() => setTimeout(begin, 20)).compile(), begun }
}

const sleeps: Waits = (ms) =>
  built((begin) =>
    flow("sleeps")
      .step("before", { effects: [], output: Schema.Void }, () => begin())
      .sleep("nap", ms)
      .output(Schema.String, () => "slept"),
  )

/** One arm waits while another one is under way. */
const sleepsBeside: Waits = (ms) =>
  built((begin) =>
    flow("sleepsBeside")
      .parallel("both", {
        rests: (arm: any) => arm.sleep("nap", ms),
        works: (arm: any) =>
          arm.step("before", { effects: [], output: Schema.Void }, async () => {
            begin()
            await new Promise((resolve) => setTimeout(resolve, ms / 2))
          }),
      })
      .output(Schema.String, () => "slept"),
  )

const retries: Waits = (ms) =>
  built((begin) => {
    let attempts = 0
    const retry = { times: 1, delay: ms, maxDelay: ms }
    return flow("retries")
      .step("flaky", { effects: [], output: Schema.String, retry }, () => {
        attempts += 1
        if (attempts > 1) return "passed"
        begin()
        throw new Error("once")
      })
      .output(Schema.String, ({ results }: any) => results.flaky)
  })

const steps = [
  ["stands still", 0],
  ["jumps back by an hour", -hour],
  ["jumps forward by an hour", hour],
] as const

export const wallClocks = (name: string, open: Effect.Effect<CheckpointDriver, unknown, Scope.Scope>): void => {
  afterEach(() => {
    vi.useRealTimers()
  })

  /** Runs it, with a wall clock that stands, or steps, once it waits; in real milliseconds. */
  const took = ({ begun, workflow }: Waiting, step: number): Promise<number> =>
    Effect.gen(function* () {
      const driver = yield* open
      const worker = Worker.layer({ workflows: [workflow] })
      const live = Layer.provideMerge(worker, Layer.succeedContext(contextFromDriver(driver))) as Layer.Layer<any>
      return yield* Effect.gen(function* () {
        const handle = yield* Cairn.start(workflow, null, { runId: "r" })
        const from = performance.now()
        yield* Effect.promise(() => begun)
        vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + step })
        const exit = yield* Effect.exit(handle.result).pipe(
          Effect.timeoutFail({ duration: 10_000, onTimeout: () => "it hangs" }),
        )
        expect(Exit.isSuccess(exit)).toBe(true)
        return performance.now() - from
      }).pipe(Effect.provide(live))
    }).pipe(Effect.scoped, Effect.provide(Logger.remove(Logger.defaultLogger)), (effect) =>
      Effect.runPromise(effect as Effect.Effect<number>),
    )

  describe(`over ${name}, while the wall clock`, () => {
    for (const [what, step] of steps) {
      it.each([
        ["a sleep", sleeps, 400],
        ["a sleep beside other work", sleepsBeside, 400],
        ["a retry", retries, 400],
      ] as const)(`${what}, %s takes its time and no more`, async (_, make, ms) => {
        const elapsed = await took(make(ms), step)
        expect(elapsed).toBeGreaterThanOrEqual(ms - 20)
        // Room for machines that have other things to do; the second try of a wait would take longer still.
        expect(elapsed).toBeLessThan(ms * 6)
      })
    }
  })
}
