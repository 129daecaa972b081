/** D9: what is known of an operation is recorded without owning its run. */
import assert from "node:assert/strict"
import type { Lease, OutcomeRow } from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Case } from "../Case.js"
import {
  abandoned,
  claim,
  claimed,
  commitOf,
  committed,
  connection,
  effectOf,
  everything,
  fresh,
  leaseOf,
  liveWorker,
  only,
  underWay,
} from "../internal/bench.js"
import { intent } from "../internal/rows.js"

const outcomeOf = (lease: Lease, over: Partial<OutcomeRow> = {}): OutcomeRow => ({
  namespace: lease.namespace,
  runId: lease.runId,
  path: "kept",
  generation: 0,
  idempotencyKey: "key-of-kept",
  payloadHash: "payload-hash",
  claimToken: lease.claimToken,
  state: "succeeded",
  outcome: '{"id":"ch_1"}',
  ...over,
})

const settles: Case = {
  law: "D9",
  title: "D9: an outcome settles its intent, and changes neither the run nor anything else of it",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      for (const [state, outcome] of [
        ["succeeded", '{"id":1}'],
        ["failed", '"declined"'],
        ["notPerformed", null],
      ] as const) {
        const { row, lease } = yield* underWay(bench)
        yield* committed(bench, commitOf(lease, 1, { effects: [intent(lease, "beside")] }))
        const before = yield* everything(bench, row)
        const from = yield* bench.driver.now
        assert.equal(yield* bench.driver.recordOutcome(outcomeOf(lease, { state, outcome })), true)
        const after = yield* everything(bench, row)
        const settled = after.effects.find(({ path }) => path === "kept")
        assert.ok(settled?.settledAt != null && settled.settledAt >= from)
        const { settledAt } = settled
        assert.deepEqual(after, {
          ...before,
          effects: before.effects.map((effect) =>
            effect.path === "kept" ? { ...effect, state, outcome, settledAt } : effect,
          ),
        })
        assert.deepEqual(yield* effectOf(bench, row, "kept"), settled)
        yield* committed(bench, commitOf(lease, 2))
      }
    }),
}

const mismatches: Case = {
  law: "D9",
  title: "D9: an outcome that differs in key, payload hash, claim token or place is not recorded",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease } = yield* underWay(bench)
      const sibling = yield* claimed(bench)
      const before = yield* everything(bench, row)
      const wrong: ReadonlyArray<Partial<OutcomeRow>> = [
        { idempotencyKey: "key-of-another" },
        { idempotencyKey: "KEY-OF-KEPT" },
        { payloadHash: "another-hash" },
        { payloadHash: "payload-hash " },
        { claimToken: fresh("token") },
        { claimToken: "" },
        { path: "Kept" },
        { path: "kep_" },
        { path: "%" },
        { generation: 1 },
        { runId: sibling.row.runId },
        { runId: fresh("missing") },
        { namespace: fresh("conformance") },
      ]
      for (const over of wrong) {
        const written = yield* bench.driver.recordOutcome(outcomeOf(lease, over))
        assert.equal(written, false, `an outcome was recorded in spite of ${JSON.stringify(over)}`)
        assert.deepEqual(yield* everything(bench, row), before)
      }
      assert.deepEqual((yield* everything(bench, sibling.row)).effects, [])
      assert.equal(yield* bench.driver.recordOutcome(outcomeOf(lease)), true)
    }),
}

const firstWriter: Case = {
  law: "D9",
  title: "D9: of twenty writers of one outcome the first wins, and only it is told so",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease } = yield* underWay(bench)
      const written = yield* Effect.forEach(
        Array.from({ length: 20 }, (_, n) => n),
        (n) => connection(bench, n).recordOutcome(outcomeOf(lease, { outcome: String(n) })),
        { concurrency: "unbounded" },
      )
      const winners = written.flatMap((won, n) => (won ? [n] : []))
      assert.equal(winners.length, 1, `${winners.length} writers were told that they wrote the outcome`)
      assert.equal((yield* effectOf(bench, row, "kept")).outcome, String(winners[0]))
    }),
}

const settledAlready: Case = {
  law: "D9",
  title: "D9: an intent that is settled in any way is not settled again",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      for (const state of ["succeeded", "failed", "notPerformed"] as const) {
        const { row, lease } = yield* claimed(bench)
        yield* committed(bench, commitOf(lease, 0, { effects: [intent(lease, "kept", { state, outcome: "1" })] }))
        const before = yield* everything(bench, row)
        assert.equal(yield* bench.driver.recordOutcome(outcomeOf(lease, { outcome: "2" })), false)
        assert.deepEqual(yield* everything(bench, row), before)
      }
    }),
}

const afterTheLease: Case = {
  law: "D9",
  title: "D9: an owner that was replaced still records what it knows, for the new owner to read",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const old = yield* abandoned(bench)
      yield* committed(bench, commitOf(old.lease, 0, { effects: [intent(old.lease, "kept")] }))
      const taken = only(yield* claim(bench, yield* liveWorker(bench)))
      assert.notEqual(taken.claimToken, old.lease.claimToken)
      assert.equal(yield* bench.driver.recordOutcome(outcomeOf(old.lease)), true)
      const { run, effects } = yield* everything(bench, taken)
      assert.deepEqual(run, { ...taken })
      assert.deepEqual([effects[0]?.state, effects[0]?.outcome], ["succeeded", '{"id":"ch_1"}'])
    }),
}

const sentAgain: Case = {
  law: "D9",
  title: "D9: once a new owner has sent it again under its own token, the old owner's outcome is not taken",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const old = yield* abandoned(bench)
      yield* committed(bench, commitOf(old.lease, 0, { effects: [intent(old.lease, "kept")] }))
      const lease = leaseOf(only(yield* claim(bench, yield* liveWorker(bench))))
      yield* committed(bench, commitOf(lease, 1, { effects: [intent(lease, "kept", { sends: 2 })] }))
      assert.equal(yield* bench.driver.recordOutcome(outcomeOf(old.lease)), false)
      assert.equal((yield* effectOf(bench, old.row, "kept")).state, "intended")
      assert.equal(yield* bench.driver.recordOutcome(outcomeOf(lease)), true)
    }),
}

export const outcomeCases: ReadonlyArray<Case> = [
  settles,
  mismatches,
  firstWriter,
  settledAlready,
  afterTheLease,
  sentAgain,
]
