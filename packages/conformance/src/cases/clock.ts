/** D8: the store's clock, and what it means for a worker. */
import assert from "node:assert/strict"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Case } from "../Case.js"
import {
  abandoned,
  claim,
  claimed,
  claimedBriefly,
  commitOf,
  committed,
  create,
  effectOf,
  everything,
  fresh,
  leaseOf,
  liveWorker,
  longLeaseMs,
  only,
  rowOf,
  shortLeaseMs,
  type Bench,
} from "../internal/bench.js"
import { attempt, intent, step } from "../internal/rows.js"

const assertWithin = (what: string, at: number | null, from: number, to: number): void => {
  assert.ok(at !== null && Number.isSafeInteger(at), `${what} is not a whole number of milliseconds: ${at}`)
  assert.ok(at >= from && at <= to, `${what} is ${at}, outside the store's clock from ${from} to ${to}`)
}

/** Runs every call that stamps a time, and checks each against the clock that is read around it by `now`. */
const assertStamps = (bench: Bench, now: Effect.Effect<number, unknown>) =>
  Effect.gen(function* () {
    const timed = <A>(act: Effect.Effect<A, unknown>) =>
      Effect.gen(function* () {
        // The clock moves between any two calls, so that none can pass with the time of the one before.
        yield* bench.waitUntil((yield* bench.driver.now) + 2)
        const from = yield* now
        const value = yield* act
        return { value, within: [from, yield* now] as const }
      })
    const made = yield* timed(create(bench))
    const { runId } = made.value
    assertWithin("createdAt", made.value.createdAt, ...made.within)
    const worker = fresh("worker")
    const beat = yield* timed(bench.driver.beat(worker, longLeaseMs))
    assertWithin("now of a beat", beat.value.now, ...beat.within)
    assert.equal(beat.value.until, beat.value.now + longLeaseMs, "a lease does not last as long as was asked for")
    const taken = yield* timed(claim(bench, worker, { runIds: [runId] }))
    const row = only(taken.value)
    assertWithin("updatedAt of a claim", row.updatedAt, ...taken.within)
    const lease = { namespace: row.namespace, runId, fence: row.fence, claimToken: row.claimToken ?? "" }
    const write = commitOf(lease, 0, {
      steps: [step("one", 1)],
      effects: [intent(lease, "two"), intent(lease, "three", { state: "failed", outcome: "1" })],
      attempts: [attempt("two", { retryInMs: 3_000 })],
      run: { status: "sleeping", wakeInMs: 2_000 },
    })
    const done = yield* timed(committed(bench, write))
    assertWithin("the time of a commit", done.value, ...done.within)
    const { run, steps, effects, attempts } = yield* everything(bench, row)
    assertWithin("committedAt", steps[0]?.committedAt ?? null, ...done.within)
    for (const effect of effects) assertWithin("intentAt", effect.intentAt, ...done.within)
    assertWithin("settledAt", effects.find(({ path }) => path === "three")?.settledAt ?? null, ...done.within)
    assertWithin("endedAt", attempts[0]?.endedAt ?? null, ...done.within)
    assert.equal(attempts[0]?.retryAt, (attempts[0]?.endedAt ?? 0) + 3_000)
    assert.equal(run.wakeAt, run.updatedAt + 2_000)
    const { namespace } = bench
    const key = { namespace, runId, path: "two", generation: 0, idempotencyKey: "key-of-two" }
    const outcome = { ...key, payloadHash: "payload-hash", claimToken: lease.claimToken, outcome: "1" }
    const told = yield* timed(bench.driver.recordOutcome({ ...outcome, state: "succeeded" }))
    assert.equal(told.value, true)
    assertWithin("settledAt of an outcome", (yield* effectOf(bench, row, "two")).settledAt, ...told.within)
  })

const stamps: Case = {
  law: "D8",
  title: "D8: every time that is stored is the store's clock at that call, in whole milliseconds",
  needs: [],
  run: (bench) => assertStamps(bench, bench.driver.now),
}

const partsOfOne: Case = {
  law: "D8",
  title: "D8: parts of a millisecond are rounded up: nothing is refused for them, and nothing is due early",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      for (const ms of [0.4, 1.5, 10_000.5]) {
        const { row, lease } = yield* claimed(bench)
        const at = yield* committed(
          bench,
          commitOf(lease, 0, {
            steps: [step("done", 1, { durationMs: ms })],
            attempts: [attempt("next", { retryInMs: ms })],
            run: { status: "sleeping", wakeInMs: ms, release: true },
          }),
        )
        const { attempts, run } = yield* everything(bench, row)
        assert.deepEqual([run.wakeAt, attempts[0]?.retryAt], [at + Math.ceil(ms), at + Math.ceil(ms)])
      }
      const { now, until } = yield* bench.driver.beat(fresh("worker"), 10_000.5)
      assert.equal(until, now + 10_001)
    }),
}

const ownClock: Case = {
  law: "D8",
  title: "D8: the clock of the calling process counts for nothing, be it a day behind or ahead",
  needs: ["ownClock"],
  run: (bench) =>
    Effect.gen(function* () {
      const clock = yield* Effect.clock
      const real = yield* bench.driver.now
      for (const off of [-86_400_000, 86_400_000]) {
        const wrong: Clock.Clock = {
          [Clock.ClockTypeId]: Clock.ClockTypeId,
          sleep: clock.sleep,
          currentTimeMillis: Effect.succeed(real + off),
          currentTimeNanos: Effect.succeed(BigInt(real + off) * 1_000_000n),
          unsafeCurrentTimeMillis: () => real + off,
          unsafeCurrentTimeNanos: () => BigInt(real + off) * 1_000_000n,
        }
        const seen = yield* Effect.withClock(bench.driver.now, wrong)
        assert.ok(Math.abs(seen - real) < 3_600_000, "`now` is the calling process's clock")
        yield* Effect.withClock(assertStamps(bench, bench.driver.now), wrong)
      }
    }),
}

const noLease: Case = {
  law: "D8",
  title: "D8: a worker that never beat, or was released, claims nothing until it beats",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const run = yield* create(bench)
      const worker = fresh("worker")
      assert.deepEqual(yield* claim(bench, worker), [], "a worker that never beat got a run")
      yield* liveWorker(bench, worker)
      yield* bench.driver.releaseWorker(worker)
      assert.deepEqual(yield* claim(bench, worker), [], "a released worker got a run")
      assert.equal((yield* rowOf(bench, run)).fence, 0)
      yield* liveWorker(bench, worker)
      only(yield* claim(bench, worker))
    }),
}

const endedLease: Case = {
  law: "D8",
  title: "D8: a worker whose own lease has ended claims nothing until it beats again",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const run = yield* create(bench)
      const worker = fresh("worker")
      const { until } = yield* bench.driver.beat(worker, shortLeaseMs)
      yield* bench.waitUntil(until)
      assert.deepEqual(yield* claim(bench, worker), [])
      assert.deepEqual(yield* rowOf(bench, run), run)
      yield* liveWorker(bench, worker)
      only(yield* claim(bench, worker))
    }),
}

const lastMillisecond: Case = {
  law: "D8",
  title: "D8: a worker claims in the last millisecond of its lease, and not at its end",
  needs: ["exactClock"],
  run: (bench) =>
    Effect.gen(function* () {
      yield* create(bench)
      yield* create(bench)
      const worker = fresh("worker")
      yield* bench.driver.beat(worker, 50)
      yield* bench.elapse(49)
      only(yield* claim(bench, worker, { limit: 1 }))
      yield* bench.elapse(1)
      assert.deepEqual(yield* claim(bench, worker), [])
    }),
}

const noRunTouched: Case = {
  law: "D8",
  title: "D8: a beat touches no run row",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { worker, row } = yield* claimed(bench)
      const idle = yield* create(bench)
      yield* bench.waitUntil((yield* bench.driver.now) + 2)
      yield* liveWorker(bench, worker)
      assert.deepEqual(yield* rowOf(bench, row), row)
      assert.deepEqual(yield* rowOf(bench, idle), idle)
    }),
}

const otherLeases: Case = {
  law: "D8",
  title: "D8: the beat of one worker prolongs no other worker's lease",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const run = yield* create(bench)
      const owner = yield* claimedBriefly(bench, [run.runId])
      const robber = yield* liveWorker(bench)
      yield* bench.waitUntil(owner.until)
      assert.equal(only(yield* claim(bench, robber)).previousUntil, owner.until)
    }),
}

const lastBeat: Case = {
  law: "D8",
  title: "D8: the last beat says until when a lease lasts, also when an earlier one went further",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { worker, row } = yield* claimed(bench)
      const { until } = yield* bench.driver.beat(worker, shortLeaseMs)
      yield* bench.waitUntil(until)
      const taken = only(yield* claim(bench, yield* liveWorker(bench)))
      assert.deepEqual([taken.runId, taken.previousUntil], [row.runId, until])
    }),
}

const beatAgain: Case = {
  law: "D8",
  title: "D8: an owner that beats again before anybody took its run holds it again",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { worker, row, lease } = yield* abandoned(bench)
      const beat = yield* bench.driver.beat(worker, longLeaseMs)
      assert.deepEqual(beat.leases.map(leaseOf), [lease])
      assert.deepEqual(yield* claim(bench, yield* liveWorker(bench)), [])
      assert.deepEqual(yield* rowOf(bench, row), row)
    }),
}

export const clockCases: ReadonlyArray<Case> = [
  stamps,
  partsOfOne,
  ownClock,
  noLease,
  endedLease,
  lastMillisecond,
  noRunTouched,
  otherLeases,
  lastBeat,
  beatAgain,
]
