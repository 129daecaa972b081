/** D26: which database it is; whether a worker of it lives (D8); and how many of its runs stand (D14). */
import assert from "node:assert/strict"
import * as Effect from "effect/Effect"
import type { Case } from "../Case.js"
import {
  claimed,
  connection,
  create,
  fresh,
  liveWorker,
  moved,
  rowOf,
  shortLeaseMs,
  underWay,
} from "../internal/bench.js"

const oneId: Case = {
  law: "D26",
  title: "D26: the store's id is one text through every connection, whatever is written",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const id = yield* bench.driver.storeId
      assert.ok(id.length > 0, "the id is empty")
      yield* claimed(bench)
      assert.equal(yield* bench.driver.storeId, id, "the id has changed")
      assert.equal(yield* connection(bench, 1).storeId, id, "another connection gives another id")
    }),
}

const endOfLease: Case = {
  law: "D8",
  title: "D8: a worker's lease has ended where it never beat, from its very end on, and when it was released",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const worker = fresh("worker")
      assert.equal(yield* bench.driver.leaseHasEnded(worker), true, "a worker that never beat has a lease")
      const { until } = yield* bench.driver.beat(worker, shortLeaseMs)
      yield* bench.waitUntil(until)
      assert.equal(yield* bench.driver.leaseHasEnded(worker), true, "a lease that has ended still holds")
      const living = yield* liveWorker(bench)
      assert.equal(yield* bench.driver.leaseHasEnded(living), false, "a living worker's lease has ended")
      assert.equal(yield* connection(bench, 1).leaseHasEnded(living), false)
      yield* bench.driver.releaseWorker(living)
      assert.equal(yield* bench.driver.leaseHasEnded(living), true, "a released worker has a lease")
    }),
}

const manyLooks: Case = {
  law: "D14",
  title: "D14: of many runs that are looked for each stands in its place, as it is, and null where there is none",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease } = yield* underWay(bench)
      const others = yield* Effect.forEach(
        Array.from({ length: 40 }, (_, n) => n),
        (n) => create(bench, { input: `${n}` }),
      )
      yield* moved(bench, lease, 1, { status: "completed", output: '"all"', release: true })
      const missing = { namespace: bench.namespace, runId: fresh("nobody") }
      const elsewhere = { namespace: fresh("conformance"), runId: row.runId }
      const keys = [...others, missing, row, elsewhere, others[3]!, row]
      const found = yield* bench.driver.findRuns(keys.map(({ namespace, runId }) => ({ namespace, runId })))
      assert.equal(found.length, keys.length)
      for (const [index, key] of keys.entries()) {
        if (key === missing || key === elsewhere) {
          assert.equal(found[index], null, "a run was found that is not there")
          continue
        }
        const { input: _, ...stands } = yield* rowOf(bench, key)
        assert.deepEqual({ ...found[index] }, stands)
      }
      assert.equal((yield* rowOf(bench, row)).output, '"all"')
      assert.deepEqual(yield* bench.driver.findRuns([]), [])
    }),
}

export const identityCases: ReadonlyArray<Case> = [oneId, endOfLease, manyLooks]
