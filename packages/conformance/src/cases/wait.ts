/** D27: what a run waits for is opened and closed by its commits. */
import assert from "node:assert/strict"
import type { WaitRecord } from "@cairn/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Case } from "../Case.js"
import {
  assertRefused,
  claimed,
  commitOf,
  committed,
  create,
  fresh,
  signal,
  waitsOf,
  type Bench,
} from "../internal/bench.js"
import { standing, wait } from "../internal/rows.js"

const pathsOf = ({ waits }: { readonly waits: ReadonlyArray<WaitRecord> }): ReadonlyArray<string> =>
  waits.map(({ path }) => path)

const opened: Case = {
  law: "D27",
  title: "D27: waits are given as they were opened, in order of their paths, with times of the store and the inbox",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease } = yield* claimed(bench)
      assert.deepEqual(yield* waitsOf(bench, row), { inbox: 0, waits: [] })
      const later = (yield* bench.driver.now) + 5_000_000
      const waits = [
        wait("sleep", { kind: "sleep", name: null, data: null, wake: { at: later } }),
        wait("ask[é]/signal", { kind: "signal", name: "né 'x' %", data: null, wake: { inMs: 0.5 } }),
        wait("ask[e]/child", { kind: "child", name: "run", data: null }),
        wait("Review", { data: ' {"a":1, "a":"\\u0000"}', wake: { inMs: 60_000 } }),
      ]
      const [sleep, heard, child, review] = waits as [(typeof waits)[0], ...typeof waits]
      const at = yield* committed(bench, commitOf(lease, 0, { waits }))
      yield* bench.driver.send(signal(bench, { runId: row.runId }))
      assert.deepEqual(yield* waitsOf(bench, row), {
        inbox: 1,
        waits: [
          standing(review!, { openedAt: at, wakeAt: at + 60_000 }),
          standing(child!, { openedAt: at }),
          standing(heard!, { openedAt: at, wakeAt: at + 1 }),
          standing(sleep, { openedAt: at, wakeAt: later }),
        ],
      })
      assert.equal(yield* bench.driver.loadWaits(bench.namespace, fresh("missing")), null)
    }),
}

const closed: Case = {
  law: "D27",
  title: "D27: a commit closes waits before it opens others: one at the same path is a new one",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease } = yield* claimed(bench)
      const other = yield* claimed(bench)
      const three = ["a", "b", "c"].map((path) => wait(path, { wake: { inMs: 7_000 } }))
      const first = yield* committed(bench, commitOf(lease, 0, { waits: three }))
      yield* committed(bench, commitOf(other.lease, 0, { waits: three }))
      const { namespace, runId } = row
      yield* bench.driver.decideWait({ namespace, runId, path: "b", name: "name of b", decision: "1" })
      yield* bench.waitUntil(first + 2)
      const again = wait("b", { name: "another name", data: null })
      const twice = [wait("d", { name: "first" }), wait("d", { name: "last" })]
      const closes = ["b", "c", "c", "nothing"]
      const second = yield* committed(bench, commitOf(lease, 1, { waits: [again, ...twice], closes }))
      assert.deepEqual(yield* waitsOf(bench, row), {
        inbox: 1,
        waits: [
          standing(three[0]!, { openedAt: first, wakeAt: first + 7_000 }),
          standing(again, { openedAt: second }),
          standing(twice[1]!, { openedAt: second }),
        ],
      })
      assert.deepEqual(pathsOf(yield* waitsOf(bench, other.row)), ["a", "b", "c"], "another run's waits were closed")
      // Without a close as well: what is opened where another one stands takes its place.
      yield* committed(bench, commitOf(lease, 2, { waits: [wait("a", { kind: "sleep", name: null })] }))
      const [reopened] = (yield* waitsOf(bench, row)).waits
      assert.deepEqual([reopened?.kind, reopened?.name, reopened?.wakeAt], ["sleep", null, null])
    }),
}

const inBatch: Case = {
  law: "D27",
  title: "D27: each commit of a batch opens and closes the waits of its own run",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const runs = [yield* claimed(bench), yield* claimed(bench), yield* claimed(bench)]
      yield* bench.driver.commit(runs.map(({ lease }) => commitOf(lease, 0, { waits: [wait("a"), wait("b")] })))
      const results = yield* bench.driver.commit([
        commitOf(runs[0]!.lease, 1, { closes: ["a"] }),
        // On an older seq: refused, beside two that are not.
        commitOf(runs[1]!.lease, 0, { closes: ["a"], waits: [wait("c")] }),
        commitOf(runs[2]!.lease, 1, { closes: ["b"], waits: [wait("c")] }),
      ])
      assert.deepEqual(
        results.map(({ _tag }) => _tag),
        ["Committed", "Refused", "Committed"],
      )
      const paths = yield* Effect.forEach(runs, ({ row }) => Effect.map(waitsOf(bench, row), pathsOf))
      assert.deepEqual(paths, [["b"], ["a", "b"], ["a", "c"]])
    }),
}

const refused: Case = {
  law: "D27",
  title: "D27: a refused commit opens and closes nothing",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* claimed(bench)
      yield* committed(bench, commitOf(lease, 0, { waits: [wait("kept")] }))
      const write = { waits: [wait("late")], closes: ["kept"] }
      yield* assertRefused(bench, commitOf({ ...lease, fence: lease.fence + 1 }, 1, write), "another fence")
      yield* assertRefused(bench, commitOf(lease, 0, write), "an older seq")
      yield* assertRefused(bench, commitOf(lease, 2, write), "a seq that is ahead")
    }),
}

/** Closes one wait and opens another, until a call has died after each of its statements. */
const diesHalfway: Case = {
  law: "D27",
  title: "D27: a commit that dies after any of its statements has closed and opened its waits, or done nothing",
  needs: ["failAfter"],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease } = yield* claimed(bench)
      yield* committed(bench, commitOf(lease, 0, { waits: [wait("before")] }))
      const commit = commitOf(lease, 1, { waits: [wait("after")], closes: ["before"] })
      for (let statements = 0; statements < 200; statements++) {
        yield* bench.store.failAfter!(statements)
        const exit = yield* Effect.exit(bench.driver.commit([commit]))
        const paths = pathsOf(yield* waitsOf(bench, row))
        if (paths.includes("after")) {
          assert.deepEqual(paths, ["after"], "a wait was opened, and the other one not closed")
          assert.ok(statements > 0, "the fault never struck: the hook does not reach the driver")
          return
        }
        assert.ok(Exit.isFailure(exit), "a commit that did nothing succeeded")
        assert.deepEqual(paths, ["before"], "a commit that failed has closed a wait")
      }
      assert.fail("the commit still failed after 200 statements")
    }),
}

const transacted: Case = {
  law: "D27",
  title: "D27: a transaction that commits opens and closes its waits, and one that fails does not",
  needs: ["transactions"],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease } = yield* claimed(bench)
      const parent = yield* create(bench)
      yield* committed(bench, commitOf(lease, 0, { waits: [wait("before")] }))
      const { transact } = bench.driver
      assert.ok(transact !== undefined, "the driver has no transact")
      const commit = commitOf(lease, 1, { waits: [wait("after")], closes: ["before"], wakesParent: parent.runId })
      const limits = { timeoutMs: 5_000 }
      yield* Effect.exit(transact(limits, () => Effect.zipRight(Effect.yieldNow(), Effect.fail(fresh("failure")))))
      assert.deepEqual(pathsOf(yield* waitsOf(bench, row)), ["before"])
      const { result } = yield* transact(limits, () => Effect.succeed({ commit, value: null }))
      assert.equal(result._tag, "Committed")
      assert.deepEqual(pathsOf(yield* waitsOf(bench, row)), ["after"])
      assert.equal((yield* waitsOf(bench, parent)).inbox, 1, "the parent was not told (D29)")
      const again = yield* transact(limits, () => Effect.succeed({ commit, value: null }))
      assert.equal(again.result._tag, "Refused")
      assert.equal((yield* waitsOf(bench, parent)).inbox, 1, "a refused commit has told the parent (D29)")
    }),
}

/** Every reader sees a run between two commits, never within one. */
const atOneInstant: Case = {
  law: "D27",
  title: "D27: the waits are those of one instant, however often they change meanwhile",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease } = yield* claimed(bench)
      yield* committed(bench, commitOf(lease, 0, { waits: [wait("turn 0")] }))
      const changing = Effect.forEach(
        Array.from({ length: 20 }, (_, n) => n + 1),
        (n) =>
          Effect.zipRight(
            committed(bench, commitOf(lease, n, { waits: [wait(`turn ${n}`)], closes: [`turn ${n - 1}`] })),
            Effect.yieldNow(),
          ),
      )
      const reading = (from: Bench["driver"]) =>
        Effect.gen(function* () {
          for (let n = 0; n < 40; n++) {
            const { waits } = yield* waitsOf(bench, row, from)
            assert.equal(waits.length, 1, `a reader saw ${waits.length} waits`)
            yield* Effect.yieldNow()
          }
        })
      yield* Effect.all([changing, ...bench.connections.map(reading)], { concurrency: "unbounded" })
    }),
}

export const waitCases: ReadonlyArray<Case> = [opened, closed, inBatch, refused, diesHalfway, transacted, atOneInstant]
