/** D35 and D36: what the limits of workflows leave of a claim. */
import assert from "node:assert/strict"
import type { ClaimLimits, NewRunRow, RunRow } from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Case } from "../Case.js"
import {
  abandoned,
  claim,
  connection,
  create,
  fresh,
  leaseOf,
  liveWorker,
  moved,
  only,
  request,
  rowOf,
  workflow,
  type Bench,
} from "../internal/bench.js"

const none: ClaimLimits = { running: null, perKey: null, rate: null }

const limited = (over: Partial<ClaimLimits>) => ({ workflows: [{ ...workflow, limits: { ...none, ...over } }] })

const createMany = (bench: Bench, count: number, over: Partial<NewRunRow> = {}) =>
  Effect.forEach(Array.from({ length: count }), () => create(bench, over))

const keysOf = (rows: ReadonlyArray<RunRow>): ReadonlyArray<string> => rows.map(({ flowKey }) => flowKey ?? "").sort()

/** Twenty workers that claim at once, from every side that there is. */
const claimedByAll = (bench: Bench, over: Parameters<typeof claim>[2]) =>
  Effect.map(
    Effect.forEach(
      Array.from({ length: 20 }, (_, n) => n),
      (n) => Effect.flatMap(liveWorker(bench), (worker) => connection(bench, n).claim(request(bench, worker, over))),
      { concurrency: "unbounded" },
    ),
    (rows) => rows.flat(),
  )

const workflowLimit: Case = {
  law: "D35",
  title: "D35: of a workflow no more runs are held than said, of twenty that claim at once",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      yield* createMany(bench, 12)
      const over = limited({ running: 3 })
      const held = yield* claimedByAll(bench, over)
      assert.equal(held.length, 3, `three runs may be held, and ${held.length} were claimed`)
      yield* moved(bench, leaseOf(held[0]!), 0, { status: "completed" })
      yield* moved(bench, leaseOf(held[1]!), 0, { status: "waiting" })
      const more = yield* claimedByAll(bench, over)
      assert.equal(more.length, 2, "one run has ended and one waits: there is room for two")
      assert.equal((yield* claimedByAll(bench, {})).length, 7, "without limits all others are claimed")
    }),
}

const keyLimit: Case = {
  law: "D35",
  title:
    "D35: of one key no more runs are held than said; other keys have room of their own, runs without a key share one",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      for (const flowKey of ["a", "b", "A", " a", null, ""]) yield* createMany(bench, 3, { flowKey })
      const worker = yield* liveWorker(bench)
      const once = yield* claim(bench, worker, limited({ perKey: 1 }))
      assert.deepEqual(keysOf(once), ["", " a", "A", "a", "b"])
      const others = yield* claimedByAll(bench, limited({ perKey: 2 }))
      assert.equal(others.length, 5, `five keys had room for one run each, and ${others.length} were claimed`)
      assert.equal(new Set(keysOf(others)).size, 5)
      assert.deepEqual(yield* claim(bench, worker, limited({ perKey: 2 })), [])
      const both = yield* claim(bench, worker, limited({ perKey: 3, running: 12 }))
      assert.equal(both.length, 2, "ten are held, twelve may be")
    }),
}

const nothingHidden: Case = {
  law: "D35",
  title: "D35: what a limit holds back hides nothing that is due behind it, in whatever order it stands",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const pause = Effect.flatMap(bench.driver.now, (now) => bench.waitUntil(now + 2))
      const blocked = yield* createMany(bench, 70, { flowKey: "busy", priority: 5 })
      yield* createMany(bench, 70, { flowKey: "full", workflow: "other", priority: 5 })
      yield* pause
      const behind = yield* create(bench, { flowKey: "free" })
      yield* pause
      const free = yield* create(bench, { workflow: "unlimited", flowKey: "busy" })
      const worker = yield* liveWorker(bench)
      const limits = { ...none, perKey: 1 }
      const workflows = [
        { ...workflow, limits },
        { name: "other", version: 1, limits: { ...none, running: 1 } },
        { name: "unlimited", version: 1 },
      ]
      const before = yield* rowOf(bench, blocked[60]!)
      const first = yield* claim(bench, worker, { workflows, limit: 3 })
      assert.deepEqual(
        first.map((row) => [row.workflow, row.flowKey]),
        [
          [workflow.name, "busy"],
          ["other", "full"],
          [workflow.name, "free"],
        ],
      )
      assert.equal(first[2]!.runId, behind.runId)
      const next = yield* claim(bench, worker, { workflows, limit: 2 })
      assert.equal(only(next, "the claim behind 138 runs that are held back").runId, free.runId)
      assert.deepEqual(yield* rowOf(bench, before), before, "a run that is held back was changed")
    }),
}

const noPlace: Case = {
  law: "D35",
  title: "D35: a run that sleeps, waits or is in review, or whose owner's lease has ended, holds no place",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const over = limited({ running: 1, perKey: 1 })
      const worker = yield* liveWorker(bench)
      for (const status of ["sleeping", "waiting", "review"] as const) {
        yield* create(bench)
        const row = only(yield* claim(bench, worker, over), `the claim before one that is ${status}`)
        yield* moved(bench, leaseOf(row), 0, { status, wakeInMs: 600_000 })
      }
      const dead = yield* abandoned(bench)
      const behind = yield* create(bench)
      const taken = only(yield* claim(bench, worker, over))
      assert.equal(taken.runId, dead.row.runId, "longest due is the run of the owner whose lease has ended")
      assert.deepEqual(yield* claim(bench, worker, over), [], "now it holds the place")
      yield* moved(bench, leaseOf(taken), 0, { status: "failed" })
      assert.equal(only(yield* claim(bench, worker, over)).runId, behind.runId)
    }),
}

const whatCounts: Case = {
  law: "D35",
  title:
    "D35: all versions of a workflow count together, other workflows and namespaces do not; claims by id count too",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const worker = yield* liveWorker(bench)
      yield* create(bench, { version: 2 })
      yield* create(bench, { workflow: "other" })
      const namespace = fresh("elsewhere")
      yield* create(bench, { namespace })
      const versions = (limits: ClaimLimits) => [1, 2].map((version) => ({ name: workflow.name, version, limits }))
      const one = { ...none, running: 1 }
      only(yield* claim(bench, worker, { workflows: versions(one) }), "the claim of version 2")
      const held = yield* createMany(bench, 2)
      assert.deepEqual(yield* claim(bench, worker, { workflows: versions(one) }), [])
      const byId = { runIds: held.map(({ runId }) => runId), ...limited({ running: 1 }) }
      assert.deepEqual(yield* claim(bench, worker, byId), [], "a claim by id took more than the limit leaves")
      only(yield* claim(bench, worker, { ...byId, ...limited({ running: 2 }) }), "a claim by id where there is room")
      only(yield* claim(bench, worker, { workflows: [{ name: "other", version: 1, limits: one }] }))
      only(yield* claim(bench, worker, { namespace, ...limited({ running: 1 }) }), "the claim in another namespace")
    }),
}

/** Far longer than the calls of a case take. */
const perMs = 60_000

const rate = (count: number, over: Partial<NonNullable<ClaimLimits["rate"]>> = {}) =>
  limited({ rate: { count, perMs, perKey: false, ...over } })

const rateAtOnce: Case = {
  law: "D36",
  title:
    "D36: no more runs begin than the rate says, of twenty that claim at once; what has begun counts after its end",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      yield* createMany(bench, 12)
      const begun = yield* claimedByAll(bench, rate(5))
      assert.equal(begun.length, 5, `five runs may begin, and ${begun.length} were claimed`)
      for (const row of begun.slice(1)) yield* moved(bench, leaseOf(row), 0, { status: "completed" })
      assert.deepEqual(yield* claimedByAll(bench, rate(5)), [])
      assert.equal((yield* claimedByAll(bench, rate(7))).length, 2, "with a higher rate two more may begin")
      yield* moved(bench, leaseOf(begun[0]!), 0, { status: "sleeping", wakeInMs: 0 })
      const again = only(yield* claimedByAll(bench, rate(5)), "the claim of a run that had begun")
      assert.deepEqual([again.runId, again.fence], [begun[0]!.runId, 2])
      assert.deepEqual(
        yield* claimedByAll(bench, rate(7)),
        [],
        "a run that goes on was counted, or one of seven was not",
      )
    }),
}

const ratePerKey: Case = {
  law: "D36",
  title: "D36: a rate of each key counts each key by itself, and hides nothing behind what it holds back",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const worker = yield* liveWorker(bench)
      yield* createMany(bench, 8, { flowKey: "a", priority: 1 })
      yield* createMany(bench, 3, { flowKey: "b" })
      yield* create(bench)
      const over = rate(2, { perKey: true })
      const rows = yield* claim(bench, worker, { ...over, limit: 5 })
      assert.deepEqual(
        rows.map(({ flowKey }) => flowKey),
        ["a", "a", "b", "b", null],
      )
      assert.deepEqual(yield* claim(bench, worker, over), [])
      const elsewhere = fresh("elsewhere")
      yield* create(bench, { namespace: elsewhere, flowKey: "a" })
      only(yield* claim(bench, worker, { namespace: elsewhere, ...over }), "the claim in another namespace")
    }),
}

const anyStretch: Case = {
  law: "D36",
  title: "D36: the rate holds in every stretch of time, wherever it begins",
  needs: ["exactClock"],
  run: (bench) =>
    Effect.gen(function* () {
      yield* createMany(bench, 12)
      const worker = yield* liveWorker(bench)
      const over = rate(3, { perMs: 1_000 })
      const begins = (limit: number) => Effect.map(claim(bench, worker, { ...over, limit }), (rows) => rows.length)
      assert.equal(yield* begins(1), 1)
      yield* bench.elapse(600)
      assert.equal(yield* begins(9), 2)
      yield* bench.elapse(399)
      assert.equal(yield* begins(9), 0, "the first is 999 ms ago, and counts")
      yield* bench.elapse(1)
      assert.equal(yield* begins(9), 1, "the first counts no more, the two others do")
      yield* bench.elapse(599)
      assert.equal(yield* begins(9), 0)
      yield* bench.elapse(1)
      assert.equal(yield* begins(9), 2)
      yield* bench.elapse(5_000)
      assert.equal(yield* begins(9), 3, "what was not begun in a quiet time is not made up for")
    }),
}

export const limitCases: ReadonlyArray<Case> = [
  workflowLimit,
  keyLimit,
  nothingHidden,
  noPlace,
  whatCounts,
  rateAtOnce,
  ratePerKey,
  anyStretch,
]
