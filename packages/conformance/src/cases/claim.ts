/** D6: of all who ask for a run one gets it. */
import assert from "node:assert/strict"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Case } from "../Case.js"
import {
  claim,
  connection,
  create,
  fresh,
  leaseOf,
  liveWorker,
  moved,
  only,
  request,
  rowOf,
} from "../internal/bench.js"

const count = (length: number): ReadonlyArray<number> => Array.from({ length }, (_, n) => n)

const ids = (rows: ReadonlyArray<{ readonly runId: string }>): ReadonlyArray<string> => rows.map(({ runId }) => runId)

const manyOfMany: Case = {
  law: "D6",
  title: "D6: twenty claimers of fifty runs get each run once, each under the token of its own call",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const created: Array<string> = []
      for (let n = 0; n < 50; n++) created.push((yield* create(bench)).runId)
      const taken = yield* Effect.forEach(
        count(20),
        (n) =>
          Effect.gen(function* () {
            const worker = yield* liveWorker(bench)
            const mine: Array<{ readonly runId: string; readonly owner: string; readonly token: string }> = []
            for (;;) {
              const asked = request(bench, worker, { limit: 1 + (n % 3) })
              const rows = yield* connection(bench, n).claim(asked)
              if (rows.length === 0) return mine
              assert.ok(mine.length < 50, "one claimer got more runs than there are")
              assert.ok(rows.length <= asked.limit, "more runs came back than were asked for")
              for (const row of rows) {
                assert.deepEqual([row.leaseOwner, row.claimToken, row.fence], [worker, asked.claimToken, 1])
                mine.push({ runId: row.runId, owner: worker, token: asked.claimToken })
              }
              yield* Effect.yieldNow()
            }
          }),
        { concurrency: "unbounded" },
      )
      const all = taken.flat()
      assert.equal(all.length, 50, `50 runs were claimed ${all.length} times`)
      assert.deepEqual([...ids(all)].sort(), created.sort())
      for (const { runId, owner, token } of all) {
        const row = yield* rowOf(bench, { namespace: bench.namespace, runId })
        assert.deepEqual([row.leaseOwner, row.claimToken, row.fence], [owner, token, 1])
      }
    }),
}

const manyOfOne: Case = {
  law: "D6",
  title: "D6: of twenty claimers of one run one gets it",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const run = yield* create(bench)
      const workers = yield* Effect.forEach(count(20), () => liveWorker(bench))
      const results = yield* Effect.forEach(
        workers,
        (worker, n) => connection(bench, n).claim(request(bench, worker, { runIds: [run.runId] })),
        { concurrency: "unbounded" },
      )
      const row = only(results.flat(), "twenty claims of one run")
      assert.equal((yield* rowOf(bench, run)).claimToken, row.claimToken)
    }),
}

const fenceAndToken: Case = {
  law: "D6",
  title: "D6: each claim raises the fence by one, sets owner and token, and gives the row as it is stored",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const run = yield* create(bench)
      for (const turn of [1, 2, 3]) {
        const worker = yield* liveWorker(bench)
        const claimToken = fresh("token")
        const before = yield* rowOf(bench, run)
        const row = only(yield* claim(bench, worker, { claimToken }))
        const { updatedAt } = row
        const expected = { ...before, status: "running", leaseOwner: worker, claimToken, fence: turn, updatedAt }
        assert.deepEqual({ ...row }, { ...expected, wakeAt: null })
        assert.deepEqual(yield* rowOf(bench, run), { ...row })
        yield* moved(bench, leaseOf(row), turn - 1, { status: "sleeping", wakeInMs: 0 })
      }
    }),
}

const limitAndOrder: Case = {
  law: "D6",
  title: "D6: at most so many runs as asked for are claimed, those that are longest due first",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const worker = yield* liveWorker(bench)
      const sleeper = yield* create(bench, { runId: `a-${fresh("run")}` })
      const first = only(yield* claim(bench, worker))
      const pause = Effect.flatMap(bench.driver.now, (now) => bench.waitUntil(now + 2))
      const expected: Array<string> = []
      // The ids sort against the order of creation, so that no index order can pass for the order of the clock.
      for (const name of ["z", "y", "x"]) {
        yield* pause
        expected.push((yield* create(bench, { runId: `${name}-${fresh("run")}` })).runId)
      }
      yield* pause
      const at = yield* moved(bench, leaseOf(first), 0, { status: "sleeping", wakeInMs: 5 })
      expected.push(sleeper.runId)
      yield* bench.waitUntil(at + 7)
      expected.push((yield* create(bench, { runId: `0-${fresh("run")}` })).runId)
      assert.deepEqual(ids(yield* claim(bench, worker, { limit: 2 })), expected.slice(0, 2))
      assert.deepEqual(ids(yield* claim(bench, worker, { limit: 1 })), expected.slice(2, 3))
      assert.deepEqual(ids(yield* claim(bench, worker, { limit: 10 })), expected.slice(3))
    }),
}

const diesBetween: Case = {
  law: "D6",
  title: "D6: a claim that dies after any of its statements has taken all of its runs or none",
  needs: ["failAfter"],
  run: (bench) =>
    Effect.gen(function* () {
      const runs = [yield* create(bench), yield* create(bench), yield* create(bench)]
      const worker = yield* liveWorker(bench)
      for (let statements = 0; statements < 200; statements++) {
        yield* bench.store.failAfter!(statements)
        const exit = yield* Effect.exit(claim(bench, worker))
        const fences = yield* Effect.forEach(runs, (run) => Effect.map(rowOf(bench, run), ({ fence }) => fence))
        if (Exit.isSuccess(exit) || fences.includes(1)) {
          assert.deepEqual(fences, [1, 1, 1], "a claim that died took a part of its runs")
          return assert.ok(statements > 0, "the fault never struck: the hook does not reach the driver")
        }
        assert.deepEqual(yield* Effect.forEach(runs, (run) => rowOf(bench, run)), runs)
      }
      assert.fail("the claim still failed after 200 statements")
    }),
}

export const claimCases: ReadonlyArray<Case> = [manyOfMany, manyOfOne, fenceAndToken, limitAndOrder, diesBetween]
