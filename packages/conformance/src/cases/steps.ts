/** D11: which steps a load gives, and in which order. */
import assert from "node:assert/strict"
import type { StepRecord, StepsQuery } from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Case } from "../Case.js"
import { claimed, commitOf, committed, fresh, type Bench } from "../internal/bench.js"
import { step, stepsQuery, type StepWrite } from "../internal/rows.js"

const pathsOf = (steps: ReadonlyArray<StepRecord>): ReadonlyArray<string> => steps.map(({ path }) => path)

/** Steps of the workflow itself, of turns and items, and what performs something: several at one seq, in no order. */
const written: ReadonlyArray<StepWrite> = [
  step("ask", 1),
  step("agent[0]/think", 2, { scope: "agent[0]", idempotencyKey: "k2", effect: "external:model.ask" }),
  step("agent[0]", 3, { scope: "agent[", effect: "turn" }),
  step("agent[1]/write", 4, { scope: "agent[1]", idempotencyKey: "k5" }),
  step("agent[1]/think", 4, { scope: "agent[1]", idempotencyKey: "k4", result: null }),
  step("agent[1]", 5, { scope: "agent[", effect: "turn" }),
  step("agent[10]", 6, { scope: "agent[", effect: "turn" }),
  step("agent[2]", 6, { scope: "agent[", effect: "turn" }),
  step("agent[10]/think", 6, { scope: "agent[10]" }),
  step("AGENT[1]/think", 7, { scope: "AGENT[1]" }),
  step("each[é]/send", 8, { scope: "each[é]", idempotencyKey: "k8" }),
  step("charge", 9, { idempotencyKey: "k9", effect: "external:payments.charge" }),
]

/** A run with those steps, and another one with steps of the same scopes. */
const written12 = (bench: Bench) =>
  Effect.gen(function* () {
    const { row, lease } = yield* claimed(bench)
    const at = yield* committed(bench, commitOf(lease, 0, { seq: 9, steps: written.toReversed() }))
    const other = yield* claimed(bench)
    yield* committed(
      bench,
      commitOf(other.lease, 0, { seq: 9, steps: written.map((one) => ({ ...one, result: "0" })) }),
    )
    const load = (scopes: StepsQuery["scopes"], over: Partial<StepsQuery> = {}) =>
      bench.driver.loadSteps(stepsQuery(row, scopes, over))
    return { row, at, load }
  })

const ownScope: Case = {
  law: "D11",
  title: "D11: a load gives the steps of the run's own scope, and none of a turn or an item",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { at, row } = yield* written12(bench)
      const loaded = yield* bench.driver.load(row.namespace, row.runId)
      assert.deepEqual(
        loaded?.steps.map((one) => ({ ...one })),
        written.filter(({ scope }) => scope === "").map((one) => ({ ...one, committedAt: at })),
      )
    }),
}

const byScope: Case = {
  law: "D11",
  title: "D11: the steps of exactly the asked scopes are given, in order of seq and then of path",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { at, load } = yield* written12(bench)
      const [write, think] = [written[3]!, written[4]!]
      assert.deepEqual(
        (yield* load(["agent[1]"])).map((one) => ({ ...one })),
        [think, write].map((one) => ({ ...one, committedAt: at })),
      )
      assert.deepEqual(pathsOf(yield* load(["agent["])), ["agent[0]", "agent[1]", "agent[10]", "agent[2]"])
      assert.deepEqual(pathsOf(yield* load([""])), ["ask", "charge"])
      assert.deepEqual(pathsOf(yield* load(["agent[10]", "each[é]", "agent[0]", "agent[10]"])), [
        "agent[0]/think",
        "agent[10]/think",
        "each[é]/send",
      ])
      // Among many: more than a statement takes at once.
      const many = Array.from({ length: 70 }, (_, n) => `none[${n}]`)
      assert.deepEqual(pathsOf(yield* load([...many, "AGENT[1]", ""])), ["ask", "AGENT[1]/think", "charge"])
      for (const scope of ["agent", "agent[%]", "agent[_]", "each[e\u0301]", "agent[ "]) {
        assert.deepEqual(yield* load([scope]), [], `there is no scope '${scope}'`)
      }
      assert.deepEqual(yield* load([]), [])
      const none = { namespace: bench.namespace, runId: fresh("missing") }
      assert.deepEqual(yield* bench.driver.loadSteps(stepsQuery(none, [""])), [])
    }),
}

const performed: Case = {
  law: "D11",
  title: "D11: those that have an idempotency key are given, in whatever scope they stand",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { load } = yield* written12(bench)
      const wanted = ["agent[0]/think", "agent[1]/think", "agent[1]/write", "each[é]/send", "charge"]
      assert.deepEqual(pathsOf(yield* load(null)), wanted)
      assert.deepEqual(pathsOf(yield* load(null, { newestFirst: true })), wanted.toReversed())
      assert.deepEqual(pathsOf(yield* load(null, { newestFirst: true, limit: 2 })), ["charge", "each[é]/send"])
    }),
}

const paged: Case = {
  law: "D11",
  title: "D11: pages of any size give each step once, from the oldest or from the newest",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { load } = yield* written12(bench)
      const asked: ReadonlyArray<StepsQuery["scopes"]> = [["agent["], ["agent[1]"], ["", "agent[", "agent[1]"], null]
      for (const scopes of asked) {
        for (const newestFirst of [false, true]) {
          const all = yield* load(scopes, { newestFirst })
          const oldestFirst = yield* load(scopes)
          assert.deepEqual(pathsOf(all), newestFirst ? pathsOf(oldestFirst).toReversed() : pathsOf(oldestFirst))
          for (const limit of [1, 2, 5]) {
            const pages: Array<string> = []
            let after: StepsQuery["after"] = null
            for (let page = 0; page <= written.length; page++) {
              const steps: ReadonlyArray<StepRecord> = yield* load(scopes, { newestFirst, after, limit })
              assert.ok(steps.length <= limit, "a page is longer than its limit")
              pages.push(...pathsOf(steps))
              const last = steps.at(-1)
              if (last === undefined) break
              after = { seq: last.seq, path: last.path }
            }
            assert.deepEqual(pages, pathsOf(all), `pages of ${limit}, ${newestFirst ? "newest" : "oldest"} first`)
          }
        }
      }
      assert.deepEqual(yield* load(["agent["], { limit: 0 }), [])
      const beyond = { seq: 1_000, path: "" }
      assert.deepEqual(yield* load(["agent["], { after: beyond }), [])
      assert.equal((yield* load(["agent["], { after: beyond, newestFirst: true })).length, 4)
    }),
}

const bare: Case = {
  law: "D11",
  title: "D11: without results the steps are the same, and every result is null",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { load } = yield* written12(bench)
      for (const scopes of [["agent["], ["agent[0]", "agent[1]"], null]) {
        const steps = yield* load(scopes)
        assert.ok(steps.some(({ result }) => result !== null))
        assert.deepEqual(
          (yield* load(scopes, { withResults: false })).map((one) => ({ ...one })),
          steps.map((one) => ({ ...one, result: null })),
        )
      }
    }),
}

export const stepsCases: ReadonlyArray<Case> = [ownScope, byScope, performed, paged, bare]
