/** D1: one creator creates. */
import assert from "node:assert/strict"
import * as Effect from "effect/Effect"
import type { Case } from "../Case.js"
import {
  commitOf,
  committed,
  connection,
  create,
  everything,
  fresh,
  intent,
  newRun,
  rowOf,
  underWay,
} from "../internal/bench.js"

const twentyCreators: Case = {
  law: "D1",
  title: "D1: of twenty creators of one run one creates, and all get its row",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const runId = fresh("run")
      const results = yield* Effect.forEach(
        Array.from({ length: 20 }, (_, n) => n),
        (n) =>
          connection(bench, n).createRun(newRun(bench, { runId, input: `{"creator":${n}}`, inputHash: `hash-${n}` })),
        { concurrency: "unbounded" },
      )
      const creators = results.flatMap((result, n) => (result.created ? [n] : []))
      assert.equal(creators.length, 1, `${creators.length} creators were told that they created the run`)
      const stored = yield* rowOf(bench, { namespace: bench.namespace, runId })
      assert.equal(stored.input, `{"creator":${creators[0]}}`, "the row is not that of the creator")
      assert.equal(stored.inputHash, `hash-${creators[0]}`)
      for (const result of results) assert.deepEqual({ ...result.run }, stored)
    }),
}

const newRow: Case = {
  law: "D1",
  title: "D1: a new run is pending at seq 0 and fence 0, holds what was given and nothing else",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const given = newRun(bench, { version: 7, planHash: "p", input: '{"a":1}', inputHash: "i" })
      const before = yield* bench.driver.now
      const { created, run } = yield* bench.driver.createRun(given)
      const after = yield* bench.driver.now
      assert.equal(created, true)
      assert.deepEqual(
        { ...run },
        {
          ...given,
          status: "pending",
          seq: 0,
          output: null,
          failure: null,
          parked: null,
          cursor: null,
          leaseOwner: null,
          fence: 0,
          claimToken: null,
          previousUntil: 0,
          wakeAt: null,
          inbox: 0,
          recoveries: 0,
          createdAt: run.createdAt,
          updatedAt: run.createdAt,
        },
      )
      assert.ok(run.createdAt >= before && run.createdAt <= after, "createdAt is not the store's clock")
      assert.deepEqual(yield* everything(bench, run), { run: { ...run }, steps: [], effects: [], attempts: [] })
    }),
}

const existingRow: Case = {
  law: "D1",
  title: "D1: creating a run again changes nothing, whatever it has become",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease } = yield* underWay(bench)
      yield* committed(bench, commitOf(lease, 1, { effects: [intent(lease, "next")], run: { cursor: "next" } }))
      const before = yield* everything(bench, row)
      const again = yield* bench.driver.createRun(
        newRun(bench, {
          runId: row.runId,
          workflow: "other",
          version: 2,
          planHash: "other",
          input: '"other"',
          inputHash: "other",
        }),
      )
      assert.equal(again.created, false)
      assert.deepEqual({ ...again.run }, before.run)
      assert.deepEqual(yield* everything(bench, row), before)
    }),
}

const namespacesApart: Case = {
  law: "D1",
  title: "D1: one run id in two namespaces is two runs",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const runId = fresh("run")
      const other = fresh("conformance")
      yield* create(bench, { runId, input: '"mine"' })
      const second = yield* bench.driver.createRun(newRun(bench, { namespace: other, runId, input: '"other"' }))
      assert.equal(second.created, true)
      assert.equal((yield* rowOf(bench, { namespace: bench.namespace, runId })).input, '"mine"')
      assert.equal((yield* rowOf(bench, { namespace: other, runId })).input, '"other"')
    }),
}

export const createCases: ReadonlyArray<Case> = [twentyCreators, newRow, existingRow, namespacesApart]
