/** D38: what a stretch of a run's commits has left, page after page. */
import assert from "node:assert/strict"
import type { HistoryQuery, HistoryRows, RunRow } from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Case } from "../Case.js"
import {
  claim,
  claimed,
  commitOf,
  committed,
  fresh,
  leaseOf,
  liveWorker,
  longLeaseMs,
  loud,
  moved,
  only,
  openOf,
  underWay,
  waitsOf,
  type Bench,
} from "../internal/bench.js"
import { attempt, intent, standing, step, stepsQuery, wait } from "../internal/rows.js"

const all = Number.MAX_SAFE_INTEGER

/** What a stretch has left, as plain rows. */
const historyOf = (
  { driver }: Pick<Bench, "driver">,
  { namespace, runId }: Pick<RunRow, "namespace" | "runId">,
  over: Partial<HistoryQuery> = {},
) =>
  Effect.map(
    driver.loadHistory({ namespace, runId, after: 0, through: all, limit: 1_000, ...over }),
    ({ attempts, steps, waits }): HistoryRows => ({
      steps: steps.map((row) => ({ ...row })),
      attempts: attempts.map((row) => ({ ...row })),
      waits: waits.map((row) => ({ ...row })),
    }),
  )

const seqs = ({ attempts, steps, waits }: HistoryRows) => ({
  steps: steps.map(({ seq }) => seq),
  attempts: attempts.map(({ seq }) => seq),
  waits: waits.map(({ seq }) => seq),
})

const withoutSeq = <A extends { readonly seq: number }>(row: A): Omit<A, "seq"> => {
  const { seq: _, ...rest } = row
  return rest
}

/** The scopes of a workflow with a loop, and a step of each. */
const scopes = ["", "agent[", "agent[0]", "agent[0]/each["]

/** A run of so many commits, each with a step, a failed attempt and a wait. */
const long = (bench: Bench, commits: number) =>
  Effect.gen(function* () {
    const owner = yield* claimed(bench)
    for (let seq = 1; seq <= commits; seq++) {
      const commit = commitOf(owner.lease, seq - 1, {
        // Paths fall while seqs rise: an order by path is another one.
        steps: [step(`s${9 - seq}`, seq, { scope: scopes[seq % scopes.length]! })],
        attempts: [attempt(`a${9 - seq}`)],
        waits: [wait(`w${9 - seq}`)],
      })
      yield* committed(bench, commit)
    }
    return owner
  })

const whole: Case = {
  law: "D38",
  title: "D38: a history has the steps of all scopes, the attempts and the waits, with the seqs of their commits",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* underWay(bench)
      const opened = wait("later", { kind: "sleep", name: null, wake: { inMs: longLeaseMs } })
      const at = yield* committed(
        bench,
        commitOf(lease, 1, {
          // What was accepted as three commits is written as one.
          seq: 4,
          steps: [
            step("agent[0]", 2, { scope: "agent[", effect: "turn", result: '{"odd":"\\u0000 \\ud800"}' }),
            step("agent[0]/think", 3, { scope: "agent[0]", idempotencyKey: "k", attempts: 3 }),
            step("last", 4, { result: null }),
          ],
          attempts: [
            attempt("later", { attempt: 7, kind: "rejected", output: '"raw"', retryInMs: 5 }),
            attempt("think", { seq: 2 }),
          ],
          waits: [opened, wait("think", { seq: 3 })],
        }),
      )
      const history = yield* historyOf(bench, lease)
      const steps = yield* bench.driver.loadSteps(stepsQuery(lease, ["", "agent[", "agent[0]"]))
      assert.deepEqual(
        history.steps,
        steps.map((row) => ({ ...row })),
      )
      assert.deepEqual(seqs(history), { steps: [1, 2, 3, 4], attempts: [1, 2, 4], waits: [1, 3, 4] })
      const { attempts } = yield* openOf(bench, lease)
      const bare = history.attempts.map(withoutSeq)
      assert.deepEqual(
        bare.sort((a, b) => (a.path < b.path ? -1 : 1)),
        attempts,
      )
      const { waits } = yield* waitsOf(bench, lease)
      const bareWaits = history.waits.map(withoutSeq)
      assert.deepEqual(
        bareWaits.sort((a, b) => (a.path < b.path ? -1 : 1)),
        waits,
      )
      assert.deepEqual(history.waits[2], {
        ...standing(opened, { openedAt: at, wakeAt: at + longLeaseMs }),
        seq: 4,
      })
    }),
}

const stretches: Case = {
  law: "D38",
  title: "D38: a stretch begins after its first seq and ends with its last one, and is of one run alone",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* long(bench, 6)
      const elsewhere = yield* claimed(bench, { namespace: fresh("conformance"), runId: lease.runId })
      const nextTo = yield* claimed(bench, { runId: `${lease.runId}-` })
      for (const other of [elsewhere, nextTo]) {
        const loud = { steps: [step("loud", 1)], attempts: [attempt("loud")], waits: [wait("loud")] }
        yield* committed(bench, commitOf(other.lease, 0, loud))
      }
      for (const [after, through, expected] of [
        [0, 6, [1, 2, 3, 4, 5, 6]],
        [2, 5, [3, 4, 5]],
        [5, all, [6]],
        [6, all, []],
        [4, 4, []],
        [0, 0, []],
      ] as const) {
        const found = seqs(yield* historyOf(bench, lease, { after, through }))
        assert.deepEqual(found, { steps: expected, attempts: expected, waits: expected }, `${after} to ${through}`)
      }
      const missing = yield* historyOf(bench, { ...lease, runId: fresh("run") })
      assert.deepEqual(missing, { steps: [], attempts: [], waits: [] })
    }),
}

const pages: Case = {
  law: "D38",
  title: "D38: of each list the first come, in order of seq and no more than the limit, so that pages give each once",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* long(bench, 7)
      const read: Array<number> = []
      for (let after = 0; ;) {
        const { attempts, steps, waits } = seqs(yield* historyOf(bench, lease, { after, limit: 2 }))
        assert.deepEqual(steps, attempts)
        assert.deepEqual(steps, waits)
        assert.ok(steps.length <= 2, `a page of ${steps.length}`)
        if (steps.length === 0) break
        read.push(...steps)
        after = steps.at(-1)!
      }
      assert.deepEqual(read, [1, 2, 3, 4, 5, 6, 7])
      assert.deepEqual(yield* historyOf(bench, lease, { limit: 0 }), { steps: [], attempts: [], waits: [] })
    }),
}

const standingWaits: Case = {
  law: "D38",
  title: "D38: a history tells of waits that stand, each at the commit that has opened it last",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* long(bench, 3)
      yield* committed(bench, commitOf(lease, 3, { steps: [], closes: ["w8"], waits: [wait("w7"), wait("new")] }))
      const decision = { namespace: lease.namespace, runId: lease.runId, path: "w6", name: "name of w6" }
      yield* bench.driver.decideWait({ ...decision, decision: '{"by":"ada"}' })
      const { waits } = yield* historyOf(bench, lease)
      assert.deepEqual(waits.map(({ path, seq, state }) => [path, seq, state]).sort(), [
        ["new", 4, "open"],
        ["w6", 3, "decided"],
        ["w7", 4, "open"],
      ])
    }),
}

const replaced: Case = {
  law: "D38",
  title: "D38: an attempt that takes the place of another is told of at its own commit, and a refused commit nowhere",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* underWay(bench)
      yield* committed(bench, commitOf(lease, 1, { attempts: [attempt("kept", { output: '"second"' })] }))
      const before = yield* historyOf(bench, lease)
      assert.deepEqual(
        before.attempts.map(({ output, path, seq }) => [path, seq, output]),
        [["kept", 2, '"second"']],
      )
      const results = yield* bench.driver.commit([loud({ ...lease, claimToken: "another" }, 2)])
      assert.equal(results[0]?._tag, "Refused")
      assert.deepEqual(yield* historyOf(bench, lease), before)
    }),
}

const beside: Case = {
  law: "D38",
  title: "D38: an attempt that is added beside commits has the seq of the run's next one",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const parked = yield* underWay(bench)
      const { namespace, runId } = parked.lease
      yield* moved(bench, parked.lease, 1, { status: "review", parked: '{"reason":"OutcomeUnknown"}' })
      const added = { attempt: 2, kind: "refused", error: "{}", output: null } as const
      const said = { generation: 0, state: "notPerformed", outcome: null, attempt: added } as const
      assert.equal(yield* bench.driver.answer({ namespace, runId, seq: 2, path: "kept", ...said }), true)
      assert.deepEqual(seqs(yield* historyOf(bench, parked.lease)).attempts, [1, 3])
      const row = only(yield* claim(bench, yield* liveWorker(bench), { runIds: [runId] }))
      const lease = leaseOf(row)
      const settled = intent(lease, "kept", { generation: 1, state: "failed", outcome: '"declined"' })
      const failing = { status: "failed", failure: "{}", release: true } as const
      yield* committed(bench, commitOf(lease, 2, { steps: [], effects: [settled], run: failing }))
      const retried = { path: "kept", attempt: { ...added, attempt: 3, kind: "retried" } } as const
      assert.equal(yield* bench.driver.reopenRun({ namespace, runId, seq: 3, ...retried }), true)
      const { attempts } = yield* historyOf(bench, lease)
      assert.deepEqual(
        attempts.map(({ kind, seq }) => [kind, seq]),
        [
          ["failed", 1],
          ["refused", 3],
          ["retried", 4],
        ],
      )
      assert.deepEqual(seqs(yield* historyOf(bench, lease, { through: 3 })).attempts, [1, 3])
    }),
}

export const historyCases: ReadonlyArray<Case> = [whole, stretches, pages, standingWaits, replaced, beside]
