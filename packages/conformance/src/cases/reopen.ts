/** D33: a failed run goes on from what it has committed, once for all who ask. */
import assert from "node:assert/strict"
import type { ReopenRow, RunRow } from "@cairn/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Case } from "../Case.js"
import {
  claim,
  claimed,
  commitOf,
  committed,
  connection,
  everything,
  leaseOf,
  liveWorker,
  longLeaseMs,
  moved,
  only,
  rowOf,
  underWay,
  type Bench,
} from "../internal/bench.js"
import { intent } from "../internal/rows.js"

const reopen = (
  { namespace, runId }: Pick<RunRow, "namespace" | "runId">,
  seq: number,
  attempt: Partial<ReopenRow["attempt"]> = {},
): ReopenRow => ({
  namespace,
  runId,
  seq,
  path: "kept",
  attempt: { attempt: 2, kind: "retried", error: '{"name":"Retried"}', output: null, ...attempt },
})

/** A run with a step, an intent that has failed, an attempt and a wait, which has failed at seq 2. */
const failed = (bench: Bench) =>
  Effect.gen(function* () {
    const owner = yield* underWay(bench)
    const { lease } = owner
    const settled = intent(lease, "kept", { state: "failed", outcome: '"declined"' })
    const ends = { status: "failed", failure: '{"kind":"declared"}', output: '"o"', cursor: "kept" } as const
    yield* committed(
      bench,
      commitOf(lease, 1, { steps: [], effects: [settled], closes: ["kept-wait"], run: { ...ends, release: true } }),
    )
    return owner
  })

const pending: Case = {
  law: "D33",
  title: "D33: a failed run that is reopened is pending, with all that it has committed and an attempt more",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* failed(bench)
      const before = yield* everything(bench, lease)
      yield* bench.waitUntil(before.run.updatedAt + 2)
      const given = reopen(lease, 2)
      assert.equal(yield* bench.driver.reopenRun(given), true)
      const after = yield* everything(bench, lease)
      const { updatedAt } = after.run
      const cleared = { status: "pending", failure: null, output: null, updatedAt }
      assert.deepEqual(after.run, { ...before.run, ...cleared })
      assert.ok(updatedAt > before.run.updatedAt)
      const added = { ...given.attempt, path: "kept", retryAt: null, endedAt: updatedAt }
      const { attempts, effects, steps, waits } = before
      assert.deepEqual({ ...after, run: null }, { run: null, steps, effects, waits, attempts: [...attempts, added] })
      const row = only(yield* claim(bench, yield* liveWorker(bench), { runIds: [lease.runId] }))
      assert.deepEqual([row.fence, row.seq], [lease.fence + 1, 2])
      yield* committed(bench, commitOf(leaseOf(row), 2))
    }),
}

const marks: Case = {
  law: "D33",
  title: "D33: wishes to cancel and to pause it do not outlive the failure of a run that is reopened",
  needs: ["exactClock"],
  run: (bench) =>
    Effect.gen(function* () {
      // One after the other: a wish to cancel ends a pause.
      for (const wish of ["cancel", "pause"] as const) {
        const { lease } = yield* claimed(bench)
        yield* bench.elapse(longLeaseMs + 1)
        const worker = yield* liveWorker(bench)
        const taken = leaseOf(only(yield* claim(bench, worker, { runIds: [lease.runId] })))
        if (wish === "cancel") yield* bench.driver.requestCancel(lease.namespace, lease.runId, "why")
        else yield* bench.driver.setPaused(lease.namespace, lease.runId, true)
        yield* moved(bench, taken, 0, { status: "failed", wakeInMs: longLeaseMs })
        const before = yield* rowOf(bench, lease)
        assert.deepEqual([before.recoveries, before.inbox], [1, 1])
        assert.ok((wish === "cancel" ? before.cancelAt : before.pausedAt) !== null, `the wish to ${wish} it is gone`)
        assert.equal(yield* bench.driver.reopenRun(reopen(lease, 1)), true)
        const { updatedAt, ...after } = yield* rowOf(bench, lease)
        const marks = { wakeAt: null, cancelAt: null, cancelReason: null, pausedAt: null, recoveries: 0 }
        assert.deepEqual({ ...after, updatedAt }, { ...before, status: "pending", ...marks, updatedAt })
        assert.equal((yield* claim(bench, worker, { runIds: [lease.runId] })).length, 1)
      }
    }),
}

const refused: Case = {
  law: "D33",
  title: "D33: a run that has not failed, or has failed at another seq, is not reopened and not changed",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      for (const status of ["completed", "canceled", "review", "sleeping", "waiting", "pending"] as const) {
        const { lease } = yield* underWay(bench)
        yield* moved(bench, lease, 1, { status })
        const before = yield* everything(bench, lease)
        assert.equal(yield* bench.driver.reopenRun(reopen(lease, 2)), false, `a run that is ${status}`)
        assert.deepEqual(yield* everything(bench, lease), before, `a run that is ${status}`)
      }
      const { lease } = yield* failed(bench)
      const before = yield* everything(bench, lease)
      for (const seq of [1, 3]) assert.equal(yield* bench.driver.reopenRun(reopen(lease, seq)), false)
      assert.equal(yield* bench.driver.reopenRun(reopen({ ...lease, runId: `${lease.runId}-` }, 2)), false)
      assert.deepEqual(yield* everything(bench, lease), before)
    }),
}

const once: Case = {
  law: "D33",
  title: "D33: of twenty who reopen a run at once one does, and one attempt is added",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* failed(bench)
      const results = yield* Effect.forEach(
        Array.from({ length: 20 }),
        (_, n) => connection(bench, n).reopenRun(reopen(lease, 2, { output: `"${n}"` })),
        { concurrency: "unbounded" },
      )
      assert.equal(results.filter((done) => done).length, 1)
      const { attempts } = yield* everything(bench, lease)
      assert.deepEqual(
        attempts.map(({ attempt, output }) => [attempt, output]),
        [
          [1, null],
          [2, `"${results.indexOf(true)}"`],
        ],
      )
    }),
}

const diesHalfway: Case = {
  law: "D33",
  title: "D33: a reopenRun that dies after any of its statements has done all of it, or nothing",
  needs: ["failAfter"],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* failed(bench)
      const before = yield* everything(bench, lease)
      for (let statements = 0; statements < 200; statements++) {
        yield* bench.store.failAfter!(statements)
        const exit = yield* Effect.exit(bench.driver.reopenRun(reopen(lease, 2)))
        const after = yield* everything(bench, lease)
        if (after.run.status === "pending") {
          assert.equal(after.attempts.length, 2, "the run is reopened without its attempt")
          return assert.ok(statements > 0, "the fault never struck: the hook does not reach the driver")
        }
        assert.ok(Exit.isFailure(exit), "a call that did nothing succeeded")
        assert.deepEqual(after, before, "a call that failed has changed the run")
      }
      assert.fail("the call still failed after 200 statements")
    }),
}

export const reopenCases: ReadonlyArray<Case> = [pending, marks, refused, once, diesHalfway]
