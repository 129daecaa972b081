/** D23: whatever arrives before a run has come to rest ends its rest. */
import assert from "node:assert/strict"
import type { CommitResult, RunPatch, RunStatus } from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Case } from "../Case.js"
import {
  claim,
  claimed,
  commitOf,
  connection,
  fresh,
  liveWorker,
  longLeaseMs,
  moved,
  rowOf,
  signal,
  type Bench,
} from "../internal/bench.js"

const parked = '{"reason":"OutcomeUnknown"}'

/** What was set, by the commit's own answer and by the row. */
const settled = (bench: Bench, lease: Parameters<typeof commitOf>[0], base: number, run: Partial<RunPatch>) =>
  Effect.gen(function* () {
    const commit = commitOf(lease, base, { steps: [], run: { release: true, cursor: "kept", ...run } })
    const [result] = (yield* bench.driver.commit([commit])) as readonly [CommitResult]
    assert.equal(result._tag, "Committed", "a commit by the owner was refused")
    const row = yield* rowOf(bench, lease)
    assert.equal(result._tag === "Committed" && result.status, row.status, "the committer was told another status")
    return row
  })

type Rest = readonly [what: string, run: Partial<RunPatch>]

const waits: ReadonlyArray<Rest> = [
  ["waits", { status: "waiting" }],
  ["waits until some time", { status: "waiting", wakeInMs: longLeaseMs }],
  ["goes into review as its workflow says", { status: "review" }],
]

const others: ReadonlyArray<Rest> = [
  ["is parked for a fault", { status: "review", parked }],
  ["sleeps", { status: "sleeping", wakeInMs: longLeaseMs }],
  ["ends", { status: "completed" }],
  ["fails", { status: "failed" }],
  ["goes on", { status: "running", release: false }],
]

const beforeParking: Case = {
  law: "D23",
  title: "D23: a run that would wait without having seen a signal is pending instead, and can be claimed at once",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const worker = yield* liveWorker(bench)
      for (const [what, run] of waits) {
        const { lease } = yield* claimed(bench)
        yield* bench.driver.send(signal(bench, { runId: lease.runId }))
        const before = yield* rowOf(bench, lease)
        const row = yield* settled(bench, lease, 0, { ...run, seenInbox: 0 })
        const { previousUntil, updatedAt } = { ...row, previousUntil: before.previousUntil }
        const released = { leaseOwner: null, claimToken: null, seq: 1, cursor: "kept" }
        const expected = {
          ...before,
          ...released,
          status: "pending",
          wakeAt: null,
          parked: null,
          previousUntil,
          updatedAt,
        }
        assert.deepEqual(row, expected, `a run that ${what} after a signal`)
        const claims = yield* claim(bench, worker, { runIds: [lease.runId] })
        assert.equal(claims.length, 1, `a run that ${what} after a signal could not be claimed`)
      }
    }),
}

const seen: Case = {
  law: "D23",
  title: "D23: a run that has seen everything that was sent, or that nobody looked at, comes to rest",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      for (const [what, run] of [...waits, ...others]) {
        for (const seenInbox of [2, null]) {
          const { lease } = yield* claimed(bench)
          yield* bench.driver.send(signal(bench, { runId: lease.runId }))
          yield* bench.driver.requestCancel(lease.namespace, lease.runId, null)
          const row = yield* settled(bench, lease, 0, { ...run, seenInbox })
          assert.equal(row.status, run.status, `a run that ${what} and has seen ${seenInbox} of 2`)
          assert.equal(row.parked, run.parked ?? null)
          assert.equal(row.wakeAt === null, run.wakeInMs === undefined)
        }
      }
    }),
}

const ahead: Case = {
  law: "D23",
  title: "D23: what counts is that the inbox differs from the one that was seen, not that it is greater",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* claimed(bench)
      yield* bench.driver.send(signal(bench, { runId: lease.runId }))
      // As after the database was set back to an earlier state: nobody knows what was seen.
      assert.equal((yield* settled(bench, lease, 0, { status: "waiting", seenInbox: 7 })).status, "pending")
    }),
}

const notByASignal: Case = {
  law: "D23",
  title: "D23: a signal that was not seen keeps no run from sleeping, ending or being parked for a fault",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      for (const [what, run] of others) {
        const { lease } = yield* claimed(bench)
        yield* bench.driver.send(signal(bench, { runId: lease.runId }))
        const row = yield* settled(bench, lease, 0, { ...run, seenInbox: 0 })
        assert.equal(row.status, run.status, `a run that ${what} after a signal`)
        assert.deepEqual([row.parked, row.previousUntil], [run.parked ?? null, 0], `a run that ${what} after a signal`)
      }
    }),
}

const byACancel: Case = {
  law: "D23",
  title: "D23: a cancel that was not seen keeps a run from waiting, sleeping and review, whatever the reason",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const rests: ReadonlyArray<readonly [Rest, RunStatus]> = [
        ...[...waits, ...others.slice(0, 2)].map((rest) => [rest, "pending"] as const),
        ...others.slice(2).map((rest) => [rest, rest[1].status!] as const),
      ]
      for (const [[what, run], status] of rests) {
        const { lease } = yield* claimed(bench)
        yield* bench.driver.requestCancel(lease.namespace, lease.runId, "enough")
        const row = yield* settled(bench, lease, 0, { ...run, seenInbox: 0 })
        assert.equal(row.status, status, `a run that ${what} after a cancel`)
        assert.deepEqual([row.wakeAt, row.parked], [null, null], `a run that ${what} after a cancel`)
        // What it would have waited for may still be under way.
        const until = status === "pending" ? row.updatedAt : 0
        assert.equal(row.previousUntil, until, `until when an operation may be under way of a run that ${what}`)
      }
    }),
}

/** However often the two meet: a signal is there, and its run either has seen it or can be claimed. */
const racing: Case = {
  law: "D23",
  title: "D23: of a signal and a commit that parks, sent at once from two sides, none is lost in forty meetings",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const worker = yield* liveWorker(bench)
      for (let meeting = 0; meeting < 40; meeting++) {
        const { lease } = yield* claimed(bench)
        const [what, run] = waits[meeting % waits.length]!
        const isCancel = meeting % 4 === 3
        const parking = commitOf(lease, 0, { steps: [], run: { release: true, ...run, seenInbox: 0 } })
        const arriving = isCancel
          ? connection(bench, 1).requestCancel(lease.namespace, lease.runId, fresh("reason"))
          : connection(bench, 1).send(signal(bench, { runId: lease.runId }))
        const acts: ReadonlyArray<Effect.Effect<unknown, unknown>> = [bench.driver.commit([parking]), arriving]
        yield* Effect.all(meeting % 2 === 0 ? acts : [...acts].reverse(), { concurrency: "unbounded" })
        const row = yield* rowOf(bench, lease)
        assert.deepEqual([row.inbox, row.seq, row.status], [1, 1, "pending"], `a run that ${what} slept through it`)
        assert.equal((yield* claim(bench, worker, { runIds: [lease.runId] })).length, 1)
      }
    }),
}

const batched: Case = {
  law: "D23",
  title: "D23: of a batch only those runs go on to which something was sent",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const owners = yield* Effect.forEach([0, 1, 2], () => claimed(bench))
      yield* bench.driver.send(signal(bench, { runId: owners[1]!.lease.runId }))
      const results = yield* bench.driver.commit(
        owners.map(({ lease }) =>
          commitOf(lease, 0, { steps: [], run: { status: "waiting", release: true, seenInbox: 0 } }),
        ),
      )
      assert.deepEqual(
        results.map((result) => result._tag === "Committed" && result.status),
        ["waiting", "pending", "waiting"],
      )
    }),
}

const timers: Case = {
  law: "D23",
  title: "D23: a run that waits until some time is due then, and before it by a signal; once only",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const worker = yield* liveWorker(bench)
      const timed = yield* claimed(bench)
      const woken = yield* claimed(bench)
      const runIds = [timed.lease.runId, woken.lease.runId]
      for (const { lease } of [timed, woken]) {
        yield* moved(bench, lease, 0, { status: "waiting", wakeInMs: 300, seenInbox: 0 })
      }
      const { wakeAt } = yield* rowOf(bench, timed.lease)
      yield* bench.driver.send(signal(bench, { runId: woken.lease.runId }))
      const first = yield* claim(bench, worker, { runIds: [woken.lease.runId] })
      assert.equal(first.length, 1, "a signal did not end a wait before its time")
      yield* bench.waitUntil(wakeAt!)
      const due = yield* claim(bench, worker, { runIds })
      assert.deepEqual(
        due.map(({ runId, inbox }) => [runId, inbox]),
        [[timed.lease.runId, 0]],
      )
    }),
}

export const parkCases: ReadonlyArray<Case> = [
  beforeParking,
  seen,
  ahead,
  notByASignal,
  byACancel,
  racing,
  batched,
  timers,
]
