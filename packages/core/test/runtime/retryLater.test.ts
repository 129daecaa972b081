/** Field case P101: many steps are asked to come back later, and a restart forgets none of it. */
import { describe, expect, it } from "@effect/vitest"
import { Clock, Effect, Schema } from "effect"
import { Cairn, RetryLater, Workflow } from "../../src/index.js"
import { makeBench, makeMortal, quiet, refuseUnhandled, startDoomed, startWorker, storeLayer } from "./support/bench.js"
import { makeVirtualClock } from "./support/virtualClock.js"

refuseUnhandled()

const askedMs = 3_000

/** Twenty items whose first call is answered with 429 and `Retry-After: 3`. */
const calling = () => {
  const calls = new Map<number, Array<number>>()
  const workflow = Workflow.make("calling", { version: 1, input: Schema.Null })
    .forEach(
      "all",
      { items: () => Array.from({ length: 20 }, (_, n) => n), key: (n) => String(n), concurrency: 20 },
      (flow) =>
        flow.step("call", { effects: [], output: Schema.Void, retry: { times: 2, delay: "10 millis" } }, ({ item }) =>
          Effect.gen(function* () {
            const at = yield* Clock.currentTimeMillis
            const mine = [...(calls.get(item) ?? []), at]
            calls.set(item, mine)
            if (mine.length === 1) return yield* RetryLater.fromHeader("3", new Date(at))
          }),
        ),
    )
    .compile()
  return { calls, workflow }
}

const expectSpread = (calls: ReadonlyMap<number, ReadonlyArray<number>>, slackMs: number): void => {
  expect(calls.size).toBe(20)
  const waited = [...calls.values()].map(([first, second, ...more]) => {
    expect(more).toEqual([])
    return second! - first!
  })
  for (const ms of waited) {
    expect(ms).toBeGreaterThanOrEqual(askedMs)
    expect(ms).toBeLessThanOrEqual(askedMs * 1.2 + slackMs)
  }
  // Not all at one instant: jitter comes on top of what was asked for.
  expect(new Set([...calls.values()].map(([, second]) => second)).size).toBeGreaterThan(5)
}

describe("twenty steps that are answered 429 with Retry-After 3", () => {
  it.live("come back after three seconds, spread, and not before", () =>
    Effect.gen(function* () {
      const { calls, workflow } = calling()
      const bench = yield* makeBench
      yield* Effect.gen(function* () {
        yield* startWorker(bench.store, { workflows: [workflow], pollInterval: 10 })
        const handle = yield* Cairn.start(workflow, null)
        yield* handle.result
      }).pipe(Effect.scoped, Effect.provide(storeLayer(bench.store)))
      expectSpread(calls, 100)
    }).pipe(Effect.withClock(makeVirtualClock()), Effect.provide(quiet)),
  )

  it.live("keep the time over a worker that is killed a second later", () =>
    Effect.gen(function* () {
      const { calls, workflow } = calling()
      const bench = yield* makeBench
      yield* Effect.gen(function* () {
        const mortal = makeMortal(bench.store)
        yield* startDoomed(mortal, { workflows: [workflow], pollInterval: 10, lease: 500 })
        const handle = yield* Cairn.start(workflow, null)
        yield* Effect.sleep("1 second")
        expect([...calls.values()].map((times) => times.length)).toEqual(Array.from({ length: 20 }, () => 1))
        mortal.kill()
        yield* startWorker(bench.store, { workflows: [workflow], pollInterval: 10 })
        yield* handle.result
      }).pipe(Effect.scoped, Effect.provide(storeLayer(bench.store)))
      expectSpread(calls, 100)
    }).pipe(Effect.withClock(makeVirtualClock()), Effect.provide(quiet)),
  )
})
