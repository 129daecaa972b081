/** D22 and D24: signals are kept once, in order, and are taken by one commit. */
import assert from "node:assert/strict"
import type { NewSignalRow, RunPatch, RunRow } from "@cairn/core"
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
  fresh,
  leaseOf,
  liveWorker,
  longLeaseMs,
  moved,
  only,
  rowOf,
  signal,
  type Bench,
} from "../internal/bench.js"
import { step } from "../internal/rows.js"

/** What waits for a run, as plain rows. */
const waiting = (bench: Bench, { namespace, runId }: Pick<RunRow, "namespace" | "runId">, ...names: Array<string>) =>
  Effect.map(bench.driver.loadSignals(namespace, runId, names), (loaded) => {
    assert.ok(loaded !== null, `the signals of run '${runId}' could not be loaded`)
    return { inbox: loaded.inbox, signals: loaded.signals.map((one) => ({ ...one })) }
  })

const idsOf = (loaded: { readonly signals: ReadonlyArray<{ readonly signalId: string }> }) =>
  loaded.signals.map(({ signalId }) => signalId)

const kept: Case = {
  law: "D22",
  title: "D22: a signal is kept as it was sent, counted in the inbox, and moves neither seq nor fence",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* claimed(bench)
      yield* committed(bench, commitOf(lease, 0))
      const before = yield* rowOf(bench, lease)
      const texts: ReadonlyArray<string | null> = [null, "null", ' {"a":1, "a":"\\u0000"}']
      for (const [index, payload] of texts.entries()) {
        const given = signal(bench, { runId: lease.runId, name: `né '${index}'`, payload, payloadHash: `h'${index}` })
        const from = yield* bench.driver.now
        assert.deepEqual(yield* bench.driver.send(given), { _tag: "Sent", position: index + 1 })
        const { inbox, signals } = yield* waiting(bench, lease, given.name)
        assert.equal(inbox, index + 1, "a signal was not counted")
        const { namespace: _, runId: __, ...columns } = given
        const sentAt = signals[0]?.sentAt ?? 0
        assert.deepEqual(signals, [{ ...columns, position: index + 1, sentAt }])
        assert.ok(sentAt >= from && sentAt <= (yield* bench.driver.now), "sentAt is not the store's clock")
      }
      // A running run goes on as if nothing were: its owner commits on the seq that it knows.
      assert.deepEqual(yield* rowOf(bench, lease), { ...before, inbox: 3 })
      yield* committed(bench, commitOf(lease, 1))
    }),
}

const idempotent: Case = {
  law: "D22",
  title: "D22: a signal that is sent again changes nothing, also once it is consumed or the run is final",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* claimed(bench)
      const given = signal(bench, { runId: lease.runId })
      assert.deepEqual(yield* bench.driver.send(given), { _tag: "Sent", position: 1 })
      const again = (what: string) =>
        Effect.gen(function* () {
          const before = [yield* rowOf(bench, lease), yield* waiting(bench, lease, given.name)]
          const answers = [
            yield* bench.driver.send(given),
            yield* bench.driver.send({ ...given, payloadHash: "another" }),
            yield* bench.driver.send({ ...given, name: "another" }),
          ]
          assert.deepEqual(answers, [{ _tag: "Known" }, { _tag: "Differs" }, { _tag: "Differs" }], what)
          assert.deepEqual([yield* rowOf(bench, lease), yield* waiting(bench, lease, given.name)], before, what)
        })
      yield* again("a signal that waits was sent again")
      yield* committed(
        bench,
        commitOf(lease, 0, { steps: [step("s", 1)], consumes: [{ signalId: given.signalId, path: "s" }] }),
      )
      yield* again("a signal that was consumed was sent again")
      yield* moved(bench, lease, 1, { status: "completed" })
      yield* again("a signal to a run that is final was sent again")
      // The id is one run's own.
      const other = yield* create(bench)
      assert.deepEqual(yield* bench.driver.send({ ...given, runId: other.runId }), { _tag: "Sent", position: 1 })
    }),
}

const ended: Case = {
  law: "D22",
  title: "D22: a run that is final takes no new signal",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      for (const status of ["completed", "failed", "canceled"] as const) {
        const { lease } = yield* claimed(bench)
        yield* moved(bench, lease, 0, { status })
        const before = yield* rowOf(bench, lease)
        assert.deepEqual(yield* bench.driver.send(signal(bench, { runId: lease.runId })), { _tag: "Ended", status })
        assert.deepEqual(yield* rowOf(bench, lease), before)
        assert.deepEqual(yield* waiting(bench, lease, "approved"), { inbox: 0, signals: [] })
      }
    }),
}

type Rest = readonly [what: string, run: Partial<RunPatch>, wakes: boolean]

const rests: ReadonlyArray<Rest> = [
  ["waits", { status: "waiting" }, true],
  ["waits until some time", { status: "waiting", wakeInMs: longLeaseMs }, true],
  ["is in review as its workflow says", { status: "review" }, true],
  ["is parked for a fault", { status: "review", parked: '{"reason":"OutcomeUnknown"}' }, false],
  ["sleeps", { status: "sleeping", wakeInMs: longLeaseMs }, false],
  ["is pending", { status: "pending" }, false],
]

const wakes: Case = {
  law: "D22",
  title: "D22: a signal ends the wait of a run that waits, and of no other",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const worker = yield* liveWorker(bench)
      for (const [what, run, isWoken] of rests) {
        const { lease } = yield* claimed(bench)
        yield* moved(bench, lease, 0, run)
        const before = yield* rowOf(bench, lease)
        yield* bench.driver.send(signal(bench, { runId: lease.runId }))
        const after = yield* rowOf(bench, lease)
        const woken = { status: "pending", wakeAt: null, updatedAt: after.updatedAt }
        assert.deepEqual(after, { ...before, inbox: 1, ...(isWoken ? woken : {}) }, `a signal to a run that ${what}`)
        const claims = yield* claim(bench, worker, { runIds: [lease.runId] })
        assert.equal(claims.length, isWoken || run.status === "pending" ? 1 : 0, `the claim of a run that ${what}`)
        assert.deepEqual(
          idsOf(yield* waiting(bench, lease, "approved")).length,
          1,
          `a run that ${what} lost its signal`,
        )
      }
    }),
}

const positions: Case = {
  law: "D22",
  title: "D22: of thirty signals from several sides each has a position of its own, and the inbox counts them all",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const run = yield* create(bench)
      const given: ReadonlyArray<NewSignalRow> = Array.from({ length: 30 }, (_, n) =>
        // Each id twice, from two sides.
        signal(bench, { runId: run.runId, signalId: `s${n % 15}` }),
      )
      const results = yield* Effect.forEach(given, (one, n) => connection(bench, n).send(one), {
        concurrency: "unbounded",
      })
      const sent = results.flatMap((result) => (result._tag === "Sent" ? [result.position] : []))
      assert.deepEqual(
        [...sent].sort((a, b) => a - b),
        Array.from({ length: 15 }, (_, n) => n + 1),
      )
      assert.equal(results.filter(({ _tag }) => _tag === "Known").length, 15)
      const { inbox, signals } = yield* waiting(bench, run, "approved")
      assert.equal(inbox, 15)
      assert.deepEqual(
        signals.map(({ position }) => position),
        Array.from({ length: 15 }, (_, n) => n + 1),
      )
    }),
}

const diesHalfway: Case = {
  law: "D22",
  title: "D22: a send that dies after any of its statements has counted and kept its signal, or done nothing",
  needs: ["failAfter"],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* claimed(bench)
      yield* moved(bench, lease, 0, { status: "waiting" })
      const before = yield* rowOf(bench, lease)
      const given = signal(bench, { runId: lease.runId })
      for (let statements = 0; statements < 200; statements++) {
        yield* bench.store.failAfter!(statements)
        const exit = yield* Effect.exit(bench.driver.send(given))
        const run = yield* rowOf(bench, lease)
        const { signals } = yield* waiting(bench, lease, given.name)
        if (signals.length > 0) {
          assert.deepEqual([run.inbox, run.status], [1, "pending"], "a signal is there, and was not counted")
          assert.ok(statements > 0, "the fault never struck: the hook does not reach the driver")
          assert.deepEqual(yield* bench.driver.send(given), { _tag: "Known" })
          return
        }
        assert.ok(Exit.isFailure(exit), "a send that did nothing succeeded")
        assert.deepEqual(run, before, "a send that failed has changed the run")
      }
      assert.fail("the send still failed after 200 statements")
    }),
}

const ordered: Case = {
  law: "D24",
  title: "D24: the signals of the asked names are given in the order in which they were sent, with their run's inbox",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const run = yield* create(bench)
      const beside = yield* create(bench)
      const names = ["b", "a", "B", "b", "c", "a"]
      for (const [n, name] of names.entries()) {
        // Ids and hashes in another order than that of sending.
        yield* bench.driver.send(signal(bench, { runId: run.runId, name, signalId: `s${9 - n}` }))
        yield* bench.driver.send(signal(bench, { runId: beside.runId, name }))
      }
      assert.deepEqual(idsOf(yield* waiting(bench, run, "b")), ["s9", "s6"])
      assert.deepEqual(idsOf(yield* waiting(bench, run, "c", "a", "b", "a")), ["s9", "s8", "s6", "s5", "s4"])
      assert.deepEqual(yield* waiting(bench, run, "nobody"), { inbox: 6, signals: [] })
      assert.deepEqual(yield* waiting(bench, run), { inbox: 6, signals: [] })
    }),
}

const consumed: Case = {
  law: "D24",
  title: "D24: a signal that a commit consumes is not given again, and no other is touched",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* claimed(bench)
      const other = yield* claimed(bench)
      for (const signalId of ["first", "second", "third"]) {
        yield* bench.driver.send(signal(bench, { runId: lease.runId, signalId }))
        yield* bench.driver.send(signal(bench, { runId: other.lease.runId, signalId }))
      }
      const consumes = [
        { signalId: "second", path: "s" },
        // Of two steps the first takes it; one that was never sent is nobody's.
        { signalId: "second", path: "t" },
        { signalId: "missing", path: "s" },
      ]
      yield* committed(bench, commitOf(lease, 0, { steps: [step("s", 1)], consumes }))
      assert.deepEqual(idsOf(yield* waiting(bench, lease, "approved")), ["first", "third"])
      assert.deepEqual(idsOf(yield* waiting(bench, other.lease, "approved")), ["first", "second", "third"])
      // Taken once: whoever takes it again takes nothing, and everything else of the commit is there.
      yield* committed(bench, commitOf(lease, 1, { consumes: consumes.slice(0, 1) }))
      const { inbox, signals } = yield* waiting(bench, lease, "approved")
      assert.deepEqual([inbox, signals.length], [3, 2])
      const batch = [
        commitOf(lease, 2, { consumes: [{ signalId: "first", path: "step-3" }] }),
        commitOf(other.lease, 0, { consumes: [{ signalId: "third", path: "step-1" }] }),
      ]
      const results = yield* bench.driver.commit(batch)
      assert.deepEqual(
        results.map(({ _tag }) => _tag),
        ["Committed", "Committed"],
      )
      assert.deepEqual(idsOf(yield* waiting(bench, lease, "approved")), ["third"])
      assert.deepEqual(idsOf(yield* waiting(bench, other.lease, "approved")), ["first", "second"])
    }),
}

const refusedConsumes: Case = {
  law: "D24",
  title: "D24: a refused commit consumes nothing, and the next owner is given the signal",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease, worker } = yield* claimed(bench)
      const given = signal(bench, { runId: lease.runId })
      yield* bench.driver.send(given)
      const consumes = [{ signalId: given.signalId, path: "s" }]
      yield* assertRefused(bench, commitOf({ ...lease, fence: lease.fence + 1 }, 0, { consumes }), "another fence")
      yield* assertRefused(bench, commitOf(lease, 1, { consumes }), "a seq that is ahead")
      yield* bench.driver.releaseWorker(worker)
      const next = leaseOf(only(yield* claim(bench, yield* liveWorker(bench), { runIds: [lease.runId] })))
      yield* assertRefused(bench, commitOf(lease, 0, { consumes }), "an earlier owner")
      assert.deepEqual(idsOf(yield* waiting(bench, lease, "approved")), [given.signalId])
      yield* committed(bench, commitOf(next, 0, { consumes }))
      assert.deepEqual(idsOf(yield* waiting(bench, lease, "approved")), [])
    }),
}

const transacted: Case = {
  law: "D24",
  title: "D24: a transaction that commits consumes its signals, and one that fails does not",
  needs: ["transactions"],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* claimed(bench)
      const given = signal(bench, { runId: lease.runId })
      yield* bench.driver.send(given)
      const commit = commitOf(lease, 0, { consumes: [{ signalId: given.signalId, path: "step-1" }] })
      const { transact } = bench.driver
      assert.ok(transact !== undefined, "the driver has no transact")
      const limits = { timeoutMs: 5_000 }
      yield* Effect.exit(transact(limits, () => Effect.zipRight(Effect.yieldNow(), Effect.fail(fresh("failure")))))
      assert.deepEqual(idsOf(yield* waiting(bench, lease, "approved")), [given.signalId])
      const { result } = yield* transact(limits, () => Effect.succeed({ commit, value: null }))
      assert.equal(result._tag, "Committed")
      assert.deepEqual(idsOf(yield* waiting(bench, lease, "approved")), [])
    }),
}

export const signalCases: ReadonlyArray<Case> = [
  kept,
  idempotent,
  ended,
  wakes,
  positions,
  diesHalfway,
  ordered,
  consumed,
  refusedConsumes,
  transacted,
]
