/** D41: paid calls are listed and summed, with what became of them. */
import assert from "node:assert/strict"
import type { CallsQuery, Lease } from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Case } from "../Case.js"
import {
  abandoned,
  claim,
  claimed,
  claimedBriefly,
  commitOf,
  committed,
  create,
  fresh,
  leaseOf,
  liveWorker,
  only,
  type Bench,
} from "../internal/bench.js"
import { used, callOf, endOf, listed, begun } from "../internal/paidCalls.js"
import { attempt, step } from "../internal/rows.js"

const sumsOf = (bench: Bench, by: CallsQuery["by"], over: Partial<CallsQuery> = {}) =>
  bench.driver.sumCalls({
    namespace: bench.namespace,
    by,
    workflow: null,
    runId: null,
    from: null,
    before: null,
    limit: 100,
    ...over,
  })

const outcomes: Case = {
  law: "D41",
  title:
    "D41: each call says what became of its attempt, and what was kept what each interruption since would have cost",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const old = yield* abandoned(bench)
      const made = (lease: Lease, path: string, attemptNo: number, cost: number | null) =>
        begun(bench, callOf(lease, { path, step: path, attempt: attemptNo, end: used(cost) }))
      yield* made(old.lease, "kept", 1, 5)
      yield* made(old.lease, "again", 1, 7)
      const cut = yield* begun(bench, callOf(old.lease, { path: "cut", step: "cut", atMost: 90 }))
      yield* committed(bench, commitOf(old.lease, 0, { steps: [step("kept", 1)] }))
      const row = only(yield* claim(bench, yield* liveWorker(bench), { runIds: [old.row.runId] }))
      const lease = leaseOf(row)
      yield* made(lease, "again", 1, 11)
      yield* made(lease, "tried", 1, 13)
      yield* made(lease, "tried", 2, 17)
      yield* made(lease, "tried", 3, 19)
      const open = yield* begun(bench, callOf(lease, { path: "open", step: "open", atMost: 2 }))
      yield* committed(
        bench,
        commitOf(lease, 1, {
          steps: [step("again", 2), step("tried", 2, { attempts: 3 })],
          attempts: [
            attempt("tried", { attempt: 1, kind: "failed" }),
            attempt("tried", { attempt: 2, kind: "rejected" }),
          ],
        }),
      )
      const seen = (yield* listed(bench, lease)).map(
        ({ fence, attempt: n, microDollars, outcome, path, saved, settled }) =>
          [path, fence, n, microDollars, outcome, settled, saved].join(" "),
      )
      assert.deepEqual(
        new Set(seen),
        new Set([
          "kept 1 1 5 kept known 5",
          "again 1 1 7 lost known 0",
          "cut 1 1  lost unknown 0",
          "again 2 1 11 kept known 0",
          "tried 2 1 13 failed known 0",
          "tried 2 2 17 rejected known 0",
          "tried 2 3 19 kept known 0",
          "open 2 1  open begun 0",
        ]),
      )
      assert.deepEqual(
        (yield* sumsOf(bench, "outcome")).map(({ calls, key, microDollars, open: o, reserved, saved, unknown }) =>
          [key, calls, o, unknown, microDollars, reserved, saved].join(" "),
        ),
        ["kept 3 0 0 35 0 5", "rejected 1 0 0 17 0 0", "failed 1 0 0 13 0 0", "lost 2 0 1 7 90 0", "open 1 1 0 0 2 0"],
      )
      yield* bench.driver.endCall(endOf(cut, used(3)))
      yield* bench.driver.endCall(endOf(open, used(null)))
      assert.deepEqual(
        (yield* sumsOf(bench, "outcome"))
          .filter(({ key }) => key === "lost")
          .map(({ microDollars, reserved, unknown }) => [microDollars, reserved, unknown]),
        [[10, 0, 0]],
      )
    }),
}

const summed: Case = {
  law: "D41",
  title: "D41: calls are summed by model, workflow, step, run and day, with filters, the dearest first",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const one = yield* claimed(bench)
      const two = yield* claimed(bench, { workflow: "other" })
      const made = (lease: Lease, model: string, path: string, cost: number | null, tokens: number | null) =>
        begun(
          bench,
          callOf(lease, {
            model,
            path: `agent[${path}]/think`,
            step: "agent[]/think",
            scope: `agent[${path}]`,
            end: used(cost, { inputTokens: tokens, outputTokens: tokens, cachedInputTokens: 1 }),
          }),
        )
      yield* made(one.lease, "big", "1", 50, 10)
      yield* made(one.lease, "big", "2", 70, 20)
      yield* made(one.lease, "small", "3", 1, 30)
      yield* made(two.lease, "small", "1", null, null)
      yield* begun(bench, callOf(two.lease, { model: "small", path: "p", step: "p", end: used(200) }))
      const short = (rows: Effect.Effect.Success<ReturnType<typeof sumsOf>>) =>
        rows.map(({ calls, inputTokens, key, microDollars, outputTokens, unknown, workflow }) =>
          [key, workflow ?? "-", calls, unknown, inputTokens, outputTokens, microDollars].join(" "),
        )
      assert.deepEqual(short(yield* sumsOf(bench, "model")), ["small - 3 1 30 30 201", "big - 2 0 30 30 120"])
      assert.deepEqual(short(yield* sumsOf(bench, "workflow")), ["other - 2 1 0 0 200", "invoice - 3 0 60 60 121"])
      assert.deepEqual(short(yield* sumsOf(bench, "step")), [
        "p other 1 0 0 0 200",
        "agent[]/think invoice 3 0 60 60 121",
        "agent[]/think other 1 1 0 0 0",
      ])
      assert.deepEqual(short(yield* sumsOf(bench, "step", { limit: 1 })), ["p other 1 0 0 0 200"])
      assert.deepEqual(short(yield* sumsOf(bench, "run", { runId: one.lease.runId })), [
        `${one.lease.runId} invoice 3 0 60 60 121`,
      ])
      const now = yield* bench.driver.now
      const day = new Date(now).toISOString().slice(0, 10)
      assert.ok((yield* sumsOf(bench, "day")).every(({ key }) => key === day || now % 86_400_000 < 600_000))
      assert.deepEqual(yield* sumsOf(bench, "model", { before: now - 86_400_000 }), [])
      assert.deepEqual(short(yield* sumsOf(bench, "model", { workflow: "other", from: now - 600_000 })), [
        "small - 2 1 0 0 200",
      ])
      assert.deepEqual(yield* bench.driver.sumCalls({ ...queryOf(fresh("elsewhere")) }), [])
      assert.deepEqual(yield* sumsOf(bench, "model", { limit: 0 }), [])
    }),
}

const capped: Case = {
  law: "D41",
  title:
    "D41: a sum never leaves 2^53 - 1: it is that much or more, of money, of tokens, of what is reserved and saved",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const most = Number.MAX_SAFE_INTEGER
      const { lease, row } = yield* abandoned(bench)
      const tokens = { inputTokens: most, outputTokens: most, cachedInputTokens: most }
      for (const path of ["a", "b"]) {
        yield* begun(bench, callOf(lease, { path, step: path, end: used(most, tokens) }))
        yield* begun(bench, callOf(lease, { path, step: path, atMost: most }))
      }
      yield* committed(bench, commitOf(lease, 0, { steps: [step("a", 1), step("b", 1)] }))
      // Two crashes: what was kept would have been paid for three times.
      const { until } = yield* claimedBriefly(bench, [row.runId])
      yield* bench.waitUntil(until + 5)
      yield* claim(bench, yield* liveWorker(bench), { runIds: [row.runId] })
      const [sum] = yield* sumsOf(bench, "model")
      const all = { ...tokens, microDollars: most, reserved: most, saved: most }
      assert.deepEqual(sum, { key: "gpt-4o", workflow: null, calls: 4, open: 0, unknown: 2, ...all })
      const kept = (yield* listed(bench, lease)).filter(({ microDollars }) => microDollars !== null)
      assert.deepEqual(
        kept.map(({ saved }) => saved),
        [most, most],
      )
    }),
}

const queryOf = (namespace: string): CallsQuery => ({
  namespace,
  by: "model",
  workflow: null,
  runId: null,
  from: null,
  before: null,
  limit: 10,
})

const pages: Case = {
  law: "D41",
  title: "D41: the calls of a run are listed in order, each once over all pages, and of no other run",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* claimed(bench)
      const other = yield* claimed(bench)
      yield* begun(bench, callOf(other.lease))
      for (let n = 0; n < 7; n++) yield* begun(bench, callOf(lease, { end: used(n) }))
      const { namespace, runId } = lease
      const all: Array<string> = []
      let after: { readonly startedAt: number; readonly callId: string } | null = null
      for (let pages = 0; pages < 10; pages++) {
        const page: ReadonlyArray<{ readonly startedAt: number; readonly callId: string }> =
          yield* bench.driver.listCalls({ namespace, runId, after, limit: 3 })
        assert.ok(page.length <= 3)
        if (page.length === 0) break
        all.push(...page.map(({ callId }) => callId))
        const { callId, startedAt } = page.at(-1)!
        after = { callId, startedAt }
      }
      const whole = yield* listed(bench, lease)
      assert.deepEqual(
        all,
        whole.map(({ callId }) => callId),
      )
      assert.equal(new Set(all).size, 7)
      assert.deepEqual(yield* bench.driver.listCalls({ namespace, runId: fresh("run"), after: null, limit: 3 }), [])
      const run = yield* create(bench)
      assert.deepEqual(yield* listed(bench, run), [])
    }),
}

export const callSumCases: ReadonlyArray<Case> = [outcomes, summed, capped, pages]
