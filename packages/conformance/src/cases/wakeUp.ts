/** D18: who waits hears of what can be claimed, in time, and of nothing else. */
import assert from "node:assert/strict"
import type { Lease, NewRunRow, RunRow } from "@cairn/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type { Case } from "../Case.js"
import {
  claim,
  claimed,
  commitOf,
  committed,
  create,
  fresh,
  leaseOf,
  liveWorker,
  longLeaseMs,
  moved,
  newRun,
  only,
  request,
  signal,
  underWay,
} from "../internal/bench.js"
import { hearerOf, listening } from "../internal/hearing.js"
import { wait } from "../internal/rows.js"
import { fireOf, newSchedule } from "./schedule.js"

const starts: Case = {
  law: "D18",
  title: "D18: a run that one connection creates is heard of on the other, once, and can be claimed there at once",
  needs: ["wakeUps"],
  run: (bench) =>
    Effect.gen(function* () {
      const hearer = hearerOf(bench)
      const worker = fresh("worker")
      yield* hearer.beat(worker, longLeaseMs)
      const ear = yield* listening(bench)
      let parent: Lease | null = null
      for (let n = 0; n < 4; n++) {
        const run: NewRunRow = newRun(bench)
        const creating: Fiber.RuntimeFiber<unknown, unknown> = yield* Effect.fork(
          parent === null ? bench.driver.createRun(run) : bench.driver.createChild(run, parent),
        )
        yield* ear.hears(1, "a run that was created")
        // Asked the moment it is heard: a call that came too early would find nothing, and nobody would ask again.
        const row = only(yield* hearer.claim(request(bench, worker)), "the claim of who heard of a new run")
        assert.equal(row.runId, run.runId)
        yield* Fiber.join(creating)
        // Of the last one comes a child.
        if (n === 2) parent = leaseOf(row)
      }
      yield* ear.hearsNoMore("a run that was created")
    }),
}

const unparks: Case = {
  law: "D18",
  title: "D18: a parked run that one connection unparks is heard of on the other, and can be claimed there at once",
  needs: ["wakeUps"],
  run: (bench) =>
    Effect.gen(function* () {
      const hearer = hearerOf(bench)
      const ear = yield* listening(bench)
      const { row, lease } = yield* claimed(bench)
      yield* moved(bench, lease, 0, { status: "review", parked: '{"reason":"asked"}' })
      const worker = fresh("worker")
      yield* hearer.beat(worker, longLeaseMs)
      yield* ear.hears(1, "the run's creation")
      const unparking = yield* Effect.fork(bench.driver.unpark(row.namespace, row.runId))
      yield* ear.hears(1, "an unpark")
      const taken = only(yield* hearer.claim(request(bench, worker)), "the claim of who heard of an unpark")
      assert.equal(taken.runId, row.runId)
      assert.equal(yield* Fiber.join(unparking), true)
      yield* ear.hearsNoMore("an unpark")
    }),
}

const answers: Case = {
  law: "D18",
  title: "D18: a parked run that one connection answers is heard of on the other, and can be claimed there at once",
  needs: ["wakeUps"],
  run: (bench) =>
    Effect.gen(function* () {
      const hearer = hearerOf(bench)
      const ear = yield* listening(bench)
      const { row } = yield* underWay(bench)
      const lease = leaseOf(row)
      yield* moved(bench, lease, 1, { status: "review", parked: '{"reason":"asked"}' })
      const { namespace, runId } = row
      const place = { namespace, runId, seq: 2, path: "kept", generation: 0 }
      const worker = fresh("worker")
      yield* hearer.beat(worker, longLeaseMs)
      yield* ear.hears(1, "the run's creation")
      const given = { ...place, state: "succeeded", outcome: "1", attempt: null } as const
      const answering = yield* Effect.fork(bench.driver.answer(given))
      yield* ear.hears(1, "an answer")
      const taken = only(yield* hearer.claim(request(bench, worker)), "the claim of who heard of an answer")
      assert.equal(taken.runId, runId)
      assert.equal(yield* Fiber.join(answering), true)
      assert.equal(yield* bench.driver.answer(given), false)
      yield* ear.hearsNoMore("an answer, or one that was refused")
    }),
}

const ends: Case = {
  law: "D18",
  title:
    "D18: a parent that waits is heard of on the other connection when its child ends, and can be claimed there at once",
  needs: ["wakeUps"],
  run: (bench) =>
    Effect.gen(function* () {
      const hearer = hearerOf(bench)
      const ear = yield* listening(bench)
      const parent = yield* claimed(bench)
      const child = yield* claimed(bench)
      yield* moved(bench, parent.lease, 0, { status: "waiting", wakeInMs: longLeaseMs })
      const worker = fresh("worker")
      yield* hearer.beat(worker, longLeaseMs)
      yield* ear.hears(2, "a run's creation")
      const end = commitOf(child.lease, 0, {
        wakesParent: parent.row.runId,
        run: { status: "completed", release: true },
      })
      const ending = yield* Effect.fork(bench.driver.commit([end]))
      yield* ear.hears(1, "the end of a child")
      const taken = only(yield* hearer.claim(request(bench, worker)), "the claim of who heard of the end of a child")
      assert.equal(taken.runId, parent.row.runId)
      yield* Fiber.join(ending)
      yield* ear.hearsNoMore("the end of a child")
    }),
}

const releases: Case = {
  law: "D18",
  title: "D18: a worker that gives up running runs is heard of on the other connection, which can claim them all",
  needs: ["wakeUps"],
  run: (bench) =>
    Effect.gen(function* () {
      const hearer = hearerOf(bench)
      const ear = yield* listening(bench)
      const worker = yield* liveWorker(bench)
      const runs = yield* Effect.forEach([1, 2, 3], () => create(bench))
      assert.equal((yield* claim(bench, worker)).length, 3)
      const other = fresh("worker")
      yield* hearer.beat(other, longLeaseMs)
      yield* ear.hears(3, "a run's creation")
      const releasing = yield* Effect.fork(bench.driver.releaseWorker(worker))
      yield* ear.hears(1, "a release")
      const taken = yield* hearer.claim(request(bench, other))
      assert.deepEqual(new Set(taken.map(({ runId }) => runId)), new Set(runs.map(({ runId }) => runId)))
      yield* Fiber.join(releasing)
      yield* ear.hearsNoMore("a release")
    }),
}

const forNothing: Case = {
  law: "D18",
  title: "D18: nothing is heard of calls by which no run became claimable",
  needs: ["wakeUps"],
  run: (bench) =>
    Effect.gen(function* () {
      const { driver } = bench
      const ear = yield* listening(bench)
      const { worker, row, lease } = yield* claimed(bench)
      yield* committed(bench, commitOf(lease, 0, { waits: [wait("approve"), wait("other")] }))
      const decision = ({ namespace, runId }: RunRow) =>
        ({ namespace, runId, path: "approve", name: "name of approve", decision: "1" }) as const
      const child = yield* claimed(bench)
      const slept = yield* claimed(bench)
      yield* moved(bench, slept.lease, 0, { status: "sleeping", wakeInMs: longLeaseMs, release: false })
      const acts: Readonly<Record<string, Effect.Effect<unknown, unknown>>> = {
        "a start that found its run": driver.createRun(newRun(bench, { runId: row.runId })),
        "a child that was there": driver.createChild(newRun(bench, { runId: row.runId }), lease),
        "a child of a run that somebody else holds": driver.createChild(newRun(bench), { ...lease, fence: 0 }),
        "a child that is to begin later": driver.createChild(newRun(bench, { wakeAt: 2 ** 50 }), lease),
        "an unpark of a run that was not parked": driver.unpark(row.namespace, row.runId),
        "an unpark of no run": driver.unpark(row.namespace, fresh("run")),
        "a signal to a running run": driver.send(signal(bench, { runId: row.runId })),
        "a signal to a run that sleeps": driver.send(signal(bench, { runId: slept.row.runId })),
        "a signal to no run": driver.send(signal(bench, { runId: fresh("run") })),
        "a cancel of a running run": driver.requestCancel(row.namespace, row.runId, null),
        "a second cancel of it": driver.requestCancel(row.namespace, row.runId, null),
        "a heartbeat": driver.beat(worker, longLeaseMs),
        "the start of a run that is to begin later": driver.createRun(newRun(bench, { wakeAt: 2 ** 50 })),
        "a decision of a running run": driver.decideWait(decision(row)),
        "a decision that there is already": driver.decideWait(decision(row)),
        "a decision of no run": driver.decideWait({ ...decision(row), runId: fresh("run") }),
        "a pause": driver.setPaused(slept.row.namespace, slept.row.runId, true),
        "the end of the pause of a run that sleeps": driver.setPaused(slept.row.namespace, slept.row.runId, false),
        "a resume of a run that was not paused": driver.setPaused(row.namespace, row.runId, false),
        "a reopenRun of a run that has not failed": driver.reopenRun({
          namespace: row.namespace,
          runId: row.runId,
          seq: 1,
          path: "p",
          attempt: { attempt: 1, kind: "retried", error: "{}", output: null },
        }),
        "a fork that found its run": driver.forkRun({
          run: newRun(bench, { runId: child.row.runId }),
          from: row.runId,
          beforeSeq: 1,
          effects: [],
        }),
        "a schedule that is put": driver.putSchedule(newSchedule(bench)),
        "a firing for nothing": driver.fireSchedule(fireOf(bench, newSchedule(bench))),
        "the end of a wait": driver.expireWait(lease, "other"),
        "a commit": committed(bench, commitOf(lease, 1)),
        "the end of a child whose parent runs": committed(
          bench,
          commitOf(child.lease, 0, { wakesParent: row.runId, run: { status: "completed", release: true } }),
        ),
        "the end of a run": moved(bench, lease, 2, { status: "completed" }),
        "the release of a worker that held a sleeping run": driver.releaseWorker(slept.worker),
        "the release of a worker that held nothing": driver.releaseWorker(worker),
        "a claim that found nothing": driver.claim(request(bench, worker)),
      }
      yield* ear.hears(3, "a run's creation")
      for (const [what, act] of Object.entries(acts)) {
        yield* act
        yield* ear.hearsNoMore(what)
      }
    }),
}

const failing: Case = {
  law: "D18",
  title: "D18: a start or an unpark that dies after any of its statements is heard of if it was done, and only then",
  needs: ["wakeUps", "failAfter"],
  run: (bench) =>
    Effect.gen(function* () {
      const { driver } = bench
      const ear = yield* listening(bench)
      const { row, lease } = yield* claimed(bench)
      yield* moved(bench, lease, 0, { status: "review", parked: '{"reason":"asked"}' })
      const created = newRun(bench)
      const calls: ReadonlyArray<readonly [Effect.Effect<unknown, unknown>, Effect.Effect<boolean, unknown>]> = [
        [
          driver.createRun(created),
          Effect.map(driver.findRun(created.namespace, created.runId), (run) => run !== null),
        ],
        [
          driver.unpark(row.namespace, row.runId),
          Effect.map(driver.findRun(row.namespace, row.runId), (run) => run?.status === "pending"),
        ],
      ]
      yield* ear.hears(1, "the run's creation")
      for (const [call, isDone] of calls) {
        for (let statements = 0, done = false; !done; statements++) {
          assert.ok(statements < 200, "the call still failed after 200 statements")
          yield* bench.store.failAfter!(statements)
          const exit = yield* Effect.exit(call)
          done = yield* isDone
          if (done) yield* ear.hears(1, "a call whose acknowledgement was lost")
          yield* ear.hearsNoMore(done ? "a call" : "a call that failed")
          assert.ok(done || Exit.isFailure(exit), "a call that was not done succeeded")
          assert.ok(!done || statements > 0, "the fault never struck: the hook does not reach the driver")
        }
      }
      const next = yield* claim(bench, yield* liveWorker(bench), { runIds: [row.runId] })
      assert.equal(leaseOf(only(next)).fence, lease.fence + 1)
    }),
}

export const wakeUpCases: ReadonlyArray<Case> = [starts, unparks, answers, ends, releases, forNothing, failing]
