/** D32: a paused run rests wherever it stands, loses nothing, and goes on from there. */
import assert from "node:assert/strict"
import type { CommitRows, RunPatch, RunRow } from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Case } from "../Case.js"
import {
  claim,
  claimed,
  commitOf,
  committed,
  connection,
  create,
  fresh,
  liveWorker,
  longLeaseMs,
  moved,
  rowOf,
  signal,
  type Bench,
} from "../internal/bench.js"
import { wait } from "../internal/rows.js"

type Of = Pick<RunRow, "namespace" | "runId">

const pause = (bench: Bench, { namespace, runId }: Of, paused = true) =>
  bench.driver.setPaused(namespace, runId, paused)

const marks: Case = {
  law: "D32",
  title: "D32: a pause marks a run with the store's time and tells its owner, who commits as before",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease, row, worker } = yield* claimed(bench)
      const from = yield* bench.driver.now
      assert.equal(yield* pause(bench, lease), "Done")
      const paused = yield* rowOf(bench, lease)
      assert.deepEqual(paused, { ...row, inbox: 1, pausedAt: paused.pausedAt })
      assert.ok(paused.pausedAt! >= from && paused.pausedAt! <= (yield* bench.driver.now))
      assert.equal((yield* bench.driver.beat(worker, longLeaseMs)).leases[0]?.inbox, 1, "a beat does not tell of it")
      yield* committed(bench, commitOf(lease, 0))
      assert.equal((yield* rowOf(bench, lease)).pausedAt, paused.pausedAt, "a commit forgot the pause")
      const before = yield* rowOf(bench, lease)
      assert.equal(yield* pause(bench, lease), "Known")
      assert.deepEqual(yield* rowOf(bench, lease), before, "a second pause has changed the run")
      assert.equal(yield* pause(bench, lease, false), "Done")
      assert.deepEqual(yield* rowOf(bench, lease), { ...before, pausedAt: null })
      assert.equal(yield* pause(bench, lease, false), "Known")
      assert.equal(yield* pause(bench, { ...lease, runId: fresh("none") }), "Missing")
    }),
}

type Rest = readonly [what: string, run: Partial<RunPatch>, over: Partial<Omit<CommitRows, "run">>]

const rests: ReadonlyArray<Rest> = [
  ["is pending", { status: "pending" }, {}],
  ["sleeps and is due", { status: "sleeping", wakeInMs: 0 }, {}],
  ["waits and is due", { status: "waiting", wakeInMs: 0 }, {}],
  ["is in review and is due", { status: "review", wakeInMs: 0 }, { waits: [wait("approve")] }],
]

const rest: Case = {
  law: "D32",
  title: "D32: a paused run is not claimed, whatever it waited for, and once it is resumed it is, as it was",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const worker = yield* liveWorker(bench)
      for (const [what, run, over] of rests) {
        const { lease } = yield* claimed(bench)
        const commit = commitOf(lease, 0, { steps: [], ...over, run: { release: true, ...run } })
        const at = yield* committed(bench, commit)
        const before = yield* rowOf(bench, lease)
        assert.equal(yield* pause(bench, lease), "Done")
        yield* bench.waitUntil(at + 2)
        const runIds = [lease.runId]
        assert.deepEqual(yield* claim(bench, worker, { runIds }), [], `a paused run that ${what} was claimed`)
        assert.deepEqual(yield* claim(bench, worker), [], `a paused run that ${what} was claimed`)
        assert.equal(yield* pause(bench, lease, false), "Done")
        assert.deepEqual(yield* rowOf(bench, lease), { ...before, inbox: before.inbox + 1 })
        const [row] = yield* claim(bench, worker)
        assert.equal(row?.runId, lease.runId, `a resumed run that ${what} was not claimed`)
        yield* moved(bench, { ...lease, fence: row.fence, claimToken: row.claimToken! }, 1, { status: "completed" })
      }
    }),
}

const mail: Case = {
  law: "D32",
  title: "D32: what arrives for a paused run is kept, and lets it go on once it is resumed",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const worker = yield* liveWorker(bench)
      const sent = yield* claimed(bench)
      const decided = yield* claimed(bench)
      yield* moved(bench, sent.lease, 0, { status: "waiting" })
      const asks = commitOf(decided.lease, 0, { waits: [wait("approve")], run: { status: "review", release: true } })
      yield* committed(bench, asks)
      for (const { lease } of [sent, decided]) yield* pause(bench, lease)
      const { namespace, runId } = decided.row
      const given = signal(bench, { runId: sent.row.runId })
      assert.deepEqual(yield* bench.driver.send(given), { _tag: "Sent", position: 2 })
      const decision = { namespace, runId, path: "approve", name: "name of approve", decision: "1" }
      assert.equal((yield* bench.driver.decideWait(decision))._tag, "Decided")
      assert.deepEqual(yield* claim(bench, worker), [], "what arrived has ended the pause")
      for (const { lease } of [sent, decided]) yield* pause(bench, lease, false)
      assert.equal((yield* claim(bench, worker)).length, 2)
      const kept = yield* bench.driver.loadSignals(sent.row.namespace, sent.row.runId, ["approved"])
      assert.deepEqual(
        kept?.signals.map(({ signalId }) => signalId),
        [given.signalId],
      )
    }),
}

const final: Case = {
  law: "D32",
  title: "D32: a run that is final is neither paused nor resumed",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      for (const status of ["completed", "failed", "canceled"] as const) {
        for (const wasPaused of [false, true]) {
          const { lease } = yield* claimed(bench)
          if (wasPaused) yield* pause(bench, lease)
          yield* moved(bench, lease, 0, { status })
          const before = yield* rowOf(bench, lease)
          assert.equal(yield* pause(bench, lease, !wasPaused), "Ended")
          assert.deepEqual(yield* rowOf(bench, lease), before)
        }
      }
    }),
}

const once: Case = {
  law: "D32",
  title: "D32: of twenty pauses one is the first, and the inbox counts one",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const run = yield* create(bench)
      const results = yield* Effect.forEach(
        Array.from({ length: 20 }),
        (_, n) => connection(bench, n).setPaused(run.namespace, run.runId, true),
        { concurrency: "unbounded" },
      )
      assert.equal(results.filter((result) => result === "Done").length, 1)
      assert.equal(results.filter((result) => result === "Known").length, 19)
      assert.equal((yield* rowOf(bench, run)).inbox, 1)
    }),
}

const canceled: Case = {
  law: "D32",
  title: "D32: a wish to cancel ends a pause, and a run that is to be canceled is not paused",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const worker = yield* liveWorker(bench)
      for (const status of ["pending", "sleeping", "running"] as const) {
        const { lease, row } = yield* claimed(bench)
        if (status !== "running") {
          yield* moved(bench, lease, 0, { status, wakeInMs: status === "sleeping" ? longLeaseMs : null })
        }
        yield* pause(bench, lease)
        assert.equal(yield* bench.driver.requestCancel(row.namespace, row.runId, null), "Requested")
        assert.equal((yield* rowOf(bench, lease)).pausedAt, null, `a run that was ${status} is still paused`)
        const before = yield* rowOf(bench, lease)
        assert.equal(yield* pause(bench, lease), "Ended")
        assert.deepEqual(yield* rowOf(bench, lease), before)
        const found = yield* claim(bench, worker)
        assert.deepEqual(
          found.map(({ runId }) => runId),
          status === "running" ? [] : [row.runId],
        )
      }
    }),
}

export const pauseCases: ReadonlyArray<Case> = [marks, rest, mail, final, once, canceled]
