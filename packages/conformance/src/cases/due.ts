/** D7: which runs can be claimed at all. */
import assert from "node:assert/strict"
import type { RunPatch, RunStatus } from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Case } from "../Case.js"
import {
  abandoned,
  claim,
  claimed,
  claimedBriefly,
  commitOf,
  committed,
  connection,
  create,
  fresh,
  leaseOf,
  liveWorker,
  longLeaseMs,
  moved,
  only,
  request,
  rowOf,
  workflow,
} from "../internal/bench.js"

const count = (length: number): ReadonlyArray<number> => Array.from({ length }, (_, n) => n)

const ids = (rows: ReadonlyArray<{ readonly runId: string }>): ReadonlyArray<string> => rows.map(({ runId }) => runId)

const notBeforeWakeAt: Case = {
  law: "D7",
  title: "D7: a sleeping, waiting or reviewed run is claimed when its time has come, and not before",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const worker = yield* liveWorker(bench)
      const due: Array<string> = []
      let last = 0
      for (const status of ["sleeping", "waiting", "review"] as const) {
        for (const wakeInMs of [20, longLeaseMs, null]) {
          const { row, lease } = yield* claimed(bench)
          const at = yield* moved(bench, lease, 0, { status, wakeInMs })
          assert.equal((yield* rowOf(bench, row)).wakeAt, wakeInMs === null ? null : at + wakeInMs)
          if (wakeInMs !== 20) continue
          due.push(row.runId)
          last = at + 20
        }
      }
      yield* bench.waitUntil(last)
      const rows = yield* claim(bench, worker)
      assert.deepEqual([...ids(rows)].sort(), due.sort())
      assert.ok(rows.every(({ wakeAt, status }) => wakeAt === null && status === "running"))
    }),
}

const wakesAtTheMillisecond: Case = {
  law: "D7",
  title: "D7: a sleeping run is due at its wake time, and not a millisecond earlier",
  needs: ["exactClock"],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* claimed(bench)
      yield* moved(bench, lease, 0, { status: "sleeping", wakeInMs: 50 })
      const worker = yield* liveWorker(bench)
      yield* bench.elapse(49)
      assert.deepEqual(yield* claim(bench, worker), [])
      yield* bench.elapse(1)
      only(yield* claim(bench, worker))
    }),
}

const liveOwner: Case = {
  law: "D7",
  title: "D7: the run of a live owner is claimed by nobody, itself included, whatever the run's status",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const owner = yield* liveWorker(bench)
      const robber = yield* liveWorker(bench)
      const held: Array<string> = []
      for (const status of ["running", "pending", "sleeping", "waiting", "review"] as const) {
        const run = yield* create(bench)
        const row = only(yield* claim(bench, owner, { runIds: [run.runId] }))
        held.push(row.runId)
        if (status !== "running") yield* moved(bench, leaseOf(row), 0, { status, wakeInMs: 0, release: false })
      }
      assert.deepEqual(ids(yield* claim(bench, robber)), [])
      assert.deepEqual(ids(yield* claim(bench, robber, { runIds: held })), [])
      assert.deepEqual(ids(yield* claim(bench, owner)), [])
    }),
}

const prolonged: Case = {
  law: "D7",
  title: "D7: an owner that beats in time keeps its runs past the end of its first lease",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const run = yield* create(bench)
      const { worker, until, rows } = yield* claimedBriefly(bench, [run.runId])
      const beat = yield* bench.driver.beat(worker, longLeaseMs)
      assert.deepEqual(beat.leases.map(leaseOf), rows.map(leaseOf))
      yield* bench.waitUntil(until + 1)
      assert.deepEqual(yield* claim(bench, yield* liveWorker(bench)), [])
      yield* committed(bench, commitOf(leaseOf(only(rows)), 0))
    }),
}

const robbedOnce: Case = {
  law: "D7",
  title: "D7: a run whose owner's lease has ended is taken over by exactly one of ten",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const old = yield* abandoned(bench)
      const workers = yield* Effect.forEach(count(10), () => liveWorker(bench))
      const taken = yield* Effect.forEach(workers, (worker, n) => connection(bench, n).claim(request(bench, worker)), {
        concurrency: "unbounded",
      })
      const row = only(taken.flat(), "ten claims of an abandoned run")
      assert.equal(row.fence, old.row.fence + 1)
      assert.deepEqual(yield* claim(bench, yield* liveWorker(bench)), [])
    }),
}

const endsAtTheMillisecond: Case = {
  law: "D7",
  title: "D7: a lease holds until its last millisecond, and at its end it has ended",
  needs: ["exactClock"],
  run: (bench) =>
    Effect.gen(function* () {
      const run = yield* create(bench)
      const owner = fresh("worker")
      yield* bench.driver.beat(owner, 50)
      only(yield* claim(bench, owner, { runIds: [run.runId] }))
      const robber = yield* liveWorker(bench)
      yield* bench.elapse(49)
      assert.deepEqual(yield* claim(bench, robber), [])
      yield* bench.elapse(1)
      only(yield* claim(bench, robber))
    }),
}

const notClaimable: Case = {
  law: "D7",
  title: "D7: a final or parked run is never claimed, also when its owner's lease ended unreleased",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const statuses: ReadonlyArray<RunStatus> = ["completed", "failed", "canceled", "review"]
      // Parked for a fault there is no time at which it would be due.
      const ended = (status: RunStatus): Partial<RunPatch> =>
        status === "review" ? { status, parked: '{"reason":"asked"}' } : { status, wakeInMs: 0 }
      for (const status of statuses) {
        const { lease } = yield* claimed(bench)
        yield* moved(bench, lease, 0, ended(status))
      }
      const kept: Array<string> = []
      for (let n = 0; n < statuses.length; n++) kept.push((yield* create(bench)).runId)
      const brief = yield* claimedBriefly(bench, kept)
      assert.equal(brief.rows.length, statuses.length)
      for (const [n, status] of statuses.entries()) {
        yield* moved(bench, brief.leases[n]!, 0, { ...ended(status), release: false })
      }
      yield* bench.waitUntil(brief.until + 1)
      const worker = yield* liveWorker(bench)
      assert.deepEqual(ids(yield* claim(bench, worker)), [])
      assert.deepEqual(ids(yield* claim(bench, worker, { runIds: kept })), [])
    }),
}

const byPriority: Case = {
  law: "D7",
  title: "D7: of what is due a higher priority comes first, however it is due, then what has been due longest",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const worker = yield* liveWorker(bench)
      const made: Array<readonly [name: string, runId: string]> = []
      const next = Effect.flatMap(bench.driver.now, (now) => bench.waitUntil(now + 3))
      const make = (name: string, priority: number, rest?: Partial<RunPatch>) =>
        Effect.gen(function* () {
          const { runId } = yield* create(bench, { priority })
          made.push([name, runId])
          if (rest !== undefined) {
            const row = only(yield* claim(bench, worker, { runIds: [runId] }))
            yield* moved(bench, leaseOf(row), 0, rest)
          }
          yield* next
        })
      // Before any of another kind: the order of the kinds must not be that of the runs.
      const held = yield* create(bench, { priority: 4 })
      made.push(["abandoned 4", held.runId])
      const brief = yield* claimedBriefly(bench, [held.runId])
      yield* make("sleeping 0", 0, { status: "sleeping", wakeInMs: 0 })
      yield* make("pending 0", 0)
      yield* make("pending -1", -1)
      yield* make("pending 3", 3)
      yield* make("waiting 3", 3, { status: "waiting", wakeInMs: 0 })
      yield* make("pending 0, later", 0)
      yield* make("review 5", 5, { status: "review", wakeInMs: 0 })
      yield* make("sleeping 3", 3, { status: "sleeping", wakeInMs: 0 })
      yield* make("pending 5", 5)
      yield* bench.waitUntil(brief.until + 1)
      const order = [
        ...["review 5", "pending 5", "abandoned 4", "pending 3", "waiting 3", "sleeping 3"],
        ...["sleeping 0", "pending 0", "pending 0, later", "pending -1"],
      ]
      const nameOf = (runId: string) => made.find(([, id]) => id === runId)?.[0]
      const first = yield* claim(bench, worker, { limit: 1 })
      const among = yield* claim(bench, worker, { runIds: made.map(([, id]) => id), limit: 3 })
      const rest = [yield* claim(bench, worker, { limit: 2 }), yield* claim(bench, worker)].flat()
      assert.deepEqual(ids([...first, ...among, ...rest]).map(nameOf), order)
    }),
}

const asked: Case = {
  law: "D7",
  title: "D7: only the workflows, versions and runs that were asked for are claimed",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const make = (name: string, version: number) =>
        Effect.map(create(bench, { workflow: name, version }), ({ runId }) => runId)
      const a1 = yield* make("a", 1)
      const a2 = yield* make("a", 2)
      const b1 = yield* make("b", 1)
      const b2 = yield* make("b", 2)
      const upper = yield* make("A", 1)
      const like = yield* make("_", 1)
      const worker = yield* liveWorker(bench)
      const ask = (over: Parameters<typeof claim>[2]) =>
        Effect.map(claim(bench, worker, over), (rows) => [...ids(rows)].sort())
      assert.deepEqual(yield* ask({ workflows: [] }), [])
      assert.deepEqual(yield* ask({ workflows: [workflow] }), [])
      assert.deepEqual(yield* ask({ workflows: [{ name: "%", version: 1 }] }), [])
      assert.deepEqual(yield* ask({ workflows: [{ name: "a", version: 1 }], runIds: [] }), [])
      assert.deepEqual(yield* ask({ workflows: [{ name: "a", version: 1 }], runIds: [a2, b1, fresh("run")] }), [])
      assert.deepEqual(yield* ask({ workflows: [{ name: "_", version: 1 }] }), [like])
      const crossed = [
        { name: "a", version: 2 },
        { name: "b", version: 1 },
      ]
      assert.deepEqual(yield* ask({ workflows: crossed, runIds: [a1, a2, b2] }), [a2])
      assert.deepEqual(yield* ask({ workflows: crossed }), [b1])
      assert.deepEqual(yield* ask({ workflows: [{ name: "A", version: 1 }] }), [upper])
      assert.deepEqual(
        yield* ask({
          workflows: [
            { name: "a", version: 1 },
            { name: "b", version: 2 },
          ],
        }),
        [a1, b2].sort(),
      )
    }),
}

const ownNamespace: Case = {
  law: "D7",
  title: "D7: a claim takes runs of its own namespace only, also under the same run id",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const other = fresh("conformance")
      const mine = yield* create(bench)
      const namesake = yield* create(bench, { namespace: other, runId: mine.runId })
      yield* create(bench, { namespace: other })
      const worker = yield* liveWorker(bench)
      const row = only(yield* claim(bench, worker))
      assert.deepEqual([row.namespace, row.runId], [bench.namespace, mine.runId])
      assert.deepEqual(yield* rowOf(bench, namesake), namesake)
      assert.equal((yield* claim(bench, worker, { namespace: other })).length, 2)
    }),
}

const unparked: Case = {
  law: "D7",
  title: "D7: unpark makes a parked run pending and due, and leaves every other run alone",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease } = yield* claimed(bench)
      yield* moved(bench, lease, 0, { status: "review", parked: '{"reason":"OutputInvalid"}' })
      const namesake = yield* claimed(bench, { namespace: fresh("conformance"), runId: row.runId })
      yield* moved(bench, namesake.lease, 0, { status: "review" })
      assert.equal(yield* bench.driver.unpark(row.namespace, row.runId), true)
      const pending = yield* rowOf(bench, row)
      const found = [pending.status, pending.parked, pending.seq, pending.fence, pending.leaseOwner, pending.wakeAt]
      assert.deepEqual(found, ["pending", null, 1, lease.fence, null, null])
      assert.equal((yield* rowOf(bench, namesake.row)).status, "review")
      assert.equal(yield* bench.driver.unpark(row.namespace, row.runId), false, "a pending run was unparked")
      const again = only(yield* claim(bench, yield* liveWorker(bench)))
      assert.equal(again.fence, lease.fence + 1)

      const statuses = ["sleeping", "waiting", "completed", "failed", "canceled", "running"] as const
      for (const [n, status] of statuses.entries()) {
        const other = n === statuses.length - 1 ? { row: again, lease: leaseOf(again) } : yield* claimed(bench)
        if (status !== "running") yield* moved(bench, other.lease, 0, { status, wakeInMs: longLeaseMs })
        const before = yield* rowOf(bench, other.row)
        assert.equal(yield* bench.driver.unpark(before.namespace, before.runId), false, `a ${status} run was unparked`)
        assert.deepEqual(yield* rowOf(bench, before), before)
      }
      assert.equal(yield* bench.driver.unpark(bench.namespace, fresh("missing")), false)
    }),
}

export const dueCases: ReadonlyArray<Case> = [
  notBeforeWakeAt,
  wakesAtTheMillisecond,
  liveOwner,
  prolonged,
  robbedOnce,
  endsAtTheMillisecond,
  notClaimable,
  byPriority,
  asked,
  ownNamespace,
  unparked,
]
