/** D44: a worker learns of what has reached its runs without a heartbeat, and hears of it where the driver wakes. */
import assert from "node:assert/strict"
import type { HeldLease, Lease } from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Case } from "../Case.js"
import {
  abandoned,
  claimed,
  commitOf,
  committed,
  connection,
  create,
  fresh,
  leaseOf,
  longLeaseMs,
  moved,
  signal,
  type Bench,
} from "../internal/bench.js"
import { wait } from "../internal/rows.js"

/** Longer than any machine takes to hand on a call; a lost one is given up after it. */
const longestWaitMs = 10_000

const heldAs = (lease: HeldLease): HeldLease => ({ ...leaseOf(lease), inbox: lease.inbox })

const reached = (bench: Bench, worker: string) =>
  Effect.map(bench.driver.loadReached(worker), (leases) => leases.map(heldAs))

const tells: Case = {
  law: "D44",
  title: "D44: a worker is told of those of its runs that anything has reached, as a heartbeat tells it",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { driver } = bench
      const mine = yield* claimed(bench)
      const others = yield* claimed(bench)
      yield* driver.send(signal(bench, { runId: others.row.runId }))
      assert.deepEqual(yield* reached(bench, mine.worker), [])
      yield* driver.requestCancel(mine.lease.namespace, mine.lease.runId, null)
      assert.deepEqual(yield* reached(bench, mine.worker), [{ ...mine.lease, inbox: 1 }])
      yield* driver.send(signal(bench, { runId: mine.row.runId }))
      const found = yield* reached(bench, mine.worker)
      assert.deepEqual(found, [{ ...mine.lease, inbox: 2 }])
      assert.deepEqual(found, (yield* driver.beat(mine.worker, longLeaseMs)).leases.map(heldAs))
      assert.deepEqual(yield* reached(bench, fresh("worker")), [])
      yield* moved(bench, mine.lease, 0, { status: "completed" })
      assert.deepEqual(yield* reached(bench, mine.worker), [])
    }),
}

const prolongsNothing: Case = {
  law: "D44",
  title: "D44: what a worker is told of its runs prolongs no lease",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease, worker } = yield* abandoned(bench)
      yield* bench.driver.setPaused(lease.namespace, lease.runId, true)
      assert.deepEqual(yield* reached(bench, worker), [{ ...lease, inbox: 1 }])
      assert.equal(yield* bench.driver.leaseHasEnded(worker), true, "looking at its runs has prolonged a lease")
    }),
}

/** Hears on the connection that sends nothing: which workers are told, each with what it finds then. */
const listening = (bench: Bench) =>
  Effect.sync(() => {
    const heard: Array<string> = []
    const hearer = connection(bench, 1)
    hearer.onReached?.((workerId) => void heard.push(workerId))
    /** Ends when somebody has been told, and says who. */
    const next = (what: string): Effect.Effect<string, unknown> =>
      Effect.gen(function* () {
        for (let stepMs = 1; stepMs < longestWaitMs && heard.length === 0; stepMs *= 2) {
          yield* bench.waitUntil((yield* bench.driver.now) + stepMs)
        }
        assert.ok(heard.length > 0, `${what} was not heard of on the other connection`)
        return heard.shift()!
      })
    return { hearer, next }
  })

const inboxOf = (leases: ReadonlyArray<HeldLease>, { runId }: Lease): number =>
  leases.find((lease) => lease.runId === runId)?.inbox ?? 0

const hears: Case = {
  law: "D44",
  title: "D44: what reaches a run that a worker holds is heard of on the other connection, by that worker's id",
  needs: ["wakeUps"],
  run: (bench) =>
    Effect.gen(function* () {
      const { driver } = bench
      const { hearer, next } = yield* listening(bench)
      const { lease, worker } = yield* claimed(bench)
      yield* committed(bench, commitOf(lease, 0, { waits: [wait("approve")] }))
      const child = yield* claimed(bench)
      const { namespace, runId } = lease
      const decision = { namespace, runId, path: "approve", name: "name of approve", decision: "1" }
      const acts: Readonly<Record<string, Effect.Effect<unknown, unknown>>> = {
        "a signal": driver.send(signal(bench, { runId })),
        "a decision": driver.decideWait(decision),
        "a pause": driver.setPaused(namespace, runId, true),
        "a cancel": driver.requestCancel(namespace, runId, null),
        "the end of a child": committed(
          bench,
          commitOf(child.lease, 0, { wakesParent: runId, run: { status: "completed", release: true } }),
        ),
      }
      for (const [index, [what, act]] of Object.entries(acts).entries()) {
        yield* act
        assert.equal(yield* next(what), worker, `${what} was told to another worker`)
        const inbox = inboxOf(yield* hearer.loadReached(worker), lease)
        assert.equal(inbox, index + 1, `${what} was told before it could be found`)
      }
    }),
}

const hearsOfRest: Case = {
  law: "D44",
  title: "D44: what reaches a run that sleeps while a worker holds it is heard of by that worker",
  needs: ["wakeUps"],
  run: (bench) =>
    Effect.gen(function* () {
      const { next } = yield* listening(bench)
      const { lease, worker } = yield* claimed(bench)
      yield* moved(bench, lease, 0, { status: "sleeping", wakeInMs: longLeaseMs, release: false })
      yield* bench.driver.requestCancel(lease.namespace, lease.runId, null)
      assert.equal(yield* next("a cancel"), worker)
    }),
}

const hearsNothing: Case = {
  law: "D44",
  title: "D44: nobody is told of what reaches no run that is held, and of what adds nothing to an inbox",
  needs: ["wakeUps"],
  run: (bench) =>
    Effect.gen(function* () {
      const { driver } = bench
      const { next } = yield* listening(bench)
      const { lease, row, worker } = yield* claimed(bench)
      yield* committed(bench, commitOf(lease, 0, { waits: [wait("approve")] }))
      const last = yield* claimed(bench)
      const slept = yield* claimed(bench)
      yield* moved(bench, slept.lease, 0, { status: "sleeping", wakeInMs: longLeaseMs })
      const free = yield* create(bench)
      const known = signal(bench, { runId: row.runId })
      yield* driver.send(known)
      assert.equal(yield* next("a signal"), worker)
      yield* driver.send(known)
      yield* driver.send(signal(bench, { runId: free.runId }))
      yield* driver.send(signal(bench, { runId: slept.row.runId }))
      yield* driver.send(signal(bench, { runId: fresh("run") }))
      yield* driver.setPaused(free.namespace, free.runId, true)
      yield* driver.requestCancel(free.namespace, free.runId, null)
      yield* driver.requestCancel(slept.lease.namespace, slept.lease.runId, null)
      yield* driver.setPaused(row.namespace, row.runId, true)
      assert.equal(yield* next("a pause"), worker)
      yield* driver.setPaused(row.namespace, row.runId, false)
      yield* driver.setPaused(row.namespace, row.runId, false)
      yield* driver.expireWait(lease, "approve")
      yield* committed(bench, commitOf(lease, 1))
      yield* driver.beat(worker, longLeaseMs)
      yield* create(bench)
      // Calls come in the order of the acts.
      yield* driver.send(signal(bench, { runId: last.row.runId }))
      assert.equal(yield* next("a signal that was sent last"), last.worker, "somebody was told for nothing")
    }),
}

export const reachedCases: ReadonlyArray<Case> = [tells, prolongsNothing, hears, hearsOfRest, hearsNothing]
