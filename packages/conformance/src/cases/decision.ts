/** D28: a person's word and the end of the time for it: one of them wins. */
import assert from "node:assert/strict"
import type { DecideResult, DecisionRow, Lease, RunPatch, RunRow } from "@cairn/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Case } from "../Case.js"
import {
  claim,
  claimed,
  commitOf,
  committed,
  connection,
  fresh,
  leaseOf,
  liveWorker,
  longLeaseMs,
  moved,
  only,
  rowOf,
  waitsOf,
  type Bench,
} from "../internal/bench.js"
import { standing, wait } from "../internal/rows.js"

type Key = Pick<RunRow, "namespace" | "runId">

const decision = ({ namespace, runId }: Key, over: Partial<DecisionRow> = {}): DecisionRow => ({
  namespace,
  runId,
  path: "approve",
  name: "name of approve",
  decision: '{"outcome":"approved","by":"né \\u0000"}',
  ...over,
})

/** A claimed run that has opened a review. */
const reviewed = (bench: Bench, wake: Parameters<typeof wait>[1] = {}) =>
  Effect.gen(function* () {
    const owner = yield* claimed(bench)
    const opened = wait("approve", wake)
    const at = yield* committed(bench, commitOf(owner.lease, 0, { waits: [opened] }))
    return { ...owner, at, opened }
  })

const everythingOf = (bench: Bench, run: Key) => Effect.all([rowOf(bench, run), waitsOf(bench, run)])

const once: Case = {
  law: "D28",
  title: "D28: a decision is written once, with the store's time, and moves neither seq nor fence",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease, at, opened } = yield* reviewed(bench)
      const before = yield* rowOf(bench, row)
      const from = yield* bench.driver.now
      const given = decision(row)
      const first = yield* bench.driver.decideWait(given)
      assert.equal(first._tag, "Decided")
      const decidedAt = first._tag === "Decided" ? first.at : 0
      assert.ok(decidedAt >= from && decidedAt <= (yield* bench.driver.now), "a decision's time is not the store's")
      const stands = standing(opened, { openedAt: at, state: "decided", decision: given.decision, decidedAt })
      const after = [
        { ...before, inbox: 1 },
        { inbox: 1, waits: [stands] },
      ]
      assert.deepEqual(yield* everythingOf(bench, row), after)
      const again: DecideResult = { _tag: "AlreadyDecided", decision: given.decision, at: decidedAt }
      assert.deepEqual(yield* bench.driver.decideWait(given), again)
      assert.deepEqual(yield* bench.driver.decideWait({ ...given, decision: '"no"' }), again)
      assert.deepEqual(yield* everythingOf(bench, row), after)
      // A running run goes on as if nothing were: its owner commits on the seq that it knows.
      yield* committed(bench, commitOf(lease, 1, { closes: ["approve"] }))
      assert.deepEqual(yield* bench.driver.decideWait(given), { _tag: "Closed" })
    }),
}

const elsewhere: Case = {
  law: "D28",
  title: "D28: a decision is taken by no other wait than the review that it names",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease } = yield* reviewed(bench)
      const waits = (["signal", "child", "sleep"] as const).map((kind) => wait(kind, { kind, name: `name of ${kind}` }))
      yield* committed(bench, commitOf(lease, 1, { waits }))
      const other = yield* reviewed(bench)
      const before = yield* everythingOf(bench, row)
      const wrong: ReadonlyArray<Partial<DecisionRow>> = [
        { path: "Approve" },
        { path: "nothing" },
        { name: "name of an earlier one" },
        { name: "NAME OF APPROVE" },
        { name: "%" },
        ...waits.map(({ path, name }) => ({ path, name: name ?? "" })),
      ]
      for (const over of wrong) {
        assert.deepEqual(
          yield* bench.driver.decideWait(decision(row, over)),
          { _tag: "Closed" },
          `a decision with ${JSON.stringify(over)}`,
        )
      }
      const missing = decision({ namespace: bench.namespace, runId: fresh("missing") })
      assert.deepEqual(yield* bench.driver.decideWait(missing), { _tag: "Missing" })
      const elsewhere = decision({ namespace: fresh("conformance"), runId: row.runId })
      assert.deepEqual(yield* bench.driver.decideWait(elsewhere), { _tag: "Missing" })
      assert.equal((yield* bench.driver.decideWait(decision(other.row)))._tag, "Decided")
      assert.deepEqual(yield* everythingOf(bench, row), before)
      // Opened again under another name: what is said of the earlier occurrence is not said of this one.
      const renewed = wait("approve", { name: "the next" })
      yield* committed(bench, commitOf(other.lease, 1, { waits: [renewed], closes: ["approve"] }))
      assert.deepEqual(yield* bench.driver.decideWait(decision(other.row)), { _tag: "Closed" })
      assert.equal((yield* bench.driver.decideWait(decision(other.row, { name: "the next" })))._tag, "Decided")
    }),
}

type Rest = readonly [what: string, run: Partial<RunPatch>, wakes: boolean]

const rests: ReadonlyArray<Rest> = [
  ["waits", { status: "waiting", wakeInMs: longLeaseMs }, true],
  ["is in review as its workflow says", { status: "review", wakeInMs: longLeaseMs }, true],
  ["is parked for a fault", { status: "review", parked: '{"reason":"OutcomeUnknown"}' }, false],
  ["sleeps", { status: "sleeping", wakeInMs: longLeaseMs }, false],
  ["is pending", { status: "pending" }, false],
]

const wakes: Case = {
  law: "D28",
  title: "D28: a decision ends the wait of a run that waits, and of no other",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const worker = yield* liveWorker(bench)
      for (const [what, run, isWoken] of rests) {
        const { row, lease } = yield* reviewed(bench)
        yield* moved(bench, lease, 1, run)
        const before = yield* rowOf(bench, row)
        assert.equal((yield* bench.driver.decideWait(decision(row)))._tag, "Decided", `of a run that ${what}`)
        const after = yield* rowOf(bench, row)
        const woken = { status: "pending", wakeAt: null, updatedAt: after.updatedAt }
        assert.deepEqual(after, { ...before, inbox: 1, ...(isWoken ? woken : {}) }, `a decision of a run that ${what}`)
        const claims = yield* claim(bench, worker, { runIds: [row.runId] })
        assert.equal(claims.length, isWoken || run.status === "pending" ? 1 : 0, `the claim of a run that ${what}`)
      }
    }),
}

const unseen: Case = {
  law: "D28",
  title: "D28: a run that would wait without having seen a decision goes on (D23)",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      for (const status of ["waiting", "review"] as const) {
        const { row, lease } = yield* reviewed(bench)
        const { inbox } = yield* waitsOf(bench, row)
        yield* bench.driver.decideWait(decision(row))
        const commit = commitOf(lease, 1, { run: { status, release: true, seenInbox: inbox } })
        const [result] = yield* bench.driver.commit([commit])
        assert.deepEqual(result?._tag === "Committed" && result.status, "pending")
        assert.equal((yield* rowOf(bench, row)).status, "pending")
      }
    }),
}

const inTime: Case = {
  law: "D28",
  title: "D28: a decision is taken until the last millisecond of its wait, and not at its end",
  needs: ["exactClock"],
  run: (bench) =>
    Effect.gen(function* () {
      const early = yield* reviewed(bench, { wake: { inMs: 50 } })
      const late = yield* reviewed(bench, { wake: { at: (yield* bench.driver.now) + 50 } })
      yield* bench.elapse(49)
      assert.equal((yield* bench.driver.decideWait(decision(early.row)))._tag, "Decided")
      yield* bench.elapse(1)
      const before = yield* everythingOf(bench, late.row)
      assert.deepEqual(yield* bench.driver.decideWait(decision(late.row)), { _tag: "Closed" })
      assert.deepEqual(
        yield* everythingOf(bench, late.row),
        before,
        "a decision that came too late has changed the run",
      )
      // What was decided in time stands, also when the time is over.
      assert.equal((yield* bench.driver.decideWait(decision(early.row)))._tag, "AlreadyDecided")
      assert.equal((yield* bench.driver.expireWait(late.lease, "approve"))?.state, "expired")
      assert.equal((yield* bench.driver.expireWait(early.lease, "approve"))?.state, "decided")
    }),
}

const overdue: Case = {
  law: "D28",
  title: "D28: a decision that comes after the wait's time by the store's clock is refused",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { at, row } = yield* reviewed(bench, { wake: { inMs: 5 } })
      yield* bench.waitUntil(at + 5)
      assert.deepEqual(yield* bench.driver.decideWait(decision(row)), { _tag: "Closed" })
      assert.equal((yield* rowOf(bench, row)).inbox, 0)
    }),
}

const ended: Case = {
  law: "D28",
  title: "D28: a run that is final takes no decision, and keeps the one that it has",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      for (const status of ["completed", "failed", "canceled"] as const) {
        const open = yield* reviewed(bench)
        yield* moved(bench, open.lease, 1, { status })
        const before = yield* everythingOf(bench, open.row)
        assert.deepEqual(yield* bench.driver.decideWait(decision(open.row)), { _tag: "Closed" })
        assert.deepEqual(yield* everythingOf(bench, open.row), before, `a decision has changed a run that is ${status}`)
        const decided = yield* reviewed(bench)
        yield* bench.driver.decideWait(decision(decided.row))
        yield* moved(bench, decided.lease, 1, { status })
        assert.equal((yield* bench.driver.decideWait(decision(decided.row)))._tag, "AlreadyDecided")
      }
    }),
}

const expired: Case = {
  law: "D28",
  title: "D28: a wait that its run's owner has closed takes no decision, and one that is decided is not closed",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease, at, opened } = yield* reviewed(bench)
      yield* committed(bench, commitOf(lease, 1, { waits: [wait("other")] }))
      const before = yield* rowOf(bench, row)
      const closed = standing(opened, { openedAt: at, state: "expired" })
      const expire = (path: string, by: Lease = lease) =>
        Effect.map(bench.driver.expireWait(by, path), (stands) => (stands === null ? null : { ...stands }))
      assert.deepEqual(yield* expire("approve"), closed)
      assert.deepEqual(yield* expire("approve"), closed)
      assert.deepEqual(yield* bench.driver.decideWait(decision(row)), { _tag: "Closed" })
      assert.equal(yield* expire("nothing"), null)
      assert.deepEqual(yield* rowOf(bench, row), before, "a wait that was closed has changed the run's row")
      const [, other] = (yield* waitsOf(bench, row)).waits
      assert.equal(other?.state, "open", "another wait was closed as well")
      const said = decision(row, { path: "other", name: "name of other" })
      assert.equal((yield* bench.driver.decideWait(said))._tag, "Decided")
      const stands = yield* expire("other")
      assert.deepEqual([stands?.state, stands?.decision], ["decided", said.decision])
    }),
}

const byOwnerOnly: Case = {
  law: "D28",
  title: "D28: nobody but the run's owner closes a wait (D3)",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease, worker } = yield* reviewed(bench)
      const before = yield* waitsOf(bench, row)
      const others: ReadonlyArray<Lease> = [
        { ...lease, fence: lease.fence + 1 },
        { ...lease, claimToken: fresh("token") },
        { ...lease, runId: fresh("missing") },
        { ...lease, namespace: fresh("conformance") },
      ]
      for (const other of others) assert.equal(yield* bench.driver.expireWait(other, "approve"), null)
      yield* bench.driver.releaseWorker(worker)
      assert.equal(yield* bench.driver.expireWait(lease, "approve"), null, "who has given the run up closed a wait")
      const next = only(yield* claim(bench, yield* liveWorker(bench), { runIds: [row.runId] }))
      assert.equal(yield* bench.driver.expireWait(lease, "approve"), null, "an earlier owner closed a wait")
      assert.deepEqual(yield* waitsOf(bench, row), before)
      assert.equal((yield* bench.driver.expireWait(leaseOf(next), "approve"))?.state, "expired")
    }),
}

const races = 500

const oneWins: Case = {
  law: "D28",
  title: `D28: in ${races} races of two decisions and the end of the time exactly one wins, and all are told which`,
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease } = yield* claimed(bench)
      const waits = Array.from({ length: races }, (_, n) => wait(`review ${n}`))
      yield* committed(bench, commitOf(lease, 0, { waits }))
      let decisions = 0
      const race = ({ path, name }: (typeof waits)[number], n: number) =>
        Effect.gen(function* () {
          const decide = (by: string, from: number) =>
            connection(bench, n + from).decideWait(decision(row, { path, name: name ?? "", decision: `"${by}"` }))
          const expire = connection(bench, n + 1).expireWait(lease, path)
          const acts = [decide("ada", 0), expire, decide("bob", 1)]
          // Each of the orders in turn begins first.
          const turned = [...acts.slice(n % 3), ...acts.slice(0, n % 3)]
          const ends = yield* Effect.all(turned, { concurrency: "unbounded" })
          const results = ends.flatMap((end) => (end !== null && "_tag" in end ? [end] : []))
          const closed = ends.flatMap((end) => (end !== null && "state" in end ? [end] : []))[0]
          const decided = results.filter(({ _tag }) => _tag === "Decided").length
          decisions += decided
          if (closed?.state === "expired") {
            assert.deepEqual(results, [{ _tag: "Closed" }, { _tag: "Closed" }])
            return
          }
          assert.deepEqual([closed?.state, decided], ["decided", 1])
          const other = results.find(({ _tag }) => _tag !== "Decided")
          assert.equal(other?._tag === "AlreadyDecided" && other.decision, closed?.decision)
        })
      yield* Effect.forEach(waits, race, { concurrency: 8, discard: true })
      const stands = yield* waitsOf(bench, row)
      assert.equal(stands.inbox, decisions, "the inbox does not count the decisions that won")
      assert.equal(stands.waits.filter(({ state }) => state === "decided").length, decisions)
      assert.equal(stands.waits.filter(({ state }) => state === "expired").length, races - decisions)
      assert.ok(decisions > 0 && decisions < races, "the same side won every race")
    }),
}

const diesHalfway: Case = {
  law: "D28",
  title: "D28: a decision that dies after any of its statements is written and counted, or nothing is",
  needs: ["failAfter"],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease } = yield* reviewed(bench)
      yield* moved(bench, lease, 1, { status: "review" })
      const before = yield* everythingOf(bench, row)
      const given = decision(row)
      for (let statements = 0; statements < 200; statements++) {
        yield* bench.store.failAfter!(statements)
        const exit = yield* Effect.exit(bench.driver.decideWait(given))
        const [run, { waits }] = yield* everythingOf(bench, row)
        if (waits[0]?.state === "decided") {
          assert.deepEqual([run.inbox, run.status], [1, "pending"], "a decision is there, and was not counted")
          assert.ok(statements > 0, "the fault never struck: the hook does not reach the driver")
          assert.equal((yield* bench.driver.decideWait(given))._tag, "AlreadyDecided")
          return
        }
        assert.ok(Exit.isFailure(exit), "a decision that did nothing succeeded")
        assert.deepEqual(yield* everythingOf(bench, row), before, "a decision that failed has changed the run")
      }
      assert.fail("the decision still failed after 200 statements")
    }),
}

export const decisionCases: ReadonlyArray<Case> = [
  once,
  elsewhere,
  wakes,
  unseen,
  inTime,
  overdue,
  ended,
  expired,
  byOwnerOnly,
  oneWins,
  diesHalfway,
]
