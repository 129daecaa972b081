/** When a failed attempt is followed by another: the pure rule, and what a run makes of it. */
import { describe, expect, it } from "@effect/vitest"
import { Data, Effect, Exit, Fiber, Schema, TestClock } from "effect"
import * as fc from "fast-check"
import { Cairn, Workflow, type AnyWorkflow } from "../../src/index.js"
import { backoffMs, inProcessMs, resendDelayMs, retryDelayMs } from "../../src/runtime/internal/retry.js"
import { makeBench, quiet, refuseUnhandled, startWorker, storeLayer, withWorker } from "./support/bench.js"
import { makeVirtualClock } from "./support/virtualClock.js"

refuseUnhandled()

class Busy extends Data.TaggedError("Busy")<{ readonly retryAfterMs?: number }> {}
class BadRequest extends Data.TaggedError("BadRequest")<{ readonly isRetryable: boolean }> {}

const nodeOf = (retry: object): any => ({ retry: { times: 3, delayMs: 1_000, maxDelayMs: 8_000, ...retry } })
const ask = (options: object = {}) =>
  retryDelayMs({
    node: nodeOf({}),
    when: undefined,
    failures: 1,
    error: new Busy({}),
    defect: false,
    random: 0,
    ...options,
  })

describe("the delay", () => {
  it("doubles up to its limit, with at most a fifth on top", () => {
    const retry = { times: 9, delayMs: 1_000, maxDelayMs: 5_000 }
    expect([1, 2, 3, 4, 5].map((n) => backoffMs(retry, n, 0))).toEqual([1_000, 2_000, 4_000, 5_000, 5_000])
    expect([1, 2, 3, 4].map((n) => backoffMs(retry, n, 1))).toEqual([1_200, 2_400, 4_800, 6_000])
  })

  it("is a whole number of milliseconds from 0 for any number of failures", () => {
    fc.assert(
      fc.property(
        fc.nat(1_000_000),
        fc.nat(1_000_000),
        fc.integer({ min: 1, max: 5_000 }),
        fc.double({ min: 0, max: 0.999_999, noNaN: true }),
        (delayMs, maxDelayMs, failures, random) => {
          const ms = backoffMs({ times: 1, delayMs, maxDelayMs }, failures, random)
          return Number.isSafeInteger(ms) && ms >= 0 && ms <= Math.ceil(maxDelayMs * 1.2)
        },
      ),
    )
  })

  it("has what the other side asks for as its floor, never as its ceiling", () => {
    expect(ask({ error: new Busy({ retryAfterMs: 7_000 }) })).toBe(7_000)
    expect(ask({ error: new Busy({ retryAfterMs: 10 }) })).toBe(1_000)
  })

  it("stays a time that a clock can hold, whatever is asked for", () => {
    for (const retryAfterMs of [1e20, 1e300, Number.MAX_VALUE]) {
      const ms = ask({ error: { retryAfterMs } })!
      expect(Number.isSafeInteger(ms)).toBe(true)
      expect(Number.isSafeInteger(Date.now() + ms)).toBe(true)
    }
    for (const retryAfterMs of [NaN, -1, Infinity, "5", null]) expect(ask({ error: { retryAfterMs } })).toBe(1_000)
  })

  it("of a resend starts at a quarter of a second and ends at a minute", () => {
    expect(resendDelayMs(1, 0)).toBe(250)
    expect(resendDelayMs(2_000, 0)).toBe(60_000)
  })
})

describe("no other attempt follows", () => {
  it("a defect, a failure that says so, one that `when` refuses, or the last allowed one", () => {
    expect(ask({ defect: true })).toBeNull()
    expect(ask({ error: new BadRequest({ isRetryable: false }) })).toBeNull()
    expect(ask({ when: () => false })).toBeNull()
    expect(ask({ failures: 3 })).not.toBeNull()
    expect(ask({ failures: 4 })).toBeNull()
  })

  it("when `when` throws: the failure that it was asked about is what is reported", () => {
    const when = (): boolean => {
      throw new Error("a bug in when")
    }
    expect(ask({ when })).toBeNull()
  })
})

const counting = (options: object, fail: (call: number) => Effect.Effect<unknown, unknown>) => {
  const calls: Array<number> = []
  const workflow: AnyWorkflow = (Workflow.make("retrying", { version: 1, input: Schema.Null }) as any)
    .step("s", { effects: [], output: Schema.Number, ...options }, () =>
      Effect.flatMap(
        Effect.clockWith((clock) => clock.currentTimeMillis),
        (at) => {
          calls.push(at)
          return Effect.as(fail(calls.length), calls.length)
        },
      ),
    )
    .output(Schema.Number, ({ results }: any) => results.s)
    .compile()
  return { calls, workflow }
}

const run = (workflow: AnyWorkflow) =>
  Effect.gen(function* () {
    const bench = yield* makeBench
    const exit = yield* Effect.gen(function* () {
      const handle = yield* Cairn.start(workflow, null, { runId: "r" })
      return yield* Effect.exit(handle.result)
    }).pipe(withWorker(bench, [workflow]), Effect.withClock(makeVirtualClock()), Effect.provide(quiet))
    const { attempts } = yield* bench.driver.loadOpen("default", "r", ["s"])
    return { exit, attempts, state: (yield* bench.driver.load("default", "r"))! }
  })

describe("a run", () => {
  it.live("calls once where the failure says that a retry is useless", () =>
    Effect.gen(function* () {
      const { calls, workflow } = counting({ retry: { times: 3 } }, () =>
        Effect.fail(new BadRequest({ isRetryable: false })),
      )
      const { state } = yield* run(workflow)
      expect(calls).toHaveLength(1)
      expect(state.run.status).toBe("failed")
    }),
  )

  it.live("calls four times where three retries are allowed, and records each attempt", () =>
    Effect.gen(function* () {
      const { calls, workflow } = counting({ retry: { times: 3 } }, () => Effect.fail(new Busy({})))
      const { state, attempts } = yield* run(workflow)
      expect(calls).toHaveLength(4)
      expect(attempts.map(({ attempt, kind }) => [attempt, kind])).toEqual([1, 2, 3, 4].map((n) => [n, "failed"]))
      expect(state.run.status).toBe("failed")
    }),
  )

  it.live("never retries a defect", () =>
    Effect.gen(function* () {
      const { calls, workflow } = counting({ retry: { times: 3 } }, () => Effect.die(new Busy({})))
      yield* run(workflow)
      expect(calls).toHaveLength(1)
    }),
  )

  it.live("retries nothing by default", () =>
    Effect.gen(function* () {
      const { calls, workflow } = counting({}, () => Effect.fail(new Busy({})))
      yield* run(workflow)
      expect(calls).toHaveLength(1)
    }),
  )

  it.live("waits at least as long as the other side asked for", () =>
    Effect.gen(function* () {
      const { calls, workflow } = counting({ retry: { times: 1, delay: 10 } }, (n) =>
        n === 1 ? Effect.fail(new Busy({ retryAfterMs: 40_000 })) : Effect.void,
      )
      const { exit } = yield* run(workflow)
      expect(exit).toEqual(Exit.succeed(2))
      expect(calls[1]! - calls[0]!).toBeGreaterThanOrEqual(40_000)
    }),
  )

  it.live("a hundred years of asked-for delay is a sleeping run, not an error of the store", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const { workflow } = counting({ retry: { times: 1 } }, () => Effect.fail({ retryAfterMs: 1e300 }))
      const status = yield* Effect.gen(function* () {
        yield* Cairn.start(workflow, null, { runId: "r" })
        return yield* bench.driver.findRun("default", "r").pipe(
          Effect.map((row) => row!.status),
          Effect.repeat({ until: (status) => status === "sleeping" || status === "failed" }),
        )
      }).pipe(withWorker(bench, [workflow]), Effect.provide(quiet))
      expect(status).toBe("sleeping")
    }),
  )
})

describe("a backoff over a second", () => {
  it.effect("is durable: the run sleeps in the store, and a new worker keeps the time", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const { calls, workflow } = counting({ retry: { times: 1, delay: "1 hour", maxDelay: "2 hours" } }, (n) =>
        n === 1 ? Effect.fail(new Busy({})) : Effect.void,
      )
      const row = Effect.map(bench.driver.findRun("default", "r"), (found) => found!)
      yield* Effect.gen(function* () {
        yield* Cairn.start(workflow, null, { runId: "r" })
        yield* Effect.repeat(Effect.zipRight(TestClock.adjust(1), row), {
          until: ({ status }) => status === "sleeping",
        })
      }).pipe(withWorker(bench, [workflow]))
      const asleep = yield* row
      expect(asleep.leaseOwner).toBeNull()
      expect(asleep.wakeAt! - calls[0]!).toBeGreaterThanOrEqual(3_600_000)
      expect(asleep.wakeAt! - calls[0]!).toBeLessThanOrEqual(3_600_000 * 1.2 + 10)
      const result = yield* Effect.gen(function* () {
        // TestClock stops at every sleep on its way, so this worker sleeps long between two looks.
        yield* startWorker(bench.store, { workflows: [workflow], lease: "1 day", pollInterval: "1 minute" })
        const handle = yield* Cairn.attach(workflow, { runId: "r" })
        yield* TestClock.adjust(asleep.wakeAt! - calls[0]! - 120_000)
        expect(calls).toHaveLength(1)
        const waiting = yield* Effect.fork(handle.result)
        yield* TestClock.adjust(240_000)
        return yield* Fiber.join(waiting)
      }).pipe(Effect.scoped, Effect.provide(storeLayer(bench.store)))
      expect(result).toBe(2)
      expect(calls[1]!).toBeGreaterThanOrEqual(asleep.wakeAt!)
      expect((yield* row).recoveries).toBe(0)
    }).pipe(Effect.provide(quiet)),
  )

  it("starts past a second: shorter ones are slept in the process", () => {
    expect(inProcessMs).toBe(1_000)
  })
})
