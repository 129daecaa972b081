/** D15 and D16: what a takeover leaves behind, and what progress clears. */
import assert from "node:assert/strict"
import * as Effect from "effect/Effect"
import type { Case } from "../Case.js"
import {
  abandoned,
  assertRefused,
  claim,
  claimed,
  claimedBriefly,
  commitOf,
  committed,
  create,
  leaseOf,
  liveWorker,
  loud,
  moved,
  only,
  rowOf,
} from "../internal/bench.js"
import { attempt, intent } from "../internal/rows.js"

const takeover: Case = {
  law: "D15",
  title: "D15: a takeover keeps when the unreleased lease ended and counts as a recovery, each one anew",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const run = yield* create(bench)
      const first = yield* claimedBriefly(bench, [run.runId])
      const firstRow = only(first.rows)
      assert.deepEqual([firstRow.previousUntil, firstRow.recoveries], [0, 0], "a first claim counted as a takeover")
      yield* bench.waitUntil(first.until + 5)
      const second = yield* claimedBriefly(bench, [run.runId])
      const secondRow = only(second.rows)
      assert.deepEqual([secondRow.previousUntil, secondRow.recoveries], [first.until, 1])
      yield* bench.waitUntil(second.until + 5)
      const third = only(yield* claim(bench, yield* liveWorker(bench)))
      assert.deepEqual([third.previousUntil, third.recoveries, third.fence], [second.until, 2, 3])
      assert.deepEqual(yield* rowOf(bench, run), { ...third })
    }),
}

const released: Case = {
  law: "D15",
  title: "D15: a run that was released is claimed without a recovery, also when its last owner's lease has ended since",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const byCommit = yield* create(bench)
      const byWorker = yield* create(bench)
      const brief = yield* claimedBriefly(bench, [byCommit.runId, byWorker.runId])
      const lease = brief.leases.find(({ runId }) => runId === byCommit.runId)
      yield* moved(bench, lease!, 0, { status: "sleeping", wakeInMs: 0 })
      yield* bench.driver.releaseWorker(brief.worker)
      const { previousUntil } = yield* rowOf(bench, byWorker)
      yield* bench.waitUntil(brief.until + 1)
      const rows = yield* claim(bench, yield* liveWorker(bench))
      assert.equal(rows.length, 2)
      for (const row of rows) {
        const kept = row.runId === byCommit.runId ? 0 : previousUntil
        assert.deepEqual([row.previousUntil, row.recoveries, row.fence], [kept, 0, 2])
      }
    }),
}

const keptUntil: Case = {
  law: "D15",
  title: "D15: a commit that releases leaves what an earlier takeover kept, for the next owner to wait for",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const old = yield* abandoned(bench)
      const taken = leaseOf(only(yield* claim(bench, yield* liveWorker(bench))))
      yield* moved(bench, taken, 0, { status: "pending" })
      const next = only(yield* claim(bench, yield* liveWorker(bench)))
      assert.deepEqual([next.previousUntil, next.recoveries, next.fence], [old.until, 1, 3])
    }),
}

const progress: Case = {
  law: "D16",
  title: "D16: a commit with a step sets the recoveries to 0, a commit without one and a refused one do not",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const old = yield* abandoned(bench)
      const row = only(yield* claim(bench, yield* liveWorker(bench)))
      const lease = leaseOf(row)
      const recoveries = Effect.map(rowOf(bench, row), (found) => found.recoveries)
      assert.equal(yield* recoveries, 1)
      yield* assertRefused(bench, loud(old.lease, 0), "a replaced owner's lease")
      const open = { steps: [], effects: [intent(lease, "open")], attempts: [attempt("open")] }
      yield* committed(bench, commitOf(lease, 0, open))
      assert.equal(yield* recoveries, 1, "a commit without a step counted as progress")
      yield* committed(bench, commitOf(lease, 1))
      const after = yield* rowOf(bench, row)
      assert.deepEqual([after.recoveries, after.previousUntil], [0, old.until])
    }),
}

const noProgress: Case = {
  law: "D16",
  title: "D16: a run without recoveries stays at 0 through commits of either kind",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease } = yield* claimed(bench)
      yield* committed(bench, commitOf(lease, 0))
      yield* moved(bench, lease, 1, { status: "sleeping", wakeInMs: 0 })
      assert.equal((yield* rowOf(bench, row)).recoveries, 0)
      assert.equal(only(yield* claim(bench, yield* liveWorker(bench))).recoveries, 0)
    }),
}

const unparked: Case = {
  law: "D16",
  title: "D16: an unpark sets the recoveries to 0, and leaves until when an earlier owner may have held the run",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const old = yield* abandoned(bench)
      const taken = only(yield* claim(bench, yield* liveWorker(bench)))
      yield* moved(bench, leaseOf(taken), 0, { status: "review", parked: '{"reason":"TooManyRecoveries"}' })
      assert.equal((yield* rowOf(bench, taken)).recoveries, 1, "a commit that parks counted as progress")
      assert.equal(yield* bench.driver.unpark(taken.namespace, taken.runId), true)
      const after = yield* rowOf(bench, taken)
      assert.deepEqual([after.status, after.parked, after.recoveries], ["pending", null, 0])
      const next = only(yield* claim(bench, yield* liveWorker(bench)))
      assert.deepEqual([next.recoveries, next.previousUntil, next.fence], [0, old.until, 3])
    }),
}

const interrupted: Case = {
  law: "D15",
  title: "D15: each takeover, and each release of a running run, counts as an interruption; nothing sets them back",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const old = yield* abandoned(bench)
      assert.equal(old.row.interruptions, 0)
      const worker = yield* liveWorker(bench)
      const row = only(yield* claim(bench, worker, { runIds: [old.row.runId] }))
      assert.equal(row.interruptions, 1, "a takeover did not count")
      yield* committed(bench, commitOf(leaseOf(row), 0))
      yield* bench.driver.releaseWorker(worker)
      const next = only(yield* claim(bench, yield* liveWorker(bench), { runIds: [row.runId] }))
      assert.equal(next.interruptions, 2, "the release of a running run did not count")
      yield* moved(bench, leaseOf(next), 1, { status: "sleeping", wakeInMs: 0 })
      const { worker: last, row: woken } = yield* Effect.gen(function* () {
        yield* bench.waitUntil((yield* bench.driver.now) + 2)
        const worker = yield* liveWorker(bench)
        return { worker, row: only(yield* claim(bench, worker, { runIds: [row.runId] })) }
      })
      assert.equal(woken.interruptions, 2, "a run that slept was interrupted")
      yield* moved(bench, leaseOf(woken), 2, { status: "waiting" })
      yield* bench.driver.releaseWorker(last)
      assert.equal((yield* bench.driver.findRun(woken.namespace, woken.runId))?.interruptions, 2)
    }),
}

export const recoveryCases: ReadonlyArray<Case> = [
  takeover,
  interrupted,
  released,
  keptUntil,
  progress,
  noProgress,
  unparked,
]
