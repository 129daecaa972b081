/** D34: a fork begins with what another run has committed up to a point, and both go their own way from there. */
import assert from "node:assert/strict"
import type { ForkRow, NewRunRow, RunRow } from "@cairn/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Case } from "../Case.js"
import {
  claim,
  claimed,
  commitOf,
  committed,
  connection,
  everything,
  fresh,
  leaseOf,
  liveWorker,
  newRun,
  only,
  rowOf,
  type Bench,
} from "../internal/bench.js"
import { attempt, intent, step, stepsQuery, wait } from "../internal/rows.js"

const scopes = ["", "agent[", "agent[0]"]

const stepsOf = (bench: Bench, run: Pick<RunRow, "namespace" | "runId">) =>
  Effect.map(bench.driver.loadSteps(stepsQuery(run, scopes)), (steps) => steps.map((one) => ({ ...one })))

/** Steps of three scopes over five commits; an operation that was refused once and then happened, at seq 3. */
const source = (bench: Bench) =>
  Effect.gen(function* () {
    const { lease, row } = yield* claimed(bench, { planHash: "plan of the source" })
    const key = "key-of-pay"
    yield* committed(bench, commitOf(lease, 0, { steps: [step("first", 1), step("agent[0]", 1, { scope: "agent[" })] }))
    const refused = intent(lease, "pay", { state: "notPerformed" })
    const inside = step("agent[0]/think", 2, { scope: "agent[0]", attempts: 3, durationMs: 17 })
    const attempts = [attempt("pay", { kind: "refused" })]
    yield* committed(bench, commitOf(lease, 1, { steps: [inside], effects: [refused], attempts }))
    const paid = intent(lease, "pay", {
      generation: 1,
      idempotencyKey: key,
      state: "succeeded",
      outcome: '"r"',
      sends: 4,
    })
    const pay = step("pay", 3, { effect: "external:payments.charge", idempotencyKey: key })
    yield* committed(bench, commitOf(lease, 2, { steps: [pay], effects: [paid] }))
    const effects = [intent(lease, "later", { state: "failed" }), intent(lease, "open")]
    yield* committed(
      bench,
      commitOf(lease, 3, { steps: [step("last", 4, { effect: "transaction" })], effects, waits: [wait("approve")] }),
    )
    yield* committed(bench, commitOf(lease, 4, { steps: [step("part", 5, { effect: "child" })] }))
    return { lease, row }
  })

const forkOf = (bench: Bench, from: Pick<RunRow, "runId">, over: Partial<ForkRow> = {}): ForkRow => ({
  run: newRun(bench, { planHash: "not looked at", input: '{"cents":1}', inputHash: "own" }),
  from: from.runId,
  beforeSeq: 6,
  effects: [],
  ...over,
})

const forked = (bench: Bench, fork: ForkRow) =>
  Effect.map(bench.driver.forkRun(fork), (result) => {
    assert.equal(result?.created, true, "the fork was not created")
    return { ...result!.run }
  })

const copies: Case = {
  law: "D34",
  title: "D34: a fork has the steps of all scopes that were committed before the point, and nothing else of its source",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row } = yield* source(bench)
      const before = yield* everything(bench, row)
      const steps = yield* stepsOf(bench, row)
      yield* bench.waitUntil(before.run.updatedAt + 2)
      for (const [beforeSeq, seq] of [
        [6, 5],
        [3, 2],
        [2, 1],
        // Nothing was committed before it: a fork is no run of which nothing is known all the same.
        [1, 1],
      ] as const) {
        const fork = forkOf(bench, row, { beforeSeq })
        const run = yield* forked(bench, fork)
        const { createdAt } = run
        const born = { fence: 0, status: "pending", inbox: 0, forkedFrom: row.runId }
        const expected: NewRunRow = { ...fork.run, planHash: "plan of the source" }
        assert.deepEqual(run, { ...run, ...expected, seq, ...born, updatedAt: createdAt })
        assert.deepEqual(yield* rowOf(bench, run), run)
        const copied = steps.filter((one) => one.seq < beforeSeq).map((one) => ({ ...one, committedAt: createdAt }))
        const own = (yield* stepsOf(bench, run)).map((one) => {
          assert.ok(one.committedAt >= createdAt, "a copied step was committed before the fork was created")
          return { ...one, committedAt: createdAt }
        })
        assert.deepEqual(own, copied)
        const { attempts, effects, waits } = yield* everything(bench, run)
        assert.deepEqual([attempts, effects, waits], [[], [], []], "a fork has more of its source than its steps")
      }
      assert.deepEqual(yield* everything(bench, row), before, "a fork has changed its source")
    }),
}

const reuses: Case = {
  law: "D34",
  title: "D34: a fork is given the results of the named operations under their keys, as the first generation",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row } = yield* source(bench)
      const paths = ["pay", "later", "open", "none", "pay"]
      const run = yield* forked(bench, forkOf(bench, row, { beforeSeq: 3, effects: paths }))
      const paid = (yield* bench.driver.findEffect({ ...row, path: "pay", generation: 1 }))!
      const { effects } = yield* everything(bench, run)
      assert.deepEqual(effects, [{ ...paid, generation: 0 }])
      // It is the fork's own: what it commits next stands on it.
      const taken = only(yield* claim(bench, yield* liveWorker(bench), { runIds: [run.runId] }))
      yield* committed(bench, commitOf(leaseOf(taken), 2, { steps: [step("pay", 3)] }))
      assert.equal((yield* bench.driver.load(row.namespace, row.runId))!.run.seq, 5)
    }),
}

const once: Case = {
  law: "D34",
  title: "D34: of twenty forks under one id one is created, and a run that is there already is not changed",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row } = yield* source(bench)
      const fork = forkOf(bench, row)
      const results = yield* Effect.forEach(
        Array.from({ length: 20 }),
        (_, n) => connection(bench, n).forkRun({ ...fork, beforeSeq: 2 + (n % 4) }),
        { concurrency: "unbounded" },
      )
      assert.equal(results.filter((result) => result?.created).length, 1)
      const run = yield* rowOf(bench, fork.run)
      for (const result of results) assert.deepEqual({ ...result!.run }, run)
      assert.equal(Math.max(...(yield* stepsOf(bench, run)).map(({ seq }) => seq)), run.seq)
      const before = yield* everything(bench, row)
      const same = yield* bench.driver.forkRun(forkOf(bench, row, { run: newRun(bench, { runId: row.runId }) }))
      assert.deepEqual({ ...same, run: { ...same!.run } }, { created: false, run: before.run })
      assert.deepEqual(yield* everything(bench, row), before)
      assert.equal(yield* bench.driver.forkRun(forkOf(bench, { runId: fresh("none") })), null)
    }),
}

const later: Case = {
  law: "D34",
  title: "D34: a fork that is to begin later sleeps until then",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row } = yield* source(bench)
      const wakeAt = (yield* bench.driver.now) + 200
      const run = yield* forked(bench, forkOf(bench, row, { run: newRun(bench, { wakeAt, parentRunId: "p" }) }))
      assert.deepEqual([run.status, run.wakeAt, run.parentRunId], ["sleeping", wakeAt, "p"])
      const worker = yield* liveWorker(bench)
      yield* bench.waitUntil(wakeAt)
      assert.equal((yield* claim(bench, worker, { runIds: [run.runId] })).length, 1)
    }),
}

const performed: Case = {
  law: "D34",
  title: "D34: what a run has done outside, or may have, is given with its place; what surely did not happen is not",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row } = yield* source(bench)
      const none = { operation: null, idempotencyKey: null, isKnown: true }
      const operation = { kind: "operation", operation: "payments.charge" } as const
      assert.deepEqual(
        (yield* bench.driver.loadPerformed(row.namespace, row.runId))?.map((one) => ({ ...one })),
        [
          { path: "last", seq: 4, kind: "transaction", ...none },
          { path: "open", seq: null, ...operation, idempotencyKey: "key-of-open", isKnown: false },
          { path: "part", seq: 5, kind: "child", ...none },
          { path: "pay", seq: 3, ...operation, idempotencyKey: "key-of-pay", isKnown: true },
        ],
      )
      assert.equal(yield* bench.driver.loadPerformed(row.namespace, fresh("none")), null)
      const { row: idle } = yield* claimed(bench)
      assert.deepEqual(yield* bench.driver.loadPerformed(idle.namespace, idle.runId), [])
    }),
}

const diesHalfway: Case = {
  law: "D34",
  title: "D34: a fork that dies after any of its statements is there with all that was copied, or not at all",
  needs: ["failAfter"],
  run: (bench) =>
    Effect.gen(function* () {
      const { row } = yield* source(bench)
      for (let statements = 0; statements < 200; statements++) {
        const fork = forkOf(bench, row, { effects: ["pay"] })
        yield* bench.store.failAfter!(statements)
        const exit = yield* Effect.exit(bench.driver.forkRun(fork))
        const run = yield* bench.driver.findRun(fork.run.namespace, fork.run.runId)
        if (run !== null) {
          assert.equal((yield* stepsOf(bench, run)).length, 6, "a fork is there without all of its steps")
          assert.equal((yield* everything(bench, run)).effects.length, 1, "a fork is there without its effects")
          assert.equal(run.seq, 5)
          return assert.ok(statements > 0, "the fault never struck: the hook does not reach the driver")
        }
        assert.ok(Exit.isFailure(exit), "a fork that is not there succeeded")
      }
      assert.fail("the fork still failed after 200 statements")
    }),
}

export const forkCases: ReadonlyArray<Case> = [copies, reuses, once, later, performed, diesHalfway]
