/** D40: the end of a paid call is written once, whoever owns its run by then. */
import assert from "node:assert/strict"
import * as Effect from "effect/Effect"
import type { Case } from "../Case.js"
import { abandoned, claim, claimed, connection, fresh, liveWorker, only } from "../internal/bench.js"
import {
  used,
  callOf,
  endOf,
  listed,
  spendOf,
  runCounter,
  dayCounter,
  unlimited,
  begun,
} from "../internal/paidCalls.js"

const ends: Case = {
  law: "D40",
  title: "D40: the end of a call is written once, by whoever made it, also when the run is another worker's by then",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const old = yield* abandoned(bench)
      const counters = unlimited(runCounter(old.lease), dayCounter)
      const call = yield* begun(bench, callOf(old.lease, { counters, atMost: 50 }))
      const other = yield* begun(bench, callOf(old.lease, { counters, atMost: 7 }))
      const next = only(yield* claim(bench, yield* liveWorker(bench), { runIds: [old.row.runId] }))
      const foreign = endOf(call, used(1), { claimToken: next.claimToken! })
      assert.equal(yield* bench.driver.endCall(foreign), false, "the end of a call that another one made was taken")
      const from = yield* bench.driver.now
      const end = used(31, { inputTokens: 12, outputTokens: 5, cachedInputTokens: 2 })
      const results = yield* Effect.forEach(
        Array.from({ length: 6 }, (_, n) => n),
        (n) => connection(bench, n).endCall(endOf(call, n === 0 ? end : { ...end, microDollars: 31 })),
        { concurrency: "unbounded" },
      )
      assert.equal(results.filter(Boolean).length, 1, "the end of a call was written more than once, or never")
      assert.equal(yield* bench.driver.endCall(endOf(call, used(999))), false)
      assert.equal(yield* bench.driver.endCall(endOf({ ...call, callId: fresh("call") }, used(999))), false)
      const rows = yield* listed(bench, old.lease)
      const row = rows.find(({ callId }) => callId === call.callId)!
      assert.deepEqual({ ...row, ...end, endedAt: null }, { ...row, endedAt: null })
      assert.ok(row.endedAt !== null && row.endedAt >= from)
      const stands = { spent: 31, reserved: 7, calls: 2, unknown: 0 }
      for (const counter of counters) assert.deepEqual(yield* spendOf(bench, counter), stands)
      assert.equal(yield* bench.driver.endCall(endOf(other, used(null, { inputTokens: 4, state: "known" }))), true)
      // It may have cost as much as it had reserved: nobody knows.
      for (const counter of counters) assert.deepEqual(yield* spendOf(bench, counter), { ...stands, unknown: 1 })
    }),
}

const exact: Case = {
  law: "D40",
  title: "D40: sums are exact: ten tenths of a dollar are a dollar, and large amounts lose nothing",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* claimed(bench)
      const counters = unlimited(runCounter(lease))
      for (let n = 0; n < 10; n++) {
        const call = yield* begun(bench, callOf(lease, { counters }))
        yield* bench.driver.endCall(endOf(call, used(100_000)))
      }
      assert.equal((yield* spendOf(bench, runCounter(lease))).spent, 1_000_000)
      const large = 2 ** 52
      const call = yield* begun(bench, callOf(lease, { counters, atMost: large }))
      yield* bench.driver.endCall(endOf(call, used(large + 1)))
      assert.deepEqual(yield* spendOf(bench, runCounter(lease)), {
        spent: 1_000_000 + large + 1,
        reserved: 0,
        calls: 11,
        unknown: 0,
      })
    }),
}

const most = Number.MAX_SAFE_INTEGER

const capped: Case = {
  law: "D40",
  title: "D40: a counter never leaves 2^53 - 1: it stays there, as that much or more, and the next calls begin and end",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* claimed(bench)
      const run = runCounter(lease)
      const counters = unlimited(run, dayCounter)
      yield* begun(bench, callOf(lease, { counters, end: used(most) }))
      assert.deepEqual(yield* spendOf(bench, run), { spent: most, reserved: 0, calls: 1, unknown: 0 })
      const next = yield* begun(bench, callOf(lease, { counters, atMost: 5 }))
      assert.equal(yield* bench.driver.endCall(endOf(next, used(3))), true)
      assert.deepEqual(yield* spendOf(bench, run), { spent: most, reserved: 0, calls: 2, unknown: 0 })
      // Nobody knows any more how much is reserved: what is given back leaves it as it is.
      const held = yield* begun(bench, callOf(lease, { counters, atMost: most }))
      const more = yield* begun(bench, callOf(lease, { counters, atMost: 9 }))
      for (const call of [held, more]) assert.equal(yield* bench.driver.endCall(endOf(call, used(1))), true)
      for (const counter of counters) {
        assert.deepEqual(yield* spendOf(bench, counter), { spent: most, reserved: most, calls: 4, unknown: 0 })
      }
      const limited = [{ ...run, limit: most }]
      for (const end of [null, used(7)]) {
        const refused = yield* bench.driver.beginCall(callOf(lease, { counters: limited, atMost: 2, end }))
        const stands = { spent: most, reserved: most, waiting: 0 }
        assert.deepEqual(refused, { _tag: "Refused", counter: run, limit: most, ...stands })
      }
      assert.deepEqual(yield* spendOf(bench, run), { spent: most, reserved: most, calls: 4, unknown: 0 })
    }),
}

const cutOff: Case = {
  law: "D40",
  title: "D40: a death between two statements leaves a call and its counters as they were, or as they are to be",
  needs: ["failAfter"],
  run: (bench) =>
    Effect.gen(function* () {
      for (let statements = 1; statements <= 6; statements++) {
        const { lease } = yield* claimed(bench)
        const counters = unlimited(runCounter(lease))
        const call = callOf(lease, { counters, atMost: 9 })
        yield* bench.store.failAfter!(statements)
        yield* Effect.either(bench.driver.beginCall(call))
        const begunCalls = yield* listed(bench, lease)
        const reserved = { spent: 0, reserved: 9 * begunCalls.length, calls: begunCalls.length, unknown: 0 }
        assert.deepEqual(yield* spendOf(bench, runCounter(lease)), reserved, `begun, cut after ${statements}`)
        yield* begun(bench, call)
        yield* bench.store.failAfter!(statements)
        yield* Effect.either(bench.driver.endCall(endOf(call, used(4))))
        const [row] = yield* listed(bench, lease)
        const isEnded = row?.state === "known"
        const counted = { spent: isEnded ? 4 : 0, reserved: isEnded ? 0 : 9, calls: 1, unknown: 0 }
        assert.deepEqual(yield* spendOf(bench, runCounter(lease)), counted, `ended, cut after ${statements}`)
        assert.equal(yield* bench.driver.endCall(endOf(call, used(4))), !isEnded)
        assert.equal((yield* spendOf(bench, runCounter(lease))).spent, 4, "a call was counted twice, or never")
      }
    }),
}

export const callEndCases: ReadonlyArray<Case> = [ends, exact, capped, cutOff]
