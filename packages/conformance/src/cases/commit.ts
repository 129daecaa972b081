/** D2 and D5: a commit is one, and the commits of a batch are several. */
import assert from "node:assert/strict"
import type { CheckpointDriver, CommitRows, RunRow } from "@cairn/core"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import type { Case } from "../Case.js"
import {
  claim,
  claimed,
  commitOf,
  committed,
  create,
  everything,
  fresh,
  leaseOf,
  liveWorker,
  loud,
  openOf,
  underWay,
  type Bench,
} from "../internal/bench.js"
import { attempt, intent, standing, step, wait } from "../internal/rows.js"

const allTables: Case = {
  law: "D2",
  title: "D2: a commit writes run row, steps, effects, attempts and waits, all with the time of the commit",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease } = yield* claimed(bench)
      const charged = step("charge", 1, {
        result: '{"id":"ch_1"}',
        effect: "external:payments.charge",
        idempotencyKey: "key",
        attempts: 3,
        durationMs: 250,
      })
      const write: CommitRows = {
        lease,
        base: 0,
        seq: 1,
        steps: [charged],
        effects: [
          intent(lease, "email", { sends: 2 }),
          intent(lease, "declined", { state: "failed", outcome: '"no"', generation: 1 }),
        ],
        attempts: [
          attempt("email", { attempt: 2, retryInMs: 5_000 }),
          attempt("extract", { kind: "rejected", output: "[1]" }),
        ],
        run: {
          status: "sleeping",
          cursor: "email",
          wakeInMs: 700_000,
          output: '"out"',
          failure: '{"kind":"undeclared"}',
          parked: '{"reason":"OutputInvalid"}',
          release: false,
          seenInbox: 0,
        },
        consumes: [],
        waits: [wait("approve", { wake: { inMs: 9_000 } })],
        closes: [],
        wakesParent: null,
      }
      const at = yield* committed(bench, write)
      const { wakeInMs: _, release: __, seenInbox: ___, ...columns } = write.run
      assert.deepEqual(yield* everything(bench, row), {
        run: { ...row, ...columns, seq: 1, wakeAt: at + 700_000, updatedAt: at },
        steps: [{ ...charged, committedAt: at }],
        effects: [
          { ...write.effects[1]!, intentAt: at, settledAt: at },
          { ...write.effects[0]!, intentAt: at, settledAt: null },
        ],
        attempts: write.attempts.map(({ retryInMs, ...rest }) => ({
          ...rest,
          retryAt: retryInMs === null ? null : at + retryInMs,
          endedAt: at,
        })),
        waits: [standing(wait("approve"), { openedAt: at, wakeAt: at + 9_000 })],
      })
    }),
}

const replacedIntent: Case = {
  law: "D2",
  title: "D2: an intent that is written again keeps its first time, and another generation is another intent",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease } = yield* claimed(bench)
      const first = yield* committed(bench, commitOf(lease, 0, { effects: [intent(lease, "charge")] }))
      yield* bench.waitUntil(first + 2)
      const second = yield* committed(bench, commitOf(lease, 1, { effects: [intent(lease, "charge", { sends: 2 })] }))
      yield* bench.waitUntil(second + 2)
      const settled = intent(lease, "charge", { sends: 2, state: "notPerformed", outcome: '"declined"' })
      const next = intent(lease, "charge", { generation: 1, idempotencyKey: "key-1" })
      const third = yield* committed(bench, commitOf(lease, 2, { effects: [settled, next] }))
      assert.ok(first < second && second < third)
      assert.deepEqual((yield* everything(bench, row)).effects, [
        { ...settled, intentAt: first, settledAt: third },
        { ...next, intentAt: third, settledAt: null },
      ])
    }),
}

/** Commit n adds step n and leaves one intent and one attempt open, those of step n + 1. */
const chained = (lease: CommitRows["lease"], n: number): CommitRows =>
  commitOf(lease, n - 1, {
    steps: [step(`p${n}`, n)],
    effects: [intent(lease, `p${n + 1}`)],
    attempts: [attempt(`p${n + 1}`)],
    run: { cursor: `p${n + 1}` },
  })

/** Run row and steps as one reading gives them; its seq. */
const wholeSeq = (row: RunRow, driver: CheckpointDriver) =>
  Effect.map(driver.load(row.namespace, row.runId), (loaded) => {
    assert.ok(loaded !== null)
    const { run, steps } = loaded
    assert.equal(steps.length, run.seq, `at seq ${run.seq} a reader saw ${steps.length} steps`)
    assert.equal(run.cursor, run.seq === 0 ? null : `p${run.seq + 1}`, `at seq ${run.seq} a reader saw ${run.cursor}`)
    return run.seq
  })

/** Intents and attempts are read in another call: they are of one instant that lies between two readings of the run. */
const wholeReading = (bench: Bench, row: RunRow, paths: ReadonlyArray<string>, driver: CheckpointDriver) =>
  Effect.gen(function* () {
    const before = yield* wholeSeq(row, driver)
    const { effects, attempts } = yield* openOf(bench, row, paths, driver)
    const after = yield* wholeSeq(row, driver)
    const places = effects.map(({ path }) => path)
    assert.deepEqual(
      attempts.map(({ path }) => path),
      places,
      "a reader saw intents and attempts of different commits",
    )
    const seen = `between seq ${before} and ${after} a reader saw the intents of ${places.length} commits`
    assert.ok(places.length >= before && places.length <= after, seen)
    assert.deepEqual(places, [...paths.slice(0, places.length)].sort(), "a reader saw a commit without the one before")
    return after
  })

const readersBeside: Case = {
  law: "D2",
  title: "D2: whoever reads beside a writer never sees a part of a commit",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const total = 30
      const { row, lease } = yield* claimed(bench)
      const writer = Effect.forEach(
        Array.from({ length: total }, (_, n) => n + 1),
        (n) => Effect.zipRight(committed(bench, chained(lease, n)), Effect.yieldNow()),
        { discard: true },
      )
      const paths = Array.from({ length: total }, (_, n) => `p${n + 2}`)
      const readers = bench.connections.map((driver) => {
        const read: Effect.Effect<void, unknown> = Effect.flatMap(wholeReading(bench, row, paths, driver), (seq) =>
          seq === total ? Effect.void : Effect.zipRight(Effect.yieldNow(), read),
        )
        return read
      })
      yield* Effect.all([writer, ...readers], { concurrency: "unbounded", discard: true })
    }),
}

const twoUnderWay = (bench: Bench) =>
  Effect.gen(function* () {
    const owners = [yield* underWay(bench), yield* underWay(bench)]
    const state = Effect.forEach(owners, ({ row }) => everything(bench, row))
    return { owners, state, before: yield* state }
  })

const diesBetween: Case = {
  law: "D2",
  title: "D2: a batch that dies after any of its statements leaves all of itself or nothing",
  needs: ["failAfter"],
  run: (bench) =>
    Effect.gen(function* () {
      const { owners, state, before } = yield* twoUnderWay(bench)
      const batch = owners.map(({ lease }) => loud(lease, 1))
      let failed = 0
      for (let statements = 0; statements < 200; statements++) {
        yield* bench.store.failAfter!(statements)
        const exit = yield* Effect.exit(bench.driver.commit(batch))
        const after = yield* state
        if (Exit.isSuccess(exit)) {
          assert.deepEqual(
            exit.value.map(({ _tag }) => _tag),
            ["Committed", "Committed"],
          )
          assert.ok(failed > 0, "the fault never struck: the hook does not reach the driver")
          return
        }
        failed++
        const seqs = after.map(({ run }) => run.seq)
        if (seqs.includes(2)) {
          // The commit itself went through and only its acknowledgement was lost.
          assert.deepEqual(seqs, [2, 2], "one run of the batch was committed and the other was not")
          for (const loaded of after) {
            assert.deepEqual(
              loaded.steps.map(({ path }) => path),
              ["first", "loud"],
            )
            assert.deepEqual(
              loaded.effects.map(({ path, sends }) => [path, sends]),
              [
                ["kept", 9],
                ["loud-intent", 1],
              ],
            )
            assert.deepEqual(
              loaded.attempts.map(({ path }) => path),
              ["kept", "loud-attempt"],
            )
            assert.equal(loaded.run.cursor, "loud")
          }
          return
        }
        assert.deepEqual(after, before, `a batch that died after ${statements} statements left a part of itself`)
      }
      assert.fail("the batch still failed after 200 statements")
    }),
}

const refusedInBatch: Case = {
  law: "D5",
  title: "D5: a refused commit in a batch changes nothing and touches none of the others",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const first = yield* underWay(bench)
      const wrongFence = yield* underWay(bench)
      const second = yield* underWay(bench)
      const stale = yield* underWay(bench)
      const third = yield* underWay(bench)
      const before = [yield* everything(bench, wrongFence.row), yield* everything(bench, stale.row)]
      const missing = { ...first.lease, runId: fresh("missing") }
      const results = yield* bench.driver.commit([
        commitOf(first.lease, 1, { run: { cursor: "one" } }),
        loud({ ...wrongFence.lease, fence: wrongFence.lease.fence + 1 }, 1),
        commitOf(second.lease, 1, { run: { cursor: "two" } }),
        loud(stale.lease, 0),
        loud(missing, 0),
        commitOf(third.lease, 1, { run: { cursor: "three" } }),
      ])
      assert.deepEqual(
        results.map(({ _tag }) => _tag),
        ["Committed", "Refused", "Committed", "Refused", "Refused", "Committed"],
        "the results do not stand in the order of the batch",
      )
      const fenceOf = (index: number) => {
        const result = results[index]
        return result?._tag === "Refused" ? (result.run?.claimToken ?? null) : undefined
      }
      assert.deepEqual(
        [fenceOf(1), fenceOf(3), fenceOf(4)],
        [wrongFence.lease.claimToken, stale.lease.claimToken, null],
      )
      for (const [owner, cursor] of [
        [first, "one"],
        [second, "two"],
        [third, "three"],
      ] as const) {
        const { run, steps } = yield* everything(bench, owner.row)
        assert.deepEqual([run.seq, run.cursor, steps.map(({ path }) => path)], [2, cursor, ["first", "step-2"]])
      }
      assert.deepEqual([yield* everything(bench, wrongFence.row), yield* everything(bench, stale.row)], before)
      assert.equal(yield* bench.driver.findRun(missing.namespace, missing.runId), null)
    }),
}

const largeBatch: Case = {
  law: "D5",
  title: "D5: a batch of five hundred runs commits in one call, each run its own rows",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const total = 500
      for (let n = 0; n < total; n++) yield* create(bench, { input: String(n) })
      const worker = yield* liveWorker(bench)
      const rows = yield* claim(bench, worker, { limit: total })
      assert.equal(rows.length, total)
      const batch = rows.map((row) => {
        const lease = leaseOf(row)
        return commitOf(lease, 0, {
          steps: [step("one", 1, { result: row.input })],
          effects: [intent(lease, "two", { payload: row.input })],
          attempts: [attempt("two", { output: row.input })],
          run: { output: row.input },
        })
      })
      const results = yield* bench.driver.commit(batch)
      assert.equal(results.length, total)
      assert.ok(results.every(({ _tag }) => _tag === "Committed"))
      for (const row of rows) {
        const { run, steps, effects, attempts } = yield* everything(bench, row)
        const found = [run.seq, run.output, steps[0]?.result, effects[0]?.payload, attempts[0]?.output]
        assert.deepEqual(found, [1, row.input, row.input, row.input, row.input])
        assert.deepEqual([steps.length, effects.length, attempts.length], [1, 1, 1])
      }
    }),
}

const emptyBatch: Case = {
  law: "D5",
  title: "D5: an empty batch has no results",
  needs: [],
  run: (bench) =>
    Effect.map(Effect.either(bench.driver.commit([])), (results) => {
      assert.ok(Either.isRight(results), "an empty batch failed")
      assert.deepEqual([...results.right], [])
    }),
}

export const commitCases: ReadonlyArray<Case> = [
  allTables,
  replacedIntent,
  readersBeside,
  diesBetween,
  refusedInBatch,
  largeBatch,
  emptyBatch,
]
