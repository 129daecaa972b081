/** D12, and the leases that a beat tells of. */
import assert from "node:assert/strict"
import type { RunRow } from "@cairn/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Case } from "../Case.js"
import {
  abandoned,
  assertRefused,
  claim,
  commitOf,
  committed,
  create,
  everything,
  fresh,
  leaseOf,
  liveWorker,
  longLeaseMs,
  loud,
  moved,
  only,
  rowOf,
  underWay,
  type Bench,
} from "../internal/bench.js"

const leasesOf = (bench: Bench, worker: string) =>
  Effect.map(bench.driver.beat(worker, longLeaseMs), ({ leases }) =>
    leases.map(leaseOf).sort((a, b) => (a.claimToken < b.claimToken ? -1 : 1)),
  )

/** A live worker still claims: its lease was not ended by what failed. */
const liveWorkerIsUntouched = (bench: Bench, worker: string) =>
  Effect.gen(function* () {
    const probe = yield* create(bench, { namespace: fresh("conformance") })
    const row = only(
      yield* claim(bench, worker, { namespace: probe.namespace }),
      "the claim of a worker that is still live",
    )
    yield* moved(bench, leaseOf(row), 0, { status: "completed" })
  })

const beatTells: Case = {
  law: "D12",
  title: "D12: a beat gives exactly the leases that the worker holds, in every namespace",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const other = fresh("conformance")
      const worker = yield* liveWorker(bench)
      const beside = yield* liveWorker(bench)
      assert.deepEqual(yield* leasesOf(bench, worker), [])
      yield* create(bench)
      yield* create(bench)
      yield* create(bench, { namespace: other })
      const first = leaseOf(only(yield* claim(bench, worker, { limit: 1, claimToken: `1-${fresh("token")}` })))
      only(yield* claim(bench, beside))
      const second = leaseOf(only(yield* claim(bench, worker, { namespace: other, claimToken: `2-${fresh("token")}` })))
      assert.deepEqual(yield* leasesOf(bench, worker), [first, second])
      assert.equal((yield* leasesOf(bench, beside)).length, 1)
      yield* moved(bench, first, 0, { status: "completed" })
      assert.deepEqual(yield* leasesOf(bench, worker), [second])
      yield* committed(bench, commitOf(second, 0))
      assert.deepEqual(yield* leasesOf(bench, worker), [second])
    }),
}

const robbedWorker: Case = {
  law: "D12",
  title: "D12: a worker whose run was taken over is not told that it holds it",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const old = yield* abandoned(bench)
      const robber = yield* liveWorker(bench)
      const taken = leaseOf(only(yield* claim(bench, robber)))
      assert.deepEqual(yield* leasesOf(bench, old.worker), [])
      assert.deepEqual(yield* leasesOf(bench, robber), [taken])
    }),
}

const givesUp: Case = {
  law: "D12",
  title: "D12: releaseWorker makes exactly the worker's runs pending, with seq, fence and all else as they were",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const mine = yield* underWay(bench)
      const elsewhere = yield* create(bench, { namespace: fresh("conformance") })
      const { worker } = mine
      const second = only(yield* claim(bench, worker, { namespace: elsewhere.namespace }))
      const asleep = yield* create(bench)
      const slept = leaseOf(only(yield* claim(bench, worker, { runIds: [asleep.runId] })))
      yield* moved(bench, slept, 0, { status: "sleeping", wakeInMs: longLeaseMs })
      const idle = yield* create(bench)
      const others = yield* underWay(bench, { runId: `other-${fresh("run")}` })
      const untouched = Effect.forEach([asleep, idle, others.row], (run) => everything(bench, run))
      const before = { own: yield* everything(bench, mine.row), rest: yield* untouched }

      yield* bench.driver.releaseWorker(worker)

      const after = yield* everything(bench, mine.row)
      const given = ({ updatedAt, previousUntil }: RunRow) => {
        const changed = { status: "pending", leaseOwner: null, claimToken: null } as const
        return { ...changed, updatedAt, previousUntil, interruptions: 1 }
      }
      assert.deepEqual(after, { ...before.own, run: { ...before.own.run, ...given(after.run) } })
      const far = yield* rowOf(bench, second)
      assert.deepEqual(far, { ...second, ...given(far) })
      assert.deepEqual(yield* untouched, before.rest, "a run that the worker did not hold was changed")
      yield* committed(bench, commitOf(others.lease, 1))
    }),
}

const cutOff: Case = {
  law: "D12",
  title: "D12: a releaseWorker stamps previousUntil of runs that were running with its own time",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      // One whose earlier owner was robbed: the later of the two times is the one to wait for.
      const robbed = yield* abandoned(bench)
      const { runId } = yield* create(bench)
      const worker = yield* liveWorker(bench)
      assert.equal((yield* claim(bench, worker, { runIds: [robbed.row.runId, runId] })).length, 2)
      yield* bench.waitUntil((yield* bench.driver.now) + 2)
      const from = yield* bench.driver.now
      yield* bench.driver.releaseWorker(worker)
      const to = yield* bench.driver.now
      for (const id of [robbed.row.runId, runId]) {
        const { status, previousUntil } = yield* rowOf(bench, { namespace: bench.namespace, runId: id })
        assert.equal(status, "pending")
        assert.ok(
          previousUntil >= from && previousUntil <= to,
          `previousUntil is ${previousUntil}, and the release was between ${from} and ${to}`,
        )
      }
      const rows = yield* claim(bench, yield* liveWorker(bench))
      assert.equal(rows.length, 2)
      for (const row of rows) assert.ok(row.previousUntil >= from && row.previousUntil <= to)
    }),
}

const merelyHeld: Case = {
  law: "D12",
  title: "D12: a run that the worker held and was not running keeps status, wake time and previousUntil",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const old = yield* abandoned(bench)
      const fresher = yield* create(bench)
      const worker = yield* liveWorker(bench)
      for (const { runId } of [old.row, fresher]) {
        const lease = leaseOf(only(yield* claim(bench, worker, { runIds: [runId] })))
        yield* moved(bench, lease, 0, { status: "sleeping", wakeInMs: longLeaseMs, release: false })
        const before = yield* rowOf(bench, lease)
        assert.deepEqual([before.leaseOwner, before.previousUntil], [worker, runId === fresher.runId ? 0 : old.until])
        yield* bench.waitUntil((yield* bench.driver.now) + 2)
        yield* bench.driver.releaseWorker(worker)
        const after = yield* rowOf(bench, lease)
        assert.deepEqual(after, { ...before, leaseOwner: null, claimToken: null, updatedAt: after.updatedAt })
        yield* liveWorker(bench, worker)
      }
    }),
}

const endsLease: Case = {
  law: "D12",
  title: "D12: a released worker holds nothing and can commit nothing, and its runs are due at once",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { worker, row, lease } = yield* underWay(bench)
      yield* bench.driver.releaseWorker(worker)
      yield* assertRefused(bench, loud(lease, 1), "a released worker's lease")
      assert.deepEqual(yield* claim(bench, worker), [], "a released worker still claims")
      const next = only(yield* claim(bench, yield* liveWorker(bench)))
      assert.deepEqual([next.runId, next.seq, next.fence], [row.runId, 1, lease.fence + 1])
      assert.deepEqual(yield* leasesOf(bench, worker), [])
    }),
}

const unknown: Case = {
  law: "D12",
  title: "D12: releasing a worker that nobody knows, or twice, is nothing",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { worker, row } = yield* underWay(bench)
      yield* bench.driver.releaseWorker(fresh("worker"))
      assert.equal((yield* rowOf(bench, row)).leaseOwner, worker)
      yield* bench.driver.releaseWorker(worker)
      const before = yield* rowOf(bench, row)
      yield* bench.driver.releaseWorker(worker)
      assert.deepEqual(yield* rowOf(bench, row), before)
    }),
}

const diesBetween: Case = {
  law: "D12",
  title: "D12: a releaseWorker that dies after any of its statements gives up everything or nothing",
  needs: ["failAfter"],
  run: (bench) =>
    Effect.gen(function* () {
      const { worker, row } = yield* underWay(bench)
      yield* create(bench)
      const second = only(yield* claim(bench, worker))
      const spare = yield* create(bench, { namespace: fresh("conformance") })
      const owners = Effect.forEach([row, second], (run) =>
        Effect.map(rowOf(bench, run), ({ leaseOwner }) => leaseOwner),
      )
      for (let statements = 0; statements < 200; statements++) {
        yield* bench.store.failAfter!(statements)
        const exit = yield* Effect.exit(bench.driver.releaseWorker(worker))
        const after = yield* owners
        if (Exit.isSuccess(exit) || after.includes(null)) {
          assert.deepEqual(after, [null, null], "a release that died gave up a part of the worker's runs")
          const more = yield* claim(bench, worker, { namespace: spare.namespace })
          assert.deepEqual(more, [], "a release that died gave up the runs and left the lease")
          return assert.ok(statements > 0, "the fault never struck: the hook does not reach the driver")
        }
        assert.deepEqual(after, [worker, worker])
        yield* liveWorkerIsUntouched(bench, worker)
      }
      assert.fail("the release still failed after 200 statements")
    }),
}

export const workerCases: ReadonlyArray<Case> = [
  beatTells,
  robbedWorker,
  givesUp,
  cutOff,
  merelyHeld,
  endsLease,
  unknown,
  diesBetween,
]
