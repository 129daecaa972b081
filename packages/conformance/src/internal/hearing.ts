/** Who hears of what another connection does (D18). */
import assert from "node:assert/strict"
import type { CheckpointDriver } from "@cairn/core"
import * as Effect from "effect/Effect"
import { create, fresh, type Bench } from "./bench.js"

/** Longer than any machine takes to hand on a call; a lost one is given up after it. */
const longestWaitMs = 10_000

/** The connection that only hears: what it hears was sent by another one. */
export const hearerOf = (bench: Bench): CheckpointDriver => bench.connections[1] ?? bench.driver

/** Counts the calls of the listeners of who only hears. */
export const listening = (bench: Bench) =>
  Effect.sync(() => {
    let heard = 0
    let seen = 0
    hearerOf(bench).onWakeUp?.(() => void heard++)
    /** Ends when so many more calls have come. */
    const hears = (count: number, what: string): Effect.Effect<void, unknown> =>
      Effect.gen(function* () {
        // A test clock moves on by these steps; on a real one they are short at first.
        for (let stepMs = 1; stepMs < longestWaitMs && heard < seen + count; stepMs *= 2) {
          yield* bench.waitUntil((yield* bench.driver.now) + stepMs)
        }
        assert.ok(heard >= seen + count, `${what} was not heard of on the other connection`)
        seen += count
      })
    /** Calls come in the order of the acts: when that of a last act is there, no earlier one is still to come. */
    const hearsNoMore = (what: string): Effect.Effect<void, unknown> =>
      Effect.gen(function* () {
        yield* create(bench, { namespace: fresh("conformance") })
        yield* hears(1, "a run that was created last")
        yield* bench.waitUntil((yield* bench.driver.now) + 5)
        assert.equal(heard, seen, `${what} was heard of more often than it happened`)
      })
    /** Takes in what is still to come of acts from before. */
    const settles: Effect.Effect<void, unknown> = Effect.gen(function* () {
      yield* create(bench, { namespace: fresh("conformance") })
      yield* hears(1, "a run that was created first")
      yield* bench.waitUntil((yield* bench.driver.now) + 50)
      seen = heard
    })
    return { hears, hearsNoMore, settles }
  })
