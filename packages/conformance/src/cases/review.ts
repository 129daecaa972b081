/** D31: whoever looks finds the reviews that can still be decided, and no other wait. */
import assert from "node:assert/strict"
import type { ReviewRow, ReviewsPage } from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Case } from "../Case.js"
import { claimed, commitOf, committed, connection, fresh, longLeaseMs, rowOf, type Bench } from "../internal/bench.js"
import { wait } from "../internal/rows.js"

const all = (bench: Bench, over: Partial<ReviewsPage> = {}) =>
  bench.driver.listReviews({ namespace: bench.namespace, after: null, limit: 100, ...over })

/** A run that has opened these waits. */
const waiting = (bench: Bench, waits: ReturnType<typeof wait>[]) =>
  Effect.gen(function* () {
    const { lease, row } = yield* claimed(bench)
    const at = yield* committed(bench, commitOf(lease, 0, { waits, run: { status: "review" } }))
    return { lease, row, at }
  })

const open: Case = {
  law: "D31",
  title: "D31: open reviews are listed with their runs, the oldest first; decided, expired and other waits are not",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const old = yield* waiting(bench, [wait("approve", { wake: { inMs: longLeaseMs } })])
      yield* bench.waitUntil(old.at + 2)
      const others = [wait("nap", { kind: "sleep" }), wait("mail", { kind: "signal" }), wait("part", { kind: "child" })]
      const young = yield* waiting(bench, [...others, wait("b"), wait("a", { data: null })])
      const { namespace, runId } = young.row
      const decided = { namespace, runId, path: "b", name: "name of b", decision: "1" }
      const rows = (yield* all(bench)).map((row) => ({ ...row }))
      const { wakeAt } = (yield* bench.driver.loadWaits(old.row.namespace, old.row.runId))!.waits[0]!
      const of = ({ at, row }: typeof old, path: string, over: Partial<ReviewRow> = {}) => ({
        ...{ namespace: row.namespace, runId: row.runId, workflow: row.workflow, version: row.version },
        ...{ path, name: `name of ${path}`, openedAt: at, wakeAt: null, data: JSON.stringify({ path }) },
        ...over,
      })
      assert.deepEqual(rows, [of(old, "approve", { wakeAt }), of(young, "a", { data: null }), of(young, "b")])
      assert.equal((yield* bench.driver.decideWait(decided))._tag, "Decided")
      yield* bench.driver.expireWait(young.lease, "a")
      assert.deepEqual(
        (yield* all(bench)).map(({ path }) => path),
        ["approve"],
        "a review that was decided or has expired is listed",
      )
      yield* committed(bench, commitOf(old.lease, 1, { closes: ["approve"] }))
      assert.deepEqual(yield* all(bench), [], "a review that was closed is listed")
      assert.deepEqual(yield* all(bench, { namespace: fresh("other") }), [])
    }),
}

const over: Case = {
  law: "D31",
  title: "D31: a review whose time has come by the store's clock is not listed, although nobody has closed it",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row } = yield* waiting(bench, [wait("soon", { wake: { inMs: 200 } }), wait("never")])
      const { waits } = (yield* bench.driver.loadWaits(row.namespace, row.runId))!
      yield* bench.waitUntil(waits.find(({ path }) => path === "soon")!.wakeAt!)
      assert.deepEqual(
        (yield* all(bench)).map(({ path }) => path),
        ["never"],
      )
      assert.equal((yield* rowOf(bench, row)).status, "review")
    }),
}

const paged: Case = {
  law: "D31",
  title: "D31: page after page each review comes once, also several of one run and of one millisecond",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const expected: Array<string> = []
      for (let run = 0; run < 4; run++) {
        const paths = ["a", "b", "c", "d", "e"].slice(run)
        const { row } = yield* waiting(
          bench,
          paths.map((path) => wait(path)),
        )
        expected.push(...paths.map((path) => `${row.runId}/${path}`))
      }
      const seen: Array<ReviewRow> = []
      for (;;) {
        assert.ok(seen.length <= expected.length, "the pages do not come to an end")
        const rows = yield* connection(bench, seen.length).listReviews({
          namespace: bench.namespace,
          after: seen.at(-1) ?? null,
          limit: 3,
        })
        assert.ok(rows.length <= 3)
        if (rows.length === 0) break
        seen.push(...rows)
      }
      const names = seen.map(({ path, runId }) => `${runId}/${path}`)
      assert.deepEqual([...names].sort(), [...expected].sort())
      const order = seen.map(({ openedAt, path, runId }) => ({ openedAt, name: `${runId}/${path}` }))
      order.sort((a, b) => a.openedAt - b.openedAt || (a.name < b.name ? -1 : 1))
      assert.deepEqual(
        names,
        order.map(({ name }) => name),
        "the pages are not in order",
      )
    }),
}

export const reviewCases: ReadonlyArray<Case> = [open, over, paged]
