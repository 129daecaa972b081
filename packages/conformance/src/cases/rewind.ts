/** D42: a run goes back to what it was before a commit, for its owner alone, and never over what has happened outside. */
import assert from "node:assert/strict"
import type { CommitRows, Lease, RewindRow, RunRow } from "@cairn/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Case } from "../Case.js"
import {
  abandoned,
  claim,
  claimed,
  commitOf,
  committed,
  connection,
  everything,
  fresh,
  leaseOf,
  liveWorker,
  newRun,
  only,
  signal,
  type Bench,
} from "../internal/bench.js"
import { attempt, intent, step, stepsQuery, wait } from "../internal/rows.js"

const scopes = ["", "agent[", "agent[0]", "agent[1]", ":beside"]

type Of = Pick<RunRow, "namespace" | "runId">

const stepsOf = (bench: Bench, run: Of) =>
  Effect.map(bench.driver.loadSteps(stepsQuery(run, scopes)), (steps) => steps.map((one) => ({ ...one })))

const attemptsOf = (bench: Bench, run: Of) =>
  Effect.map(everything(bench, run), ({ attempts }) => attempts.map(({ attempt: n, kind, path }) => [path, n, kind]))

const rewindOf = (lease: Lease, base: number, toSeq: number, over: Partial<RewindRow> = {}): RewindRow => ({
  lease,
  base,
  seq: base + 1,
  toSeq,
  cursor: "read",
  mark: step(`mark@${base + 1}`, base + 1, { scope: ":beside", effect: "rewound" }),
  ...over,
})

/** Of several scopes: a step that has read at seq 2, and what came after it, up to seq 5. */
const history = (bench: Bench) =>
  Effect.gen(function* () {
    const { lease, row } = yield* claimed(bench)
    for (const signalId of ["s1", "s2", "s3"]) yield* bench.driver.send(signal(bench, { runId: lease.runId, signalId }))
    const taken = (signalId: string, path: string): CommitRows["consumes"] => [{ signalId, path }]
    yield* committed(
      bench,
      commitOf(lease, 0, {
        steps: [step("early", 1, { effect: "signal" }), step("agent[0]", 1, { scope: "agent[" })],
        attempts: [attempt("read")],
        waits: [wait("old")],
        consumes: taken("s1", "early"),
      }),
    )
    const settled = [
      intent(lease, "later", { state: "failed", outcome: '"no"' }),
      intent(lease, "kept", { state: "notPerformed" }),
    ]
    yield* committed(
      bench,
      commitOf(lease, 1, {
        steps: [step("read", 2), step("read", 2, { path: ":read", scope: ":beside" })],
        attempts: [attempt("later", { kind: "refused" }), attempt("later", { attempt: 2 })],
        effects: settled,
      }),
    )
    yield* committed(
      bench,
      commitOf(lease, 2, {
        steps: [step("agent[0]/think", 3, { scope: "agent[0]" }), step("late", 3, { effect: "signal" })],
        consumes: taken("s2", "late"),
        waits: [wait("approve"), wait("nap", { kind: "sleep", name: null, wake: { at: 5 } })],
        closes: ["old"],
      }),
    )
    yield* committed(
      bench,
      commitOf(lease, 3, {
        steps: [step("agent[1]", 4, { scope: "agent[" }), step("given", 4)],
        consumes: taken("s3", "given"),
      }),
    )
    yield* committed(bench, commitOf(lease, 4, { steps: [step("last", 5)], run: { cursor: "last" } }))
    return { lease, row }
  })

const rewound = (bench: Bench, rewind: RewindRow) =>
  Effect.map(bench.driver.rewindRun(rewind), (result) => {
    assert.equal(result._tag, "Committed", `an owner's rewind to ${rewind.toSeq} was ${result._tag}`)
    return (result as Extract<typeof result, { readonly _tag: "Committed" }>).at
  })

const undoes: Case = {
  law: "D42",
  title: "D42: what was committed from there on is gone, of all scopes, and what was before it stands",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* history(bench)
      const other = yield* history(bench)
      const before = yield* everything(bench, lease)
      const steps = yield* stepsOf(bench, lease)
      const beside = yield* stepsOf(bench, other.lease)
      yield* bench.waitUntil(before.run.updatedAt + 2)
      const rewind = rewindOf(lease, 5, 2)
      const at = yield* rewound(bench, rewind)
      assert.ok(at > before.run.updatedAt)
      const after = yield* everything(bench, lease)
      assert.deepEqual(after.run, { ...before.run, seq: 6, cursor: "read", updatedAt: at })
      const kept = steps.filter(({ seq }) => seq < 2)
      assert.deepEqual(yield* stepsOf(bench, lease), [...kept, { ...rewind.mark, committedAt: at }])
      assert.deepEqual(after.effects, before.effects, "effects are not undone")
      // What was waited for and is over is not there again either.
      assert.deepEqual(after.waits, [])
      assert.deepEqual(yield* stepsOf(bench, other.lease), beside, "another run was touched")
      // It goes on from there, also at the paths that are free again.
      yield* committed(bench, commitOf(lease, 6, { steps: [step("read", 7)], waits: [wait("approve")] }))
    }),
}

const attempts: Case = {
  law: "D42",
  title: "D42: attempts go with their steps, but for those that account for an operation that did not happen",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* history(bench)
      yield* rewound(bench, rewindOf(lease, 5, 3))
      assert.deepEqual(yield* attemptsOf(bench, lease), [
        ["later", 1, "refused"],
        ["later", 2, "failed"],
        ["read", 1, "failed"],
      ])
      // That of the step itself is older than the step.
      yield* rewound(bench, rewindOf(lease, 6, 2))
      assert.deepEqual(yield* attemptsOf(bench, lease), [["later", 1, "refused"]])
    }),
}

const signals: Case = {
  law: "D42",
  title: "D42: signals that were waited for from there on are given again, in their order, and no others",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* history(bench)
      const given = (names: ReadonlyArray<string>) =>
        Effect.map(bench.driver.loadSignals(lease.namespace, lease.runId, ["approved"]), (loaded) =>
          assert.deepEqual(
            loaded?.signals.map(({ signalId }) => signalId),
            names,
          ),
        )
      yield* given([])
      yield* rewound(bench, rewindOf(lease, 5, 2))
      yield* given(["s2"])
      yield* rewound(bench, rewindOf(lease, 6, 1))
      yield* given(["s1", "s2"])
      const consumes = [{ signalId: "s1", path: "early" }]
      yield* committed(bench, commitOf(lease, 7, { steps: [step("early", 8, { effect: "signal" })], consumes }))
      yield* given(["s2"])
    }),
}

/** A rewind that must change nothing, and say why. */
const unchanged = (bench: Bench, rewind: RewindRow, tag: "Refused" | "Performed", why: string) =>
  Effect.gen(function* () {
    const before = [yield* everything(bench, rewind.lease), yield* stepsOf(bench, rewind.lease)]
    const result = yield* bench.driver.rewindRun(rewind)
    assert.equal(result._tag, tag, why)
    if (result._tag === "Refused") {
      const { claimToken, fence, seq, status, updatedAt } = (yield* everything(bench, rewind.lease)).run
      assert.deepEqual(result.run, { seq, fence, claimToken, status, updatedAt }, why)
    }
    const after = [yield* everything(bench, rewind.lease), yield* stepsOf(bench, rewind.lease)]
    assert.deepEqual(after, before, `a rewind that was ${tag} has changed the run: ${why}`)
  })

const performed: Case = {
  law: "D42",
  title: "D42: nothing is undone where something has happened outside from there on, or may have",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const outside: Readonly<Record<string, (lease: Lease) => Partial<CommitRows>>> = {
        "a step with a key": () => ({
          steps: [step("pay", 2, { effect: "external:pay", idempotencyKey: "key-of-pay" })],
        }),
        "a step with a key, in a turn": () => ({
          steps: [step("agent[0]/pay", 2, { scope: "agent[0]", effect: "external:pay", idempotencyKey: "k" })],
        }),
        "a transaction": () => ({ steps: [step("book", 2, { effect: "transaction" })] }),
        "a child": () => ({ steps: [step("part", 2, { effect: "child" })] }),
        "an intent": (lease) => ({ steps: [], effects: [intent(lease, "pay")] }),
        "an effect that was recorded and not committed": (lease) => ({
          steps: [],
          effects: [intent(lease, "pay", { state: "succeeded", outcome: '"r"' })],
        }),
      }
      for (const [why, commit] of Object.entries(outside)) {
        const { lease } = yield* claimed(bench)
        yield* committed(bench, commitOf(lease, 0, { steps: [step("read", 1)] }))
        yield* committed(bench, commitOf(lease, 1, commit(lease)))
        yield* committed(bench, commitOf(lease, 2))
        for (const toSeq of [1, 2]) yield* unchanged(bench, rewindOf(lease, 3, toSeq), "Performed", why)
        // Another's rewind is refused whatever has happened.
        const stolen = { ...lease, claimToken: fresh("token") }
        yield* unchanged(bench, rewindOf(lease, 3, 1, { lease: stolen }), "Refused", why)
      }
      const { lease } = yield* claimed(bench)
      const parent = { parentRunId: lease.runId, parentPath: "part" }
      yield* committed(bench, commitOf(lease, 0, { steps: [step("read", 1)] }))
      yield* bench.driver.createChild(newRun(bench, parent), lease)
      yield* unchanged(bench, rewindOf(lease, 1, 1), "Performed", "a child that nobody waits for yet")
    }),
}

const before: Case = {
  law: "D42",
  title: "D42: what happened outside before that keeps nobody from going back to after it",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* claimed(bench)
      const parent = { parentRunId: lease.runId, parentPath: "part" }
      yield* bench.driver.createChild(newRun(bench, parent), lease)
      const paid = intent(lease, "pay", { state: "succeeded", outcome: '"r"' })
      const pay = step("pay", 1, { effect: "external:pay", idempotencyKey: paid.idempotencyKey })
      const past = [pay, step("book", 1, { effect: "transaction" }), step("part", 1, { effect: "child" })]
      yield* committed(bench, commitOf(lease, 0, { steps: past, effects: [paid] }))
      // Known not to have happened, or none at all.
      const failed = intent(lease, "try", { state: "failed", outcome: '"no"' })
      yield* committed(bench, commitOf(lease, 1, { steps: [step("skipped", 2)], effects: [failed] }))
      const kept = (yield* stepsOf(bench, lease)).filter(({ seq }) => seq < 2)
      yield* rewound(bench, rewindOf(lease, 2, 2))
      const steps = yield* stepsOf(bench, lease)
      assert.deepEqual(
        steps.map(({ path }) => path),
        [...kept.map(({ path }) => path), "mark@3"],
      )
      const { effects } = yield* everything(bench, lease)
      assert.deepEqual(
        effects.map(({ path, state }) => [path, state]),
        [
          ["pay", "succeeded"],
          ["try", "failed"],
        ],
      )
    }),
}

const refuses: Case = {
  law: "D42",
  title: "D42: a rewind of somebody who is no owner, or from another seq, is refused and changes nothing",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* history(bench)
      const strangers: Readonly<Record<string, Partial<RewindRow>>> = {
        "another token": { lease: { ...lease, claimToken: fresh("token") } },
        "an older fence": { lease: { ...lease, fence: lease.fence - 1 } },
        "an older base": { base: 4 },
        "a base that is not there yet": { base: 6, seq: 7 },
        "a seq that does not grow": { seq: 5 },
      }
      for (const [why, over] of Object.entries(strangers)) {
        yield* unchanged(bench, rewindOf(lease, 5, 2, over), "Refused", why)
      }
      const gone = { ...lease, runId: fresh("run") }
      assert.deepEqual(yield* bench.driver.rewindRun(rewindOf(gone, 5, 2)), { _tag: "Refused", run: null })
      // An owner whose lease has ended, until somebody has taken its place (D3).
      const lost = yield* abandoned(bench)
      yield* committed(bench, commitOf(lost.lease, 0))
      yield* rewound(bench, rewindOf(lost.lease, 1, 1))
      const next = leaseOf(only(yield* claim(bench, yield* liveWorker(bench), { runIds: [lost.lease.runId] })))
      yield* unchanged(bench, rewindOf(lost.lease, 2, 1), "Refused", "a run that has another owner")
      yield* rewound(bench, rewindOf(next, 2, 1))
    }),
}

const once: Case = {
  law: "D42",
  title: "D42: of twenty rewinds from one seq one is made",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* history(bench)
      const results = yield* Effect.forEach(
        Array.from({ length: 20 }),
        (_, n) => connection(bench, n).rewindRun(rewindOf(lease, 5, 2)),
        { concurrency: "unbounded" },
      )
      assert.equal(results.filter(({ _tag }) => _tag === "Committed").length, 1)
      assert.equal(results.filter(({ _tag }) => _tag === "Refused").length, 19)
      assert.equal((yield* everything(bench, lease)).run.seq, 6)
    }),
}

const diesHalfway: Case = {
  law: "D42",
  title: "D42: a rewindRun that dies after any of its statements has done all of it, or nothing",
  needs: ["failAfter"],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* history(bench)
      const stands = Effect.all([everything(bench, lease), stepsOf(bench, lease)])
      const before = yield* stands
      for (let statements = 0; statements < 200; statements++) {
        yield* bench.store.failAfter!(statements)
        const exit = yield* Effect.exit(bench.driver.rewindRun(rewindOf(lease, 5, 2)))
        const after = yield* stands
        if (after[0].run.seq === 6) {
          assert.deepEqual(
            after[1].map(({ path }) => path),
            ["agent[0]", "early", "mark@6"],
          )
          assert.deepEqual(after[0].waits, [])
          assert.deepEqual(yield* attemptsOf(bench, lease), [["later", 1, "refused"]])
          return assert.ok(statements > 0, "the fault never struck: the hook does not reach the driver")
        }
        assert.ok(Exit.isFailure(exit), "a call that did nothing succeeded")
        assert.deepEqual(after, before, "a call that failed has changed the run")
      }
      assert.fail("the call still failed after 200 statements")
    }),
}

export const rewindCases: ReadonlyArray<Case> = [
  undoes,
  attempts,
  signals,
  performed,
  before,
  refuses,
  once,
  diesHalfway,
]
