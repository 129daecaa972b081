/** D1: a child is created by the owner of its parent, and by nobody else. */
import assert from "node:assert/strict"
import type { Lease, NewRunRow } from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Case } from "../Case.js"
import {
  abandoned,
  claim,
  claimed,
  claimedBriefly,
  connection,
  create,
  fresh,
  leaseOf,
  liveWorker,
  moved,
  newRun,
  only,
  rowOf,
  type Bench,
} from "../internal/bench.js"

const childOf = (bench: Bench, { namespace, runId }: Lease, over: Partial<NewRunRow> = {}): NewRunRow =>
  newRun(bench, { namespace, parentRunId: runId, parentPath: "ask", runId: fresh("child"), ...over })

const byItsOwner: Case = {
  law: "D1",
  title: "D1: a child of a run that is held under the lease that is shown is created as any run is, once",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const live = yield* claimed(bench)
      const late = yield* abandoned(bench)
      // Also an owner whose lease has ended, for as long as nobody has replaced it (D3).
      for (const { lease } of [live, late]) {
        const child = childOf(bench, lease, { input: '{"é":1}', wakeAt: null })
        const made = yield* bench.driver.createChild(child, lease)
        assert.ok(made !== null, "the owner of the parent was refused")
        assert.equal(made.created, true)
        const usual = yield* create(bench, { ...child, runId: fresh("run") })
        assert.deepEqual(
          { ...made.run, createdAt: 0, updatedAt: 0 },
          { ...usual, runId: child.runId, createdAt: 0, updatedAt: 0 },
        )
        assert.deepEqual(yield* rowOf(bench, child), { ...made.run })
        const again = yield* bench.driver.createChild({ ...child, input: '"other"' }, lease)
        assert.deepEqual(again, { created: false, run: { ...made.run } })
      }
      const later = yield* bench.driver.createChild(childOf(bench, live.lease, { wakeAt: 2 ** 50 }), live.lease)
      assert.equal(later?.run.status, "sleeping")
      assert.deepEqual(yield* rowOf(bench, live.row), live.row, "the parent was changed")
    }),
}

const byNobodyElse: Case = {
  law: "D1",
  title: "D1: no child is created of a run that is not held under the lease that is shown; one that is there is given",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* claimed(bench)
      const replaced = yield* abandoned(bench)
      only(yield* claim(bench, yield* liveWorker(bench), { runIds: [replaced.lease.runId] }))
      const released = yield* claimed(bench)
      yield* moved(bench, released.lease, 0, { status: "canceled", release: true })
      const stopped = yield* claimed(bench)
      yield* bench.driver.releaseWorker(stopped.worker)
      const namesake = yield* claimed(bench, { namespace: fresh("conformance"), runId: lease.runId })
      const refused: Readonly<Record<string, Lease>> = {
        "an earlier fence": { ...lease, fence: lease.fence - 1 },
        "a later fence": { ...lease, fence: lease.fence + 1 },
        "another token": { ...lease, claimToken: fresh("token") },
        "an owner that was replaced": replaced.lease,
        "an owner that has ended the run": released.lease,
        "an owner that has released its worker": stopped.lease,
        "no run": { ...lease, runId: fresh("run") },
        "a run of that id in another namespace": { ...lease, claimToken: namesake.lease.claimToken },
      }
      for (const [whose, shown] of Object.entries(refused)) {
        const child = childOf(bench, shown)
        assert.equal(yield* bench.driver.createChild(child, shown), null, `${whose} was not refused`)
        assert.equal(
          yield* bench.driver.findRun(child.namespace, child.runId),
          null,
          `${whose} created it all the same`,
        )
        const row = yield* create(bench, child)
        assert.deepEqual(
          yield* bench.driver.createChild(child, shown),
          { created: false, run: { ...row } },
          `${whose} was not given what is there`,
        )
      }
    }),
}

/** Parents that change their owner at the same time. */
const rounds = 24

const besideATakeover: Case = {
  law: "D1",
  title:
    "D1: whoever takes a parent over finds the child that its owner creates at that moment, or there is none later",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const parents = yield* Effect.forEach(Array.from({ length: rounds }), () => create(bench))
      const owner = yield* claimedBriefly(
        bench,
        parents.map(({ runId }) => runId),
      )
      assert.equal(owner.rows.length, rounds)
      yield* bench.waitUntil(owner.until + 5)
      const worker = yield* liveWorker(bench)
      const ends = yield* Effect.forEach(
        owner.rows.map((row) => ({ lease: leaseOf(row), child: childOf(bench, leaseOf(row)) })),
        ({ child, lease }, n) =>
          Effect.gen(function* () {
            const other = connection(bench, n + 1)
            const takingOver = Effect.gen(function* () {
              // A row that is being looked at may be passed over for a moment.
              for (let tries = 0; tries < 100; tries++) {
                const rows = yield* claim({ ...bench, driver: other }, worker, { runIds: [lease.runId] })
                if (rows.length > 0) return yield* other.findRun(child.namespace, child.runId)
              }
              return assert.fail("the parent could not be taken over")
            })
            const creating = connection(bench, n).createChild(child, lease)
            const [made, seen] = yield* n % 2 === 0
              ? Effect.all([creating, takingOver], { concurrency: 2 })
              : Effect.map(
                  Effect.all([takingOver, creating], { concurrency: 2 }),
                  ([seen, made]) => [made, seen] as const,
                )
            return { isMade: made !== null, isSeen: seen !== null }
          }),
        { concurrency: 4 },
      )
      for (const { isMade, isSeen } of ends) {
        assert.equal(
          isMade,
          isSeen,
          isMade ? "a child came after its parent was taken over" : "a child was refused and is there",
        )
      }
    }),
}

export const childCases: ReadonlyArray<Case> = [byItsOwner, byNobodyElse, besideATakeover]
