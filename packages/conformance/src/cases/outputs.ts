/** D43: what was refused is kept for a while, and then taken away. */
import assert from "node:assert/strict"
import * as Effect from "effect/Effect"
import type { Case } from "../Case.js"
import { claimed, commitOf, committed, fresh, moved, openOf, type Bench } from "../internal/bench.js"
import { attempt } from "../internal/rows.js"

const rejected = (path: string, n: number) =>
  attempt(path, { attempt: n, kind: "rejected", output: JSON.stringify(`${path} ${n}`) })

const outputsOf = (bench: Bench, run: { readonly namespace: string; readonly runId: string }) =>
  Effect.map(openOf(bench, run), ({ attempts }) => attempts.map(({ output, path }) => [path, output].join(" ")))

const forget = (bench: Bench, olderThanMs: number, limit = 100) =>
  bench.driver.forgetOutputs({ namespace: bench.namespace, olderThanMs, limit })

const forgets: Case = {
  law: "D43",
  title: "D43: outputs of rejected attempts that are older than said are taken away, and nothing else of any attempt",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* claimed(bench)
      const failed = attempt("b", { attempt: 1, kind: "failed", output: '"kept"' })
      yield* committed(bench, commitOf(lease, 0, { attempts: [rejected("a", 1), rejected("a", 2), failed] }))
      const parked = yield* claimed(bench)
      yield* committed(bench, commitOf(parked.lease, 0, { attempts: [rejected("p", 1)] }))
      yield* moved(bench, parked.lease, 1, { status: "review", parked: '{"reason":"OutputInvalid"}' })
      const elsewhere = yield* claimed(bench, { namespace: fresh("conformance") })
      yield* committed(bench, commitOf(elsewhere.lease, 0, { attempts: [rejected("e", 1)] }))
      const before = yield* openOf(bench, lease)
      assert.equal(yield* forget(bench, 3_600_000), 0, "what is younger was taken away")
      assert.deepEqual(yield* openOf(bench, lease), before)
      yield* bench.waitUntil((yield* bench.driver.now) + 5)
      assert.equal(yield* forget(bench, 1, 1), 1, "no more than so many are taken away at once")
      assert.equal(yield* forget(bench, 1), 1)
      assert.equal(yield* forget(bench, 1), 0, "what is gone was counted again")
      assert.deepEqual(yield* openOf(bench, lease), {
        ...before,
        attempts: before.attempts.map((row) => (row.kind === "rejected" ? { ...row, output: null } : row)),
      })
      assert.deepEqual(yield* outputsOf(bench, parked.lease), ['p "p 1"'], "somebody is to look at it")
      assert.deepEqual(yield* outputsOf(bench, elsewhere.lease), ['e "e 1"'], "it is of another namespace")
    }),
}

export const outputCases: ReadonlyArray<Case> = [forgets]
