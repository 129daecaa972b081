/** D30: runs are found by what they are filtered for, newest first, and each once over all pages. */
import assert from "node:assert/strict"
import type { ListedRow, RunRow, RunsPage } from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Case } from "../Case.js"
import { claimed, connection, create, fresh, moved, newRun, rowOf, type Bench } from "../internal/bench.js"

const page = (bench: Bench, over: Partial<RunsPage> = {}): RunsPage => ({
  namespace: bench.namespace,
  workflow: null,
  statuses: null,
  parentRunId: null,
  createdFrom: null,
  createdBefore: null,
  after: null,
  limit: 100,
  ...over,
})

const idsOf = (rows: ReadonlyArray<ListedRow>) => rows.map(({ runId }) => runId)

const found = (bench: Bench, over: Partial<RunsPage> = {}) =>
  Effect.map(bench.driver.listRuns(page(bench, over)), idsOf)

/** A run that is created some time after all before. */
const later = (bench: Bench, over: Parameters<typeof newRun>[1] = {}) =>
  Effect.gen(function* () {
    const run = yield* create(bench, over)
    yield* bench.waitUntil(run.createdAt + 2)
    return run
  })

const whole: Case = {
  law: "D30",
  title: "D30: runs are listed newest first, each as it stands, without input and output",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const first = yield* later(bench, { parentRunId: "parent", parentPath: "p", flowKey: "k", priority: 3 })
      const { lease } = yield* claimed(bench)
      const ended = { status: "failed", output: '"late"', failure: '{"kind":"x"}', cursor: "c" } as const
      yield* moved(bench, lease, 0, ended)
      const expected = yield* Effect.forEach([lease, first], (run) =>
        Effect.map(rowOf(bench, run), (row) => {
          const listed: { -readonly [K in keyof RunRow]?: RunRow[K] } = { ...row }
          delete listed.input
          delete listed.output
          return listed
        }),
      )
      const listed = yield* bench.driver.listRuns(page(bench))
      assert.deepEqual(
        listed.map((row) => ({ ...row })),
        expected,
      )
      assert.deepEqual(yield* found(bench, { limit: 1 }), [lease.runId])
      assert.deepEqual(yield* found(bench, { limit: 0 }), [])
      assert.deepEqual(yield* found(bench, { namespace: fresh("other") }), [])
    }),
}

const filtered: Case = {
  law: "D30",
  title: "D30: each filter lets through what fits it exactly, and all of them together",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const plain = yield* later(bench)
      const other = yield* later(bench, { workflow: "Invoice" })
      const wild = yield* later(bench, { workflow: "invoic_" })
      const child = yield* later(bench, { parentRunId: plain.runId, parentPath: "child" })
      const { lease } = yield* claimed(bench)
      yield* moved(bench, lease, 0, { status: "completed" })
      const gives = (what: string, over: Partial<RunsPage>, expected: ReadonlyArray<string>) =>
        Effect.map(found(bench, over), (ids) => assert.deepEqual(ids, expected, what))
      yield* gives("a workflow", { workflow: "invoice" }, [lease.runId, child.runId, plain.runId])
      yield* gives("a workflow with a wildcard", { workflow: "invoic_" }, [wild.runId])
      yield* gives("one status", { statuses: ["completed"] }, [lease.runId])
      const all = [lease.runId, child.runId, wild.runId, other.runId, plain.runId]
      yield* gives("two statuses", { statuses: ["pending", "completed"] }, all)
      yield* gives("a status that no run has", { statuses: ["failed", "canceled", "review"] }, [])
      yield* gives("no status at all", { statuses: [] }, [])
      yield* gives("a parent", { parentRunId: plain.runId }, [child.runId])
      yield* gives("a parent without children", { parentRunId: child.runId }, [])
      yield* gives("from a time", { createdFrom: child.createdAt }, [lease.runId, child.runId])
      yield* gives("before a time", { createdBefore: wild.createdAt }, [other.runId, plain.runId])
      const together = { workflow: "invoice", statuses: ["pending"], createdFrom: plain.createdAt } as const
      yield* gives("several filters", together, [child.runId, plain.runId])
      yield* gives("several filters and a time", { ...together, createdBefore: child.createdAt }, [plain.runId])
    }),
}

const paged: Case = {
  law: "D30",
  title: "D30: page after page each run comes once, also those of one millisecond, whatever is created meanwhile",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      // In one transaction: most of them have the same time.
      const runs = Array.from({ length: 23 }, (_, n) => newRun(bench, { runId: `run-${String(n).padStart(2, "0")}` }))
      yield* bench.driver.createRuns(runs.slice(0, 12))
      yield* bench.driver.createRuns(runs.slice(12))
      const seen: Array<ListedRow> = []
      for (let after: RunsPage["after"] = null; ;) {
        assert.ok(seen.length <= runs.length, "the pages do not come to an end")
        const rows: ReadonlyArray<ListedRow> = yield* connection(bench, seen.length).listRuns(
          page(bench, { after, limit: 5 }),
        )
        assert.ok(rows.length <= 5)
        seen.push(...rows)
        if (rows.length === 0) break
        after = rows.at(-1)!
        // What is new comes before all that is left.
        yield* bench.waitUntil(seen[0]!.createdAt + 1)
        yield* create(bench, { runId: `run-${fresh("new")}` })
      }
      assert.deepEqual(
        [...idsOf(seen)].sort(),
        runs.map(({ runId }) => runId),
      )
      const order = [...seen].sort((a, b) => b.createdAt - a.createdAt || (a.runId < b.runId ? 1 : -1))
      assert.deepEqual(idsOf(seen), idsOf(order), "the pages are not in order")
    }),
}

export const listCases: ReadonlyArray<Case> = [whole, filtered, paged]
