/** D25: a wish to cancel is marked once, ends every rest, and takes nothing from who owns the run. */
import assert from "node:assert/strict"
import type { RunPatch, RunRow } from "@cairn/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Case } from "../Case.js"
import {
  claim,
  claimed,
  commitOf,
  committed,
  connection,
  create,
  leaseOf,
  liveWorker,
  longLeaseMs,
  moved,
  only,
  rowOf,
  signal,
  type Bench,
} from "../internal/bench.js"

const cancel = (bench: Bench, { namespace, runId }: Pick<RunRow, "namespace" | "runId">, reason: string | null) =>
  bench.driver.requestCancel(namespace, runId, reason)

const marks: Case = {
  law: "D25",
  title: "D25: a cancel marks a running run with the store's time, and its owner goes on under seq and fence",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease, row, worker } = yield* claimed(bench)
      const from = yield* bench.driver.now
      assert.equal(yield* cancel(bench, lease, "not  'needed' é"), "Requested")
      const after = yield* rowOf(bench, lease)
      assert.deepEqual(after, { ...row, inbox: 1, cancelAt: after.cancelAt, cancelReason: "not  'needed' é" })
      const at = after.cancelAt ?? 0
      assert.ok(at >= from && at <= (yield* bench.driver.now), "cancelAt is not the store's clock")
      assert.equal((yield* bench.driver.beat(worker, longLeaseMs)).leases[0]?.inbox, 1, "a beat does not tell of it")
      yield* committed(bench, commitOf(lease, 0, { run: { seenInbox: 1 } }))
      const { cancelAt, cancelReason } = yield* rowOf(bench, lease)
      assert.deepEqual([cancelAt, cancelReason], [at, "not  'needed' é"], "a commit forgot that it is to be canceled")
    }),
}

const once: Case = {
  law: "D25",
  title: "D25: of twenty cancels one is the first, and its reason stays",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const run = yield* create(bench)
      const reasons = Array.from({ length: 20 }, (_, n) => `reason ${n}`)
      const results = yield* Effect.forEach(
        reasons,
        (reason, n) => connection(bench, n).requestCancel(run.namespace, run.runId, reason),
        { concurrency: "unbounded" },
      )
      assert.equal(results.filter((result) => result === "Requested").length, 1)
      assert.equal(results.filter((result) => result === "Known").length, 19)
      const row = yield* rowOf(bench, run)
      assert.deepEqual([row.inbox, row.cancelReason], [1, reasons[results.indexOf("Requested")]])
      assert.equal(yield* cancel(bench, run, null), "Known")
      assert.deepEqual(yield* rowOf(bench, run), row)
      const unexplained = yield* create(bench)
      assert.equal(yield* cancel(bench, unexplained, null), "Requested")
      assert.equal((yield* rowOf(bench, unexplained)).cancelReason, null)
    }),
}

type Rest = readonly [what: string, run: Partial<RunPatch>]

const rests: ReadonlyArray<Rest> = [
  ["waits", { status: "waiting" }],
  ["waits until some time", { status: "waiting", wakeInMs: longLeaseMs }],
  ["sleeps", { status: "sleeping", wakeInMs: longLeaseMs }],
  ["is in review as its workflow says", { status: "review" }],
  ["is parked for a fault", { status: "review", parked: '{"reason":"OutcomeUnknown"}' }],
]

const ends: Case = {
  law: "D25",
  title: "D25: a cancel ends every rest: the run is pending, and until now an operation of it may be under way",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const worker = yield* liveWorker(bench)
      for (const [what, run] of rests) {
        const { lease } = yield* claimed(bench)
        yield* moved(bench, lease, 0, { ...run, failure: '{"kind":"undeclared"}', cursor: "kept" })
        const before = yield* rowOf(bench, lease)
        assert.equal(yield* cancel(bench, lease, null), "Requested")
        const after = yield* rowOf(bench, lease)
        const { cancelAt } = after
        const woken = { status: "pending", wakeAt: null, parked: null, previousUntil: cancelAt, updatedAt: cancelAt }
        assert.deepEqual(after, { ...before, inbox: 1, cancelAt, ...woken }, `a cancel of a run that ${what}`)
        const next = only(yield* claim(bench, worker, { runIds: [lease.runId] }), `the claim of a run that ${what}`)
        assert.deepEqual([next.fence, next.cancelAt, next.previousUntil], [lease.fence + 1, cancelAt, cancelAt])
      }
    }),
}

const stays: Case = {
  law: "D25",
  title: "D25: a cancel of a pending run leaves its place among those that are due",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const first = yield* create(bench)
      yield* bench.waitUntil(first.updatedAt + 2)
      const second = yield* create(bench)
      yield* bench.waitUntil(second.updatedAt + 2)
      yield* cancel(bench, first, null)
      yield* bench.driver.send(signal(bench, { runId: first.runId }))
      const after = yield* rowOf(bench, first)
      assert.deepEqual(after, { ...first, inbox: 2, cancelAt: after.cancelAt })
      const due = yield* claim(bench, yield* liveWorker(bench), { limit: 1 })
      assert.deepEqual(
        due.map(({ runId }) => runId),
        [first.runId],
      )
    }),
}

const final: Case = {
  law: "D25",
  title: "D25: a run that is final is not to be canceled any more, whether it was before or not",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      for (const status of ["completed", "failed", "canceled"] as const) {
        for (const wasAsked of [false, true]) {
          const { lease } = yield* claimed(bench)
          if (wasAsked) yield* cancel(bench, lease, "early")
          yield* moved(bench, lease, 0, { status })
          const before = yield* rowOf(bench, lease)
          assert.equal(yield* cancel(bench, lease, "late"), "Ended")
          assert.deepEqual(yield* rowOf(bench, lease), before)
        }
      }
    }),
}

const reviewed: Case = {
  law: "D25",
  title:
    "D25: a cancel of a run in review forgets its recoveries, as an unpark does, and that of a sleeping one does not",
  needs: ["exactClock"],
  run: (bench) =>
    Effect.gen(function* () {
      for (const [status, recoveries] of [
        ["review", 0],
        ["sleeping", 1],
      ] as const) {
        const { lease } = yield* claimed(bench)
        yield* bench.elapse(longLeaseMs + 1)
        const taken = only(yield* claim(bench, yield* liveWorker(bench), { runIds: [lease.runId] }))
        assert.equal(taken.recoveries, 1)
        yield* moved(bench, leaseOf(taken), 0, { status, wakeInMs: status === "review" ? null : longLeaseMs })
        yield* cancel(bench, lease, null)
        assert.equal((yield* rowOf(bench, lease)).recoveries, recoveries)
      }
    }),
}

const diesHalfway: Case = {
  law: "D25",
  title: "D25: a cancel that dies after any of its statements has marked the run and ended its rest, or done nothing",
  needs: ["failAfter"],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* claimed(bench)
      yield* moved(bench, lease, 0, { status: "sleeping", wakeInMs: longLeaseMs })
      const before = yield* rowOf(bench, lease)
      for (let statements = 0; statements < 200; statements++) {
        yield* bench.store.failAfter!(statements)
        const exit = yield* Effect.exit(cancel(bench, lease, "once"))
        const row = yield* rowOf(bench, lease)
        if (row.cancelAt !== null) {
          assert.deepEqual([row.inbox, row.status, row.cancelReason], [1, "pending", "once"])
          return assert.ok(statements > 0, "the fault never struck: the hook does not reach the driver")
        }
        assert.ok(Exit.isFailure(exit), "a cancel that did nothing succeeded")
        assert.deepEqual(row, before, "a cancel that failed has changed the run")
      }
      assert.fail("the cancel still failed after 200 statements")
    }),
}

export const cancelCases: ReadonlyArray<Case> = [marks, once, ends, stays, final, reviewed, diesHalfway]
