/** D19 and D21: what people are asked, and what becomes of what they say. */
import assert from "node:assert/strict"
import type { AnswerRow, Lease, ParkedRow } from "@cairn/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Case } from "../Case.js"
import {
  claim,
  claimed,
  commitOf,
  committed,
  connection,
  create,
  effectOf,
  everything,
  fresh,
  leaseOf,
  liveWorker,
  moved,
  only,
  underWay,
  type Bench,
} from "../internal/bench.js"
import { intent } from "../internal/rows.js"

const reason = '{"reason":"OutcomeUnknown","step":"kept","problem":"nobody knows"}'

const refusedAttempt = { attempt: 2, kind: "refused", error: '{"name":"said"}', output: null } as const

const answerOf = (lease: Lease, over: Partial<AnswerRow> = {}): AnswerRow => ({
  namespace: lease.namespace,
  runId: lease.runId,
  seq: 2,
  path: "kept",
  generation: 0,
  state: "succeeded",
  outcome: '{"id":"ch_1"}',
  attempt: null,
  ...over,
})

/** A run at seq 2 that is parked for the open intent at `kept`, with one attempt. */
const parkedRun = (bench: Bench) =>
  Effect.gen(function* () {
    const owner = yield* underWay(bench)
    yield* moved(bench, owner.lease, 1, { status: "review", parked: reason, cursor: "kept" })
    return owner
  })

const settles: Case = {
  law: "D19",
  title: "D19: an answer settles its effect, accounts for it and unparks its run, and changes nothing else",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      for (const over of [
        { state: "succeeded", outcome: '{"id":1}', attempt: null },
        { state: "notPerformed", outcome: null, attempt: refusedAttempt },
      ] as const) {
        const { row, lease } = yield* parkedRun(bench)
        const before = yield* everything(bench, row)
        const from = yield* bench.driver.now
        assert.equal(yield* bench.driver.answer(answerOf(lease, over)), true)
        const after = yield* everything(bench, row)
        const settledAt = after.effects[0]?.settledAt
        const endedAt = after.attempts[1]?.endedAt
        assert.ok(settledAt != null && settledAt >= from && after.run.updatedAt >= from)
        assert.ok(over.attempt === null || (endedAt !== undefined && endedAt >= from))
        assert.deepEqual(after, {
          ...before,
          run: { ...before.run, status: "pending", parked: null, updatedAt: after.run.updatedAt },
          effects: before.effects.map((effect) => ({ ...effect, state: over.state, outcome: over.outcome, settledAt })),
          attempts:
            over.attempt === null
              ? before.attempts
              : [...before.attempts, { path: "kept", ...over.attempt, retryAt: null, endedAt }],
        })
        const again = only(yield* claim(bench, yield* liveWorker(bench)))
        assert.deepEqual([again.runId, again.fence], [row.runId, lease.fence + 1])
        yield* moved(bench, leaseOf(again), 2, { status: "completed" })
      }
    }),
}

const refused: Case = {
  law: "D19",
  title:
    "D19: an answer for another run, commit or place, for a run that is not parked or an effect that is settled, is refused",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease } = yield* parkedRun(bench)
      const sibling = yield* claimed(bench)
      const refuses = (over: Partial<AnswerRow>) =>
        Effect.gen(function* () {
          const before = yield* everything(bench, row)
          const written = yield* bench.driver.answer(answerOf(lease, { attempt: refusedAttempt, ...over }))
          assert.equal(written, false, `an answer was taken in spite of ${JSON.stringify(over)}`)
          assert.deepEqual(yield* everything(bench, row), before)
        })
      const wrong: ReadonlyArray<Partial<AnswerRow>> = [
        { seq: 1 },
        { seq: 3 },
        { path: "Kept" },
        { path: "first" },
        { generation: 1 },
        { runId: sibling.row.runId },
        { runId: fresh("missing") },
        { namespace: fresh("conformance") },
      ]
      for (const over of wrong) yield* refuses(over)
      assert.deepEqual((yield* everything(bench, sibling.row)).attempts, [])
      yield* bench.driver.recordOutcome({
        ...answerOf(lease, { state: "failed", outcome: '"late"' }),
        idempotencyKey: "key-of-kept",
        payloadHash: "payload-hash",
        claimToken: lease.claimToken,
      })
      // What a worker knew after all is the outcome: the run waits for a resume.
      yield* refuses({})
      const running = yield* underWay(bench)
      const before = yield* everything(bench, running.row)
      assert.equal(yield* bench.driver.answer(answerOf(running.lease, { seq: 1 })), false)
      assert.deepEqual(yield* everything(bench, running.row), before)
    }),
}

const once: Case = {
  law: "D19",
  title: "D19: of twenty answers at once the first is taken, and only it is told so",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease } = yield* parkedRun(bench)
      const taken = yield* Effect.forEach(
        Array.from({ length: 20 }, (_, n) => n),
        (n) =>
          connection(bench, n).answer(
            answerOf(lease, { outcome: String(n), attempt: { ...refusedAttempt, attempt: n + 2 } }),
          ),
        { concurrency: "unbounded" },
      )
      const winners = taken.flatMap((won, n) => (won ? [n] : []))
      assert.equal(winners.length, 1, `${winners.length} answers were taken`)
      const { attempts, effects, run } = yield* everything(bench, row)
      assert.equal(effects[0]?.outcome, String(winners[0]))
      assert.deepEqual([attempts.length, attempts[1]?.attempt], [2, winners[0]! + 2])
      assert.equal(run.status, "pending")
    }),
}

const kept: Case = {
  law: "D19",
  title: "D19: what was answered stays, and a run that is parked anew takes an answer for its new commit only",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease } = yield* parkedRun(bench)
      assert.equal(yield* bench.driver.answer(answerOf(lease, { state: "notPerformed", outcome: null })), true)
      assert.equal(yield* bench.driver.answer(answerOf(lease)), false, "a run was answered twice")
      const next = leaseOf(only(yield* claim(bench, yield* liveWorker(bench))))
      yield* committed(
        bench,
        commitOf(next, 2, {
          steps: [],
          effects: [
            intent(next, "kept", { state: "succeeded", outcome: "9" }),
            intent(next, "kept", { generation: 1 }),
          ],
          run: { status: "review", parked: reason, release: true },
        }),
      )
      assert.equal(yield* bench.driver.answer(answerOf(lease, { generation: 1 })), false, "an old commit was answered")
      assert.equal(yield* bench.driver.answer(answerOf(lease, { seq: 3, generation: 1 })), true)
      const states = [yield* effectOf(bench, row, "kept"), yield* effectOf(bench, row, "kept", 1)]
      assert.deepEqual(
        states.map(({ outcome, state }) => [state, outcome]),
        [
          ["notPerformed", null],
          ["succeeded", '{"id":"ch_1"}'],
        ],
      )
    }),
}

const diesBetween: Case = {
  law: "D19",
  title: "D19: an answer that dies after any of its statements was taken whole or not at all",
  needs: ["failAfter"],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease } = yield* parkedRun(bench)
      const before = yield* everything(bench, row)
      const given = answerOf(lease, { state: "notPerformed", outcome: null, attempt: refusedAttempt })
      for (let statements = 0; statements < 200; statements++) {
        yield* bench.store.failAfter!(statements)
        const exit = yield* Effect.exit(bench.driver.answer(given))
        const { attempts, effects, run } = yield* everything(bench, row)
        if (Exit.isSuccess(exit) || run.status !== "review") {
          const found = [run.status, effects[0]?.state, attempts.length]
          assert.deepEqual(found, ["pending", "notPerformed", 2], "a part of an answer was taken")
          return assert.ok(statements > 0, "the fault never struck: the hook does not reach the driver")
        }
        assert.deepEqual({ ...before, attempts, effects, run }, before, "a part of an answer was taken")
      }
      assert.fail("the answer still failed after 200 statements")
    }),
}

const lists: Case = {
  law: "D21",
  title: "D21: parked runs are listed by run id, each once over all pages, and no others",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const names = ["b", "a", "A", "a b", "a%", "c", "_"].map((name) => `${name}-${fresh("run")}`)
      for (const runId of names) {
        const { lease } = yield* claimed(bench, { runId })
        yield* moved(bench, lease, 0, { status: "review", parked: reason })
      }
      const elsewhere = yield* claimed(bench, { namespace: fresh("conformance") })
      yield* moved(bench, elsewhere.lease, 0, { status: "review", parked: reason })
      // A review that is a step of the workflow is no parked run.
      const waiting = yield* claimed(bench)
      yield* moved(bench, waiting.lease, 0, { status: "review" })
      yield* create(bench)
      const done = yield* claimed(bench)
      yield* moved(bench, done.lease, 0, { status: "failed" })

      const pages: Array<ReadonlyArray<string>> = []
      let after: string | null = null
      // A driver that gives a run again would never come to an empty page.
      while (pages.length <= names.length) {
        const page: ReadonlyArray<ParkedRow> = yield* bench.driver.listParked({
          namespace: bench.namespace,
          after,
          limit: 3,
        })
        if (page.length === 0) break
        assert.ok(page.length <= 3, `a page of at most 3 held ${page.length} runs`)
        pages.push(page.map(({ runId }) => runId))
        for (const row of page) {
          const run = yield* bench.driver.findRun(row.namespace, row.runId)
          const { namespace, runId, workflow, version, seq, updatedAt, parked } = run!
          assert.deepEqual({ ...row }, { namespace, runId, workflow, version, seq, updatedAt, parked })
        }
        after = page.at(-1)!.runId
      }
      const found = pages.flat()
      assert.deepEqual(found, [...names].sort(), "the pages hold other runs than those that are parked")
      assert.deepEqual(
        pages.map((page) => page.length),
        [3, 3, 1],
      )
      assert.deepEqual(yield* bench.driver.listParked({ namespace: bench.namespace, after: null, limit: 0 }), [])
    }),
}

export const answerCases: ReadonlyArray<Case> = [settles, refused, once, kept, diesBetween, lists]
