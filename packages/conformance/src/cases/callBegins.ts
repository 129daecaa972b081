/** D39: a paid call begins once, for its owner, and where its budgets have room. */
import assert from "node:assert/strict"
import type { NewCallRow } from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Case } from "../Case.js"
import { abandoned, claimed, connection, everything, fresh, moved } from "../internal/bench.js"
import {
  used,
  callOf,
  endOf,
  listed,
  spendOf,
  runCounter,
  workflowCounter,
  dayCounter,
  unlimited,
  begun,
} from "../internal/paidCalls.js"

const begins: Case = {
  law: "D39",
  title: "D39: a call that begins is there with all that it was given, is counted once, and reserves what it may cost",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* claimed(bench)
      const counters = unlimited(runCounter(lease), workflowCounter, dayCounter)
      const before = yield* everything(bench, lease)
      const from = yield* bench.driver.now
      const call = yield* begun(
        bench,
        callOf(lease, { atMost: 700, counters, path: "a[1]/x", step: "a[]/x", scope: "a[1]" }),
      )
      yield* begun(bench, call)
      const [row, ...others] = yield* listed(bench, lease)
      assert.deepEqual(others, [], "a call that was begun twice under its id is there twice")
      assert.ok(row !== undefined && row.startedAt >= from)
      const { counters: _, end: __, namespace: ___, ...given } = call
      const { startedAt, ...rest } = row
      assert.deepEqual(rest, {
        ...given,
        ...used(null),
        state: "begun",
        endedAt: null,
        workflow: "invoice",
        outcome: "open",
        settled: "begun",
        saved: 0,
      })
      for (const counter of counters)
        assert.deepEqual(yield* spendOf(bench, counter), { spent: 0, reserved: 700, calls: 1, unknown: 0 })
      assert.deepEqual(yield* everything(bench, lease), before, "the beginning of a call changed its run")
      assert.ok(startedAt <= (yield* bench.driver.now))
    }),
}

const owners: Case = {
  law: "D39",
  title: "D39: only the owner's call begins; what a call has cost that was made already is written whoever made it",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* claimed(bench)
      const counters = unlimited(runCounter(lease))
      const foreign: ReadonlyArray<Partial<NewCallRow>> = [
        { fence: lease.fence + 1 },
        { fence: lease.fence - 1 },
        { claimToken: fresh("token") },
        { runId: fresh("run") },
      ]
      for (const over of foreign) {
        const result = yield* bench.driver.beginCall(callOf(lease, { counters, atMost: 5, ...over }))
        assert.equal(result._tag, "Lost", `a call of ${JSON.stringify(over)} was ${result._tag}`)
      }
      yield* moved(bench, lease, 0, { status: "waiting" })
      const released = yield* bench.driver.beginCall(callOf(lease, { counters, atMost: 5 }))
      assert.equal(released._tag, "Lost", "the call of a run that nobody holds began")
      assert.deepEqual(yield* listed(bench, lease), [])
      assert.deepEqual(yield* spendOf(bench, runCounter(lease)), { spent: 0, reserved: 0, calls: 0, unknown: 0 })
      yield* begun(
        bench,
        callOf(lease, { counters, end: used(40, { inputTokens: 3, outputTokens: 4 }), claimToken: "t" }),
      )
      yield* begun(bench, callOf(lease, { counters, end: used(null) }))
      const rows = yield* listed(bench, lease)
      assert.deepEqual(rows.map(({ state }) => state).sort(), ["known", "unknown"])
      assert.ok(rows.every(({ endedAt, startedAt }) => endedAt === startedAt))
      assert.deepEqual(yield* spendOf(bench, runCounter(lease)), { spent: 40, reserved: 0, calls: 2, unknown: 1 })
    }),
}

const budgets: Case = {
  law: "D39",
  title: "D39: a call that has no room in one of its counters is refused, and changes nothing",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* claimed(bench)
      const run = runCounter(lease)
      const limited = [
        { ...run, limit: 100 },
        { ...dayCounter, limit: 1_000 },
      ]
      yield* begun(bench, callOf(lease, { counters: limited, end: used(60) }))
      yield* begun(bench, callOf(lease, { counters: limited, atMost: 40 }))
      const refused = { _tag: "Refused", counter: run, limit: 100, spent: 60, reserved: 40, waiting: 40 }
      for (const atMost of [1, 0, null]) {
        const result = yield* bench.driver.beginCall(callOf(lease, { counters: limited, atMost }))
        assert.deepEqual(result, refused, "nothing was left, and a call was not refused as it should")
      }
      const roomier = limited.map((counter) => ({ ...counter, limit: counter.limit + 10 }))
      const tooMuch = yield* bench.driver.beginCall(callOf(lease, { counters: roomier, atMost: 11 }))
      assert.deepEqual(tooMuch, { ...refused, limit: 110 })
      assert.equal((yield* listed(bench, lease)).length, 2, "a refused call was written")
      assert.deepEqual(yield* spendOf(bench, run), { spent: 60, reserved: 40, calls: 2, unknown: 0 })
      assert.deepEqual(yield* spendOf(bench, dayCounter), { spent: 60, reserved: 40, calls: 2, unknown: 0 })
      yield* begun(bench, callOf(lease, { counters: roomier, atMost: 10 }))
      const other = yield* claimed(bench)
      const shared = [
        { ...runCounter(other.lease), limit: null },
        { ...dayCounter, limit: 110 },
      ]
      const day = yield* bench.driver.beginCall(callOf(other.lease, { counters: shared, atMost: 1 }))
      assert.deepEqual(day, { ...refused, counter: dayCounter, limit: 110, reserved: 50, waiting: 50 })
      assert.deepEqual(yield* spendOf(bench, runCounter(other.lease)), { spent: 0, reserved: 0, calls: 0, unknown: 0 })
    }),
}

const raced: Case = {
  law: "D39",
  title: "D39: of twenty calls that begin at once no more do than there is room for",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const owners = yield* Effect.forEach(Array.from({ length: 20 }), () => claimed(bench))
      const results = yield* Effect.forEach(
        owners.map(({ lease }, n) => [lease, n] as const),
        ([lease, n]) =>
          connection(bench, n).beginCall(
            callOf(lease, {
              atMost: 3,
              counters: [
                { ...dayCounter, limit: 10 },
                { ...workflowCounter, limit: 1_000 },
                { ...runCounter(lease), limit: 100 },
              ],
            }),
          ),
        { concurrency: "unbounded" },
      )
      const tags = results.map(({ _tag }) => _tag)
      assert.deepEqual(
        [tags.filter((tag) => tag === "Begun").length, tags.filter((tag) => tag === "Refused").length],
        [3, 17],
      )
      assert.deepEqual(yield* spendOf(bench, dayCounter), { spent: 0, reserved: 9, calls: 3, unknown: 0 })
    }),
}

const waits: Case = {
  law: "D39",
  title:
    "D39: a refusal tells how much of what is reserved is for calls that may still be under way, children's included",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const parent = yield* claimed(bench)
      const child = yield* claimed(bench, { parentRunId: parent.row.runId, parentPath: "child" })
      const crashed = yield* abandoned(bench, { parentRunId: child.row.runId, parentPath: "child" })
      const top = runCounter(parent.lease)
      const counters = unlimited(top)
      const kept = yield* begun(bench, callOf(child.lease, { counters, atMost: 20 }))
      yield* begun(bench, callOf(parent.lease, { counters, atMost: 1 }))
      yield* begun(bench, callOf(crashed.lease, { counters, atMost: 300 }))
      const ask = bench.driver.beginCall(callOf(parent.lease, { counters: [{ ...top, limit: 321 }], atMost: 5 }))
      const refused = { _tag: "Refused", counter: top, limit: 321, spent: 0, reserved: 321, waiting: 21 }
      assert.deepEqual(yield* ask, refused)
      assert.equal(yield* bench.driver.endCall(endOf(kept, used(2))), true)
      yield* moved(bench, parent.lease, 0, { status: "completed" })
      const next = yield* bench.driver.beginCall(callOf(child.lease, { counters: [{ ...top, limit: 303 }], atMost: 5 }))
      assert.deepEqual(next, { ...refused, limit: 303, spent: 2, reserved: 301, waiting: 0 })
    }),
}

export const callBeginCases: ReadonlyArray<Case> = [begins, owners, budgets, raced, waits]
