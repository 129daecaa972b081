/** D20: what a body writes and its commit, together or not at all. */
import assert from "node:assert/strict"
import type { CommitRows, TransactionAccess } from "@cairn/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Case } from "../Case.js"
import { commitOf, everything, fresh, underWay, type Bench } from "../internal/bench.js"

const limits = { timeoutMs: 5_000 }

const ledgerOf = ({ store }: Bench) => {
  assert.ok(store.ledger !== undefined, "the harness has no ledger")
  return store.ledger
}

/** Runs a body that writes a name and ends with this commit. */
const booked = (bench: Bench, name: string, commit: CommitRows) => {
  assert.ok(bench.driver.transact !== undefined, "the driver has no transact")
  return bench.driver.transact(limits, (access) =>
    Effect.as(ledgerOf(bench).insert(access, name), { commit, value: `value of ${name}` }),
  )
}

const assertNames = (bench: Bench, name: string, expected: boolean, why: string) =>
  Effect.map(ledgerOf(bench).names, (names) => assert.equal(names.includes(name), expected, why))

const together: Case = {
  law: "D20",
  title: "D20: what a body writes and its commit are there together, and its value is what the call gives",
  needs: ["transactions"],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* underWay(bench)
      const name = fresh("name")
      const { result, value } = yield* booked(bench, name, commitOf(lease, 1))
      assert.equal(result._tag, "Committed", "a commit by the owner was refused")
      assert.equal(value, `value of ${name}`)
      yield* assertNames(bench, name, true, "the commit is there, what the body wrote is not")
      const { run, steps } = yield* everything(bench, lease)
      assert.equal(run.seq, 2, "what the body wrote is there, the commit is not")
      assert.deepEqual(
        steps.map((step) => step.path),
        ["first", "step-2"],
      )
    }),
}

const refused: Case = {
  law: "D20",
  title: "D20: a refused commit takes back what the body wrote",
  needs: ["transactions"],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* underWay(bench)
      const before = yield* everything(bench, lease)
      const wrong: ReadonlyArray<readonly [string, CommitRows]> = [
        ["another fence", commitOf({ ...lease, fence: lease.fence + 1 }, 1)],
        ["another claim token", commitOf({ ...lease, claimToken: `${lease.claimToken}?` }, 1)],
        ["an older seq", commitOf(lease, 0)],
        ["a skipping seq", commitOf(lease, 2)],
      ]
      for (const [why, commit] of wrong) {
        const name = fresh("name")
        const { result } = yield* booked(bench, name, commit)
        assert.equal(result._tag, "Refused", `a commit with ${why} was accepted`)
        yield* assertNames(bench, name, false, `what a body wrote is there although its commit had ${why}`)
        assert.deepEqual(yield* everything(bench, lease), before, `a refused commit with ${why} changed the run`)
      }
    }),
}

type Ending = Effect.Effect<never, string>
const endings: ReadonlyArray<readonly [how: string, end: Ending]> = [
  ["fails", Effect.fail("the body's own failure")],
  ["dies", Effect.die(new Error("the body threw"))],
  ["is interrupted", Effect.interrupt],
]

const unfinished: Case = {
  law: "D20",
  title: "D20: a body that fails, dies or is interrupted leaves nothing, and ends the call as it ended",
  needs: ["transactions"],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* underWay(bench)
      const before = yield* everything(bench, lease)
      for (const [how, end] of endings) {
        const name = fresh("name")
        let calls = 0
        const call = bench.driver.transact!(limits, (access) =>
          Effect.zipRight(
            Effect.orDie(ledgerOf(bench).insert(access, name)),
            Effect.suspend(() => {
              calls += 1
              return Effect.as(end, { commit: commitOf(lease, 1), value: null })
            }),
          ),
        )
        // A fiber of its own: an interruption from within must not end the case.
        const exit = yield* Effect.flatMap(Effect.fork(call), (fiber) => fiber.await)
        assert.ok(Exit.isFailure(exit), `a body that ${how} ended a call well`)
        assert.equal(calls, 1, `a body that ${how} was run ${calls} times by one call`)
        const own = yield* Effect.exit(end)
        assert.equal(exit.cause._tag, Exit.isFailure(own) && own.cause._tag, `the end of a body that ${how} was lost`)
        yield* assertNames(bench, name, false, `what a body that ${how} wrote is there`)
        assert.deepEqual(yield* everything(bench, lease), before, `a body that ${how} changed the run`)
      }
      // None of them has left the connection in a transaction.
      const { result } = yield* booked(bench, fresh("name"), commitOf(lease, 1))
      assert.equal(result._tag, "Committed")
    }),
}

const late: Case = {
  law: "D20",
  title: "D20: what is asked of the client once its body has ended is refused",
  needs: ["transactions"],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* underWay(bench)
      let kept: TransactionAccess | null = null
      yield* bench.driver.transact!(limits, (access) =>
        Effect.sync(() => {
          kept = access
          return { commit: commitOf(lease, 1), value: null }
        }),
      )
      const name = fresh("name")
      const exit = yield* Effect.exit(ledgerOf(bench).insert(kept!, name))
      assert.ok(Exit.isFailure(exit), "a client whose body has ended took a statement")
      yield* assertNames(bench, name, false, "what a client wrote after its body had ended is there")
    }),
}

export const transactionCases: ReadonlyArray<Case> = [together, refused, unfinished, late]
