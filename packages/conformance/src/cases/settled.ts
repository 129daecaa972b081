/** D17: what is settled stays, whatever a commit says of it. */
import assert from "node:assert/strict"
import type { EffectWrite, Lease } from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Case } from "../Case.js"
import {
  abandoned,
  claim,
  claimed,
  commitOf,
  committed,
  effectOf,
  everything,
  fresh,
  leaseOf,
  liveWorker,
  only,
  type Bench,
} from "../internal/bench.js"
import { attempt, intent, step } from "../internal/rows.js"

const states = ["succeeded", "failed", "notPerformed"] as const

/** Everything of an intent that a commit could change. */
const over = (lease: Lease, state: EffectWrite["state"]): EffectWrite =>
  intent(lease, "kept", {
    operation: "payments.refund",
    idempotencyKey: "key-of-another",
    payload: '"another"',
    payloadHash: "another-hash",
    claimToken: fresh("token"),
    outcome: '"another"',
    sends: 9,
    state,
  })

/** The next millisecond: what is stamped from now on is told from what was stamped before. */
const later = (bench: Bench) => Effect.flatMap(bench.driver.now, (now) => bench.waitUntil(now + 2))

const settledBy: Readonly<
  Record<
    "a commit" | "recordOutcome",
    (bench: Bench, lease: Lease, state: (typeof states)[number]) => Effect.Effect<void, unknown>
  >
> = {
  "a commit": (bench, lease, state) =>
    Effect.asVoid(committed(bench, commitOf(lease, 1, { effects: [intent(lease, "kept", { state, outcome: "1" })] }))),
  recordOutcome: (bench, lease, state) =>
    Effect.gen(function* () {
      const { payloadHash, idempotencyKey } = intent(lease, "kept")
      const outcome = { ...lease, path: "kept", generation: 0, payloadHash, idempotencyKey, state, outcome: "1" }
      assert.equal(yield* bench.driver.recordOutcome(outcome), true)
      yield* committed(bench, commitOf(lease, 1))
    }),
}

const stays: Case = {
  law: "D17",
  title:
    "D17: an effect that is settled in any way is not changed by a commit, and the rest of the commit goes through",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      for (const settle of Object.values(settledBy)) {
        for (const state of states) {
          const { row, lease } = yield* claimed(bench)
          yield* committed(bench, commitOf(lease, 0, { effects: [intent(lease, "kept"), intent(lease, "open")] }))
          yield* settle(bench, lease, state)
          const settled = yield* effectOf(bench, row, "kept")
          assert.deepEqual([settled.state, settled.outcome], [state, "1"])
          yield* later(bench)
          const at = yield* committed(
            bench,
            commitOf(lease, 2, {
              steps: [step("third", 3)],
              effects: [
                intent(lease, "before"),
                over(lease, "intended"),
                intent(lease, "open", { sends: 2 }),
                intent(lease, "kept", { generation: 1, idempotencyKey: "key-1" }),
              ],
              attempts: [attempt("kept")],
              run: { cursor: "kept", output: '"out"' },
            }),
          )
          const { run, steps, effects, attempts } = yield* everything(bench, row)
          assert.deepEqual(
            effects.find(({ path, generation }) => path === "kept" && generation === 0),
            settled,
            `an effect that was ${state} was changed by a commit`,
          )
          assert.deepEqual(
            effects.map(({ path, generation, sends }) => [path, generation, sends]),
            [
              ["before", 0, 1],
              ["kept", 0, 1],
              ["kept", 1, 1],
              ["open", 0, 2],
            ],
          )
          assert.deepEqual([run.seq, run.cursor, run.output, run.updatedAt], [3, "kept", '"out"', at])
          assert.deepEqual(steps.at(-1)?.path, "third")
          assert.deepEqual([attempts.length, attempts[0]?.endedAt], [1, at])
          for (const other of states) {
            const { seq } = (yield* everything(bench, row)).run
            yield* committed(bench, commitOf(lease, seq, { effects: [over(lease, other)] }))
            assert.deepEqual(yield* effectOf(bench, row, "kept"), settled, `${state} became ${other}`)
          }
        }
      }
    }),
}

const inBatch: Case = {
  law: "D17",
  title: "D17: in a batch what is settled stays in its own run, and an intent at the same place in another is replaced",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const done = yield* claimed(bench)
      const open = yield* claimed(bench)
      yield* committed(bench, commitOf(done.lease, 0, { effects: [intent(done.lease, "kept", { state: "failed" })] }))
      yield* committed(bench, commitOf(open.lease, 0, { effects: [intent(open.lease, "kept")] }))
      const before = yield* effectOf(bench, done.row, "kept")
      const again = (lease: Lease) => commitOf(lease, 1, { effects: [intent(lease, "kept", { sends: 2 })] })
      const results = yield* bench.driver.commit([again(done.lease), again(open.lease)])
      assert.deepEqual(
        results.map(({ _tag }) => _tag),
        ["Committed", "Committed"],
      )
      assert.deepEqual(yield* effectOf(bench, done.row, "kept"), before)
      const { sends, state } = yield* effectOf(bench, open.row, "kept")
      assert.deepEqual([sends, state], [2, "intended"])
    }),
}

const lateOutcome: Case = {
  law: "D17",
  title: "D17: an outcome that a replaced owner records before the new owner sends again is not lost to that intent",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const old = yield* abandoned(bench)
      const first = intent(old.lease, "kept")
      yield* committed(bench, commitOf(old.lease, 0, { effects: [first] }))
      const lease = leaseOf(only(yield* claim(bench, yield* liveWorker(bench))))
      // The new owner has seen the intent open when the outcome arrives.
      const { payloadHash, idempotencyKey, claimToken } = first
      const place = { ...lease, path: "kept", generation: 0, payloadHash, idempotencyKey, claimToken }
      assert.equal(yield* bench.driver.recordOutcome({ ...place, state: "succeeded", outcome: '{"id":"ch_1"}' }), true)
      const settled = yield* effectOf(bench, old.row, "kept")
      yield* later(bench)
      yield* committed(bench, commitOf(lease, 1, { effects: [intent(lease, "kept", { sends: 2 })] }))
      assert.deepEqual(yield* effectOf(bench, old.row, "kept"), settled, "the outcome is gone: it would be sent twice")
    }),
}

export const settledCases: ReadonlyArray<Case> = [stays, inBatch, lateOutcome]
