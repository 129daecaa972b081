/** D1: one creator creates. */
import assert from "node:assert/strict"
import * as Effect from "effect/Effect"
import type { Case } from "../Case.js"
import {
  claim,
  commitOf,
  committed,
  connection,
  create,
  everything,
  fresh,
  liveWorker,
  longLeaseMs,
  newRun,
  rowOf,
  underWay,
} from "../internal/bench.js"
import { intent } from "../internal/rows.js"

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
      const given = newRun(bench, {
        version: 7,
        planHash: "p",
        input: '{"a":1}',
        inputHash: "i",
        parentRunId: "é 'parent' %",
        parentPath: "ask[é]/child",
        flowKey: "Tenant_1",
        priority: -3,
      })
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
          interruptions: 0,
          cancelAt: null,
          cancelReason: null,
          forkedFrom: null,
          pausedAt: null,
          createdAt: run.createdAt,
          updatedAt: run.createdAt,
        },
      )
      assert.ok(run.createdAt >= before && run.createdAt <= after, "createdAt is not the store's clock")
      assert.deepEqual(yield* everything(bench, run), {
        run: { ...run },
        steps: [],
        effects: [],
        attempts: [],
        waits: [],
      })
    }),
}

const beginsLater: Case = {
  law: "D1",
  title: "D1: a new run that is to begin later sleeps until then, among many as alone",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const worker = yield* liveWorker(bench)
      const soon = (yield* bench.driver.now) + 40
      const later = soon + longLeaseMs
      const given = [soon, later, null].map((wakeAt) => newRun(bench, { wakeAt }))
      const many = yield* bench.driver.createRuns(given.map((run) => ({ ...run, runId: fresh("run") })))
      const alone = yield* Effect.forEach(given, (run) => bench.driver.createRun(run))
      for (const results of [many, alone]) {
        assert.deepEqual(
          results.map(({ run }) => [run.status, run.wakeAt]),
          [
            ["sleeping", soon],
            ["sleeping", later],
            ["pending", null],
          ],
        )
      }
      yield* bench.waitUntil(soon)
      const due = (yield* claim(bench, worker)).map(({ runId }) => runId)
      const wanted = [many, alone].flatMap((results) => [results[0]!.run.runId, results[2]!.run.runId])
      assert.deepEqual([...due].sort(), wanted.sort())
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

const manyAtOnce: Case = {
  law: "D1",
  title: "D1: of many runs that are created at once each is created or found, in the order of the batch",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row } = yield* underWay(bench)
      const before = yield* everything(bench, row)
      const fresh70 = Array.from({ length: 70 }, (_, n) => newRun(bench, { runId: fresh("run"), input: `${n}` }))
      const known = newRun(bench, { runId: row.runId, workflow: "other", input: '"other"', inputHash: "other" })
      const given = [...fresh70.slice(0, 30), known, ...fresh70.slice(30)]
      const results = yield* bench.driver.createRuns(given)
      assert.equal(results.length, given.length)
      for (const [index, { created, run }] of results.entries()) {
        assert.equal(run.runId, given[index]!.runId, "the results do not stand in the order of the batch")
        assert.equal(created, index !== 30)
        if (index !== 30) assert.deepEqual({ ...run }, yield* rowOf(bench, run))
      }
      assert.deepEqual({ ...results[30]!.run }, before.run)
      assert.deepEqual(yield* everything(bench, row), before, "a run that was there already was changed")
      assert.deepEqual(yield* bench.driver.createRuns([]), [])
    }),
}

const twiceInOneBatch: Case = {
  law: "D1",
  title: "D1: of two runs of one id in one batch the first is created, and both get its row",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const runId = fresh("run")
      const [first, second] = yield* bench.driver.createRuns([
        newRun(bench, { runId, input: '"first"' }),
        newRun(bench, { runId, input: '"second"' }),
      ])
      assert.deepEqual([first!.created, second!.created], [true, false])
      assert.deepEqual([first!.run.input, second!.run.input], ['"first"', '"first"'])
      assert.equal((yield* rowOf(bench, { namespace: bench.namespace, runId })).input, '"first"')
    }),
}

const overlappingBatches: Case = {
  law: "D1",
  title: "D1: batches that overlap, in any order and through any connection, create each run once",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const runs = Array.from({ length: 40 }, () => newRun(bench, { runId: fresh("run") }))
      const batches = yield* Effect.forEach(
        Array.from({ length: 8 }, (_, n) => n),
        (n) => connection(bench, n).createRuns(n % 2 === 0 ? runs : [...runs].reverse()),
        { concurrency: "unbounded" },
      )
      for (const { runId } of runs) {
        const told = batches.flat().filter((result) => result.run.runId === runId)
        assert.equal(told.length, 8)
        assert.equal(told.filter(({ created }) => created).length, 1, "a run has more than one creator, or none")
      }
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

export const createCases: ReadonlyArray<Case> = [
  twentyCreators,
  newRow,
  beginsLater,
  existingRow,
  manyAtOnce,
  twiceInOneBatch,
  overlappingBatches,
  namespacesApart,
]
