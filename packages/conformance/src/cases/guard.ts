/** D3 and D4: who may commit, and on what. */
import assert from "node:assert/strict"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Case } from "../Case.js"
import {
  abandoned,
  assertRefused,
  claim,
  claimed,
  commitOf,
  committed,
  create,
  everything,
  fresh,
  leaseOf,
  liveWorker,
  loud,
  moved,
  only,
  rowOf,
  underWay,
} from "../internal/bench.js"
import { step } from "../internal/rows.js"

const wrongFence: Case = {
  law: "D3",
  title: "D3: a commit with another fence is refused and changes nothing",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* underWay(bench)
      for (const fence of [lease.fence - 1, lease.fence + 1]) {
        yield* assertRefused(bench, loud({ ...lease, fence }, 1), `fence ${fence} for ${lease.fence}`)
      }
      yield* committed(bench, commitOf(lease, 1))
    }),
}

const wrongToken: Case = {
  law: "D3",
  title: "D3: a commit with another claim token is refused and changes nothing",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* underWay(bench)
      for (const claimToken of [fresh("token"), "", lease.claimToken.toUpperCase(), `${lease.claimToken} `]) {
        yield* assertRefused(bench, loud({ ...lease, claimToken }, 1), `claim token '${claimToken}'`)
      }
      yield* committed(bench, commitOf(lease, 1))
    }),
}

const takenOver: Case = {
  law: "D3",
  title: "D3: an owner that was replaced is refused, and told who stands against it",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const old = yield* abandoned(bench)
      const worker = yield* liveWorker(bench)
      const taken = only(yield* claim(bench, worker))
      yield* assertRefused(bench, loud(old.lease, 0), "the lease of a replaced owner")
      const [result] = yield* bench.driver.commit([commitOf(old.lease, 0)])
      assert.ok(result?._tag === "Refused" && result.run !== null)
      assert.equal(result.run.claimToken, taken.claimToken)
      assert.equal(result.run.fence, old.lease.fence + 1)
      yield* committed(bench, commitOf(leaseOf(taken), 0))
    }),
}

const released: Case = {
  law: "D3",
  title: "D3: a lease that was released commits nothing more, whichever way it was released",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const byCommit = yield* claimed(bench)
      yield* committed(bench, commitOf(byCommit.lease, 0, { run: { status: "pending", release: true } }))
      const row = yield* rowOf(bench, byCommit.row)
      assert.deepEqual([row.leaseOwner, row.claimToken, row.fence, row.seq], [null, null, byCommit.lease.fence, 1])
      yield* assertRefused(bench, loud(byCommit.lease, 1), "a lease that a commit released")
      const byWorker = yield* claimed(bench)
      yield* bench.driver.releaseWorker(byWorker.worker)
      yield* assertRefused(bench, loud(byWorker.lease, 0), "a lease that its worker released")
    }),
}

const ownerless: Case = {
  law: "D3",
  title: "D3: nobody commits to a run that was never claimed, nor to one that does not exist",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const row = yield* create(bench)
      const lease = { namespace: row.namespace, runId: row.runId, fence: 0, claimToken: "" }
      yield* assertRefused(bench, loud(lease, 0), "no owner")
      const missing = { ...lease, runId: fresh("missing") }
      assert.deepEqual(yield* bench.driver.commit([loud(missing, 0)]), [{ _tag: "Refused", run: null }])
      assert.equal(yield* bench.driver.load(missing.namespace, missing.runId), null)
    }),
}

const otherNamespace: Case = {
  law: "D3",
  title: "D3: a lease counts for its own run in its own namespace only",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const mine = yield* underWay(bench)
      const sibling = yield* underWay(bench)
      const namesake = yield* underWay(bench, { namespace: fresh("conformance"), runId: mine.row.runId })
      for (const { namespace, runId } of [sibling.row, namesake.row]) {
        yield* assertRefused(bench, loud({ ...mine.lease, namespace, runId }, 1), "the lease of another run")
      }
      const beside = yield* everything(bench, namesake.row)
      yield* committed(bench, commitOf(mine.lease, 1))
      assert.deepEqual(yield* everything(bench, namesake.row), beside)
    }),
}

const endedNotReplaced: Case = {
  law: "D3",
  title: "D3: an owner whose lease has ended and whom nobody replaced still commits",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease } = yield* abandoned(bench)
      yield* committed(bench, commitOf(lease, 0))
      assert.equal((yield* rowOf(bench, row)).seq, 1)
    }),
}

const older: Case = {
  law: "D4",
  title: "D4: a commit on an older seq is refused and changes nothing, also when it is the last one sent again",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* underWay(bench)
      const last = commitOf(lease, 1)
      yield* committed(bench, last)
      yield* assertRefused(bench, last, "the seq of the last commit")
      yield* assertRefused(bench, loud(lease, 1), "base 1 on seq 2")
      yield* assertRefused(bench, loud(lease, 0), "base 0 on seq 2")
      yield* assertRefused(bench, { ...loud(lease, 1), seq: 3 }, "base 1 on seq 2, past it")
    }),
}

const skipping: Case = {
  law: "D4",
  title: "D4: a commit on a seq that was never committed is refused and changes nothing",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* underWay(bench)
      yield* assertRefused(bench, loud(lease, 2), "base 2 on seq 1")
      yield* assertRefused(bench, loud(lease, 7), "base 7 on seq 1")
      yield* committed(bench, commitOf(lease, 1))
    }),
}

const notGrowing: Case = {
  law: "D4",
  title: "D4: a commit that would not raise seq changes nothing",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease } = yield* underWay(bench)
      const before = yield* everything(bench, row)
      for (const seq of [0, 1]) {
        // Refused or an error: the contract asks only that nothing of it is written.
        const exit = yield* Effect.exit(bench.driver.commit([{ ...loud(lease, 1), seq }]))
        assert.ok(Exit.isFailure(exit) || exit.value[0]?._tag === "Refused", `seq ${seq} on seq 1 was accepted`)
        assert.deepEqual(yield* everything(bench, row), before)
      }
    }),
}

const severalSteps: Case = {
  law: "D4",
  title: "D4: one commit may carry several steps and raise seq by as many",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease } = yield* underWay(bench)
      const steps = [step("second", 2), step("third", 3), step("fourth", 4)]
      yield* committed(bench, commitOf(lease, 1, { seq: 4, steps }))
      const loaded = yield* everything(bench, row)
      assert.equal(loaded.run.seq, 4)
      assert.deepEqual(
        loaded.steps.map(({ path, seq }) => [path, seq]),
        [
          ["first", 1],
          ["second", 2],
          ["third", 3],
          ["fourth", 4],
        ],
      )
      yield* assertRefused(bench, loud(lease, 1), "the base of the large commit")
      yield* assertRefused(bench, loud(lease, 2), "a seq inside the large commit")
      yield* moved(bench, lease, 4, { status: "completed" })
    }),
}

export const guardCases: ReadonlyArray<Case> = [
  wrongFence,
  wrongToken,
  takenOver,
  released,
  ownerless,
  otherNamespace,
  endedNotReplaced,
  older,
  skipping,
  notGrowing,
  severalSteps,
]
