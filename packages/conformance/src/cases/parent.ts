/** D29: who waits for a child hears of its end. */
import assert from "node:assert/strict"
import type { RunPatch, RunRow } from "@cairn/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Case } from "../Case.js"
import {
  assertRefused,
  claim,
  claimed,
  commitOf,
  committed,
  connection,
  create,
  everything,
  fresh,
  liveWorker,
  longLeaseMs,
  moved,
  rowOf,
  signal,
  type Bench,
} from "../internal/bench.js"

/** The commit that ends a child. */
const endOf = (child: Effect.Effect.Success<ReturnType<typeof claimed>>, wakesParent: string, base = 0) =>
  commitOf(child.lease, base, { wakesParent, run: { status: "completed", output: "1", release: true } })

const childOf = (bench: Bench, parent: Pick<RunRow, "namespace" | "runId">) =>
  claimed(bench, { namespace: parent.namespace, parentRunId: parent.runId, parentPath: "child" })

type Rest = readonly [what: string, run: Partial<RunPatch>, wakes: boolean]

const rests: ReadonlyArray<Rest> = [
  ["waits", { status: "waiting" }, true],
  ["waits until some time", { status: "waiting", wakeInMs: longLeaseMs }, true],
  ["is in review as its workflow says", { status: "review", wakeInMs: longLeaseMs }, true],
  ["is parked for a fault", { status: "review", parked: '{"reason":"OutcomeUnknown"}' }, false],
  ["sleeps", { status: "sleeping", wakeInMs: longLeaseMs }, false],
  ["is pending", { status: "pending" }, false],
  ["runs", { status: "running", release: false }, false],
]

const wakes: Case = {
  law: "D29",
  title: "D29: the end of a child is counted, ends the wait of a parent that waits, and of no other",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const worker = yield* liveWorker(bench)
      for (const [what, run, isWoken] of rests) {
        const parent = yield* claimed(bench)
        const namesake = yield* create(bench, { namespace: fresh("conformance"), runId: parent.row.runId })
        const child = yield* childOf(bench, parent.row)
        yield* moved(bench, parent.lease, 0, run)
        const before = yield* rowOf(bench, parent.row)
        yield* committed(bench, endOf(child, parent.row.runId))
        const after = yield* rowOf(bench, parent.row)
        const woken = { status: "pending", wakeAt: null, updatedAt: after.updatedAt }
        assert.deepEqual(after, { ...before, inbox: 1, ...(isWoken ? woken : {}) }, `of a parent that ${what}`)
        assert.deepEqual(yield* rowOf(bench, namesake), namesake, "the namesake of the parent was told")
        const claims = yield* claim(bench, worker, { runIds: [parent.row.runId] })
        assert.equal(claims.length, isWoken || run.status === "pending" ? 1 : 0, `the claim of a parent that ${what}`)
      }
    }),
}

const together: Case = {
  law: "D29",
  title: "D29: of several children that end in one batch each is counted, and so is one that ends beside its parent",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const parent = yield* claimed(bench)
      const other = yield* claimed(bench)
      const children = yield* Effect.forEach([0, 1, 2, 3], () => childOf(bench, parent.row))
      yield* moved(bench, parent.lease, 0, { status: "waiting", release: false })
      const ends = children.slice(0, 3).map((child) => endOf(child, parent.row.runId))
      const refused = { ...endOf(children[3]!, parent.row.runId), base: 7, seq: 8 }
      // The parent's own commit in the middle, which lets it wait: whatever comes first, it does not wait in the end.
      const waits = commitOf(parent.lease, 1, { run: { status: "waiting", release: true, seenInbox: 0 } })
      const batch = [ends[0]!, commitOf(other.lease, 0), waits, refused, ends[1]!, ends[2]!]
      const results = yield* bench.driver.commit(batch)
      assert.deepEqual(
        results.map(({ _tag }) => _tag),
        ["Committed", "Committed", "Committed", "Refused", "Committed", "Committed"],
      )
      const after = yield* rowOf(bench, parent.row)
      assert.deepEqual([after.status, after.inbox, after.seq], ["pending", 3, 2])
      assert.equal((yield* rowOf(bench, other.row)).inbox, 0, "a run beside them was told")
      // Each order of a parent and a child alone.
      for (const childFirst of [true, false]) {
        const one = yield* claimed(bench)
        const child = yield* childOf(bench, one.row)
        const rest = commitOf(one.lease, 0, { run: { status: "waiting", release: true, seenInbox: 0 } })
        const end = endOf(child, one.row.runId)
        yield* bench.driver.commit(childFirst ? [end, rest] : [rest, end])
        const { inbox, status } = yield* rowOf(bench, one.row)
        assert.deepEqual([status, inbox], ["pending", 1], `the child ${childFirst ? "first" : "last"}`)
      }
    }),
}

const leftAlone: Case = {
  law: "D29",
  title: "D29: a parent that is gone or final is left alone, and its child ends all the same",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const orphan = yield* claimed(bench, { parentRunId: fresh("missing"), parentPath: "child" })
      yield* committed(bench, endOf(orphan, orphan.row.parentRunId ?? ""))
      assert.equal((yield* rowOf(bench, orphan.row)).status, "completed")
      for (const status of ["completed", "failed", "canceled"] as const) {
        const parent = yield* claimed(bench)
        const child = yield* childOf(bench, parent.row)
        yield* moved(bench, parent.lease, 0, { status })
        const before = yield* everything(bench, parent.row)
        yield* committed(bench, endOf(child, parent.row.runId))
        assert.deepEqual(yield* everything(bench, parent.row), before, `a child has changed a parent that is ${status}`)
        assert.equal((yield* rowOf(bench, child.row)).status, "completed")
      }
    }),
}

const refused: Case = {
  law: "D29",
  title: "D29: a refused commit tells no parent",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const parent = yield* claimed(bench)
      const child = yield* childOf(bench, parent.row)
      yield* moved(bench, parent.lease, 0, { status: "waiting" })
      const before = yield* rowOf(bench, parent.row)
      const end = endOf(child, parent.row.runId)
      yield* assertRefused(bench, { ...end, lease: { ...child.lease, fence: 9 } }, "another fence")
      yield* assertRefused(bench, { ...end, base: 3, seq: 4 }, "a seq that is ahead")
      assert.deepEqual(yield* rowOf(bench, parent.row), before)
      yield* committed(bench, end)
      yield* assertRefused(bench, end, "a seq that stands already")
      assert.equal((yield* rowOf(bench, parent.row)).inbox, 1, "a commit that was sent again was counted again")
    }),
}

const noneLost: Case = {
  law: "D29",
  title: "D29: of a child's end and its parent's rest no wake-up is lost, whichever comes first",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      for (let n = 0; n < 20; n++) {
        const parent = yield* claimed(bench)
        const child = yield* childOf(bench, parent.row)
        const rest = commitOf(parent.lease, 0, { run: { status: "waiting", release: true, seenInbox: 0 } })
        const end = endOf(child, parent.row.runId)
        const acts = [connection(bench, n).commit([rest]), connection(bench, n + 1).commit([end])]
        yield* Effect.all(n % 2 === 0 ? acts : acts.toReversed(), { concurrency: "unbounded" })
        const { inbox, seq, status } = yield* rowOf(bench, parent.row)
        assert.deepEqual([status, inbox, seq], ["pending", 1, 1], `in round ${n}`)
      }
    }),
}

/** Families whose members commit from several sides at once: nobody waits for another in a circle. */
const inCircles: Case = {
  law: "D29",
  title: "D29: batches over the same parents and children from several sides all end, and lose nothing",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const parents = yield* Effect.forEach([0, 1, 2], () => claimed(bench))
      const families = yield* Effect.forEach(parents, ({ row }) =>
        Effect.forEach([0, 1, 2, 3], () => childOf(bench, row)),
      )
      const batches = [0, 1, 2, 3].map((n) => parents.map(({ row }, index) => endOf(families[index]![n]!, row.runId)))
      const signals = parents.map(({ row }) => signal(bench, { runId: row.runId }))
      yield* Effect.all(
        [
          // In both orders of the parents.
          ...batches.map((batch, n) => connection(bench, n).commit(n % 2 === 0 ? batch : batch.toReversed())),
          ...signals.map((one, n) => connection(bench, n).send(one)),
          connection(bench, 1).commit(parents.map(({ lease }) => commitOf(lease, 0)).toReversed()),
        ],
        { concurrency: "unbounded", discard: true },
      )
      for (const { row } of parents) {
        const { inbox, seq } = yield* rowOf(bench, row)
        assert.deepEqual([inbox, seq], [5, 1])
      }
    }),
}

const diesHalfway: Case = {
  law: "D29",
  title: "D29: the end of a child that dies after any of its statements has told the parent, or not ended the child",
  needs: ["failAfter"],
  run: (bench) =>
    Effect.gen(function* () {
      const parent = yield* claimed(bench)
      const child = yield* childOf(bench, parent.row)
      yield* moved(bench, parent.lease, 0, { status: "waiting" })
      const before = yield* rowOf(bench, parent.row)
      for (let statements = 0; statements < 200; statements++) {
        yield* bench.store.failAfter!(statements)
        const exit = yield* Effect.exit(bench.driver.commit([endOf(child, parent.row.runId)]))
        const after = yield* rowOf(bench, parent.row)
        if ((yield* rowOf(bench, child.row)).status === "completed") {
          assert.deepEqual([after.inbox, after.status], [1, "pending"], "a child has ended, and its parent sleeps on")
          assert.ok(statements > 0, "the fault never struck: the hook does not reach the driver")
          return
        }
        assert.ok(Exit.isFailure(exit), "a commit that did nothing succeeded")
        assert.deepEqual(after, before, "a commit that failed has told the parent")
      }
      assert.fail("the commit still failed after 200 statements")
    }),
}

export const parentCases: ReadonlyArray<Case> = [wakes, together, leftAlone, refused, noneLost, inCircles, diesHalfway]
