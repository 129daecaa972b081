/** The kit is worth what it catches: drivers with one planted fault each, and the case that must fail on each. */
import { AssertionError } from "node:assert"
import { cases, runCase, type Case, type Harness } from "@cairn/conformance"
import type { CheckpointDriver, StoreError } from "@cairn/core"
import { Cause, Chunk, Effect, Exit } from "effect"
import { describe, expect, it } from "vitest"
import { faithful, lostAfter, onTestClock, toldInTime, withEverything, withWakeUps, type Hooks } from "./harnesses.js"
import { answerMutants } from "./mutants/answers.js"
import { callMutants } from "./mutants/calls.js"
import { claimMutants } from "./mutants/claims.js"
import { commitMutants } from "./mutants/commits.js"
import { decisionMutants } from "./mutants/decisions.js"
import { historyMutants } from "./mutants/history.js"
import { inboxMutants } from "./mutants/inbox.js"
import { leaseMutants } from "./mutants/leases.js"
import { lifecycleMutants } from "./mutants/lifecycle.js"
import { limitMutants } from "./mutants/limits.js"
import { listMutants } from "./mutants/lists.js"
import { openMutants } from "./mutants/open.js"
import { parentMutants } from "./mutants/parents.js"
import { releaseMutants } from "./mutants/releases.js"
import { rewindMutants } from "./mutants/rewinds.js"
import { rowMutants } from "./mutants/rows.js"
import { scheduleMutants } from "./mutants/schedules.js"
import { stepsMutants } from "./mutants/steps.js"
import { textMutants } from "./mutants/texts.js"
import { sound as soundTransactions, transactionMutants, withTransactions } from "./mutants/transactions.js"
import { waitMutants } from "./mutants/waits.js"
import { wakeUpMutants } from "./mutants/wakeUps.js"

const mutants = [
  ...commitMutants,
  ...claimMutants,
  ...leaseMutants,
  ...releaseMutants,
  ...textMutants,
  ...rowMutants,
  ...openMutants,
  ...answerMutants,
  ...inboxMutants,
  ...stepsMutants,
  ...waitMutants,
  ...decisionMutants,
  ...parentMutants,
  ...listMutants,
  ...lifecycleMutants,
  ...rewindMutants,
  ...limitMutants,
  ...scheduleMutants,
  ...historyMutants,
  ...callMutants,
]

const named = (title: string): Case => {
  const found = cases.filter((one) => one.title.startsWith(title))
  expect(
    found.map((one) => one.title),
    `cases whose title begins with '${title}'`,
  ).toHaveLength(1)
  return found[0]!
}

/** Fails by an assertion of the case, not by an accident of the mutant. */
const expectCaught = async (one: Case, harness: Harness): Promise<void> => {
  const exit = await Effect.runPromiseExit(runCase(one, harness))
  if (Exit.isSuccess(exit)) return expect.fail(`'${one.title}' passed on a driver with the fault`)
  const thrown = Chunk.toReadonlyArray(Cause.defects(exit.cause))
  // A failing property is reported by an error of its own, with the counterexample.
  const asserted = thrown.some((error) => error instanceof AssertionError || String(error).includes("Property failed"))
  expect(asserted, Cause.pretty(exit.cause)).toBe(true)
}

describe("the kit catches a driver in which", () => {
  it.each(mutants.map((mutant) => [mutant.fault, mutant] as const))("%s", async (_, { caughtBy, mutate }) => {
    await expectCaught(named(caughtBy), onTestClock(mutate))
  })
})

/** A call that dies after its second statement has done half of its work. */
const dyingHalfway = <
  M extends
    | "commit"
    | "claim"
    | "releaseWorker"
    | "answer"
    | "send"
    | "decideWait"
    | "reopenRun"
    | "forkRun"
    | "rewindRun"
    | "fireSchedule",
>(
  method: M,
  half: (driver: CheckpointDriver) => CheckpointDriver[M],
): Partial<Hooks> => ({
  dying: (driver, armed) => {
    const whole = driver[method] as (argument: unknown) => Effect.Effect<unknown, StoreError>
    const part = half(driver) as typeof whole
    const call = (argument: unknown) =>
      Effect.suspend(() => {
        const after = armed()
        const rest = lostAfter(after, whole(argument))
        return after === 2 ? Effect.zipRight(part(argument), rest) : rest
      })
    return { ...faithful.dying(driver, armed), [method]: call }
  },
})

const broken: ReadonlyArray<readonly [fault: string, caughtBy: string, hooks: Partial<Hooks>]> = [
  ["times are those of the calling process", "D8: the clock of the calling process", { clocked: (driver) => driver }],
  [
    "a batch that dies leaves its first commit",
    "D2: a batch that dies",
    dyingHalfway("commit", (driver) => (batch) => driver.commit(batch.slice(0, 1))),
  ],
  [
    "a batch that dies leaves run rows without steps",
    "D2: a batch that dies",
    dyingHalfway("commit", (driver) => (batch) => driver.commit(batch.map((one) => ({ ...one, steps: [] })))),
  ],
  [
    "a batch that dies leaves run rows and steps without intents",
    "D2: a batch that dies",
    dyingHalfway("commit", (driver) => (batch) => driver.commit(batch.map((one) => ({ ...one, effects: [] })))),
  ],
  [
    "a claim that dies has taken its first run",
    "D6: a claim that dies",
    dyingHalfway("claim", (driver) => (request) => driver.claim({ ...request, limit: 1 })),
  ],
  [
    "a release that dies gives up the runs and leaves the lease",
    "D12: a releaseWorker that dies",
    dyingHalfway(
      "releaseWorker",
      (driver) => (workerId) =>
        Effect.asVoid(Effect.zipRight(driver.releaseWorker(workerId), driver.beat(workerId, 60_000))),
    ),
  ],
  [
    "an answer that dies has settled the effect and left the run parked",
    "D19: an answer that dies",
    dyingHalfway(
      "answer",
      (driver) => (given) =>
        Effect.flatMap(driver.findEffect(given), (effect) =>
          driver.recordOutcome({ ...effect!, ...given, state: given.state }),
        ),
    ),
  ],
  [
    "a commit that dies has opened its waits and closed none",
    "D27: a commit that dies",
    dyingHalfway("commit", (driver) => (batch) => driver.commit(batch.map((one) => ({ ...one, closes: [] })))),
  ],
  [
    "a decision that dies has woken its run, and is not written",
    "D28: a decision that dies",
    dyingHalfway(
      "decideWait",
      (driver) =>
        ({ namespace, runId }) =>
          Effect.as(driver.send({ namespace, runId, signalId: "half", name: "half", payload: null, payloadHash: "" }), {
            _tag: "Closed" as const,
          }),
    ),
  ],
  [
    "a child that dies at its end has ended, and its parent knows nothing",
    "D29: the end of a child that dies",
    dyingHalfway("commit", (driver) => (batch) => driver.commit(batch.map((one) => ({ ...one, wakesParent: null })))),
  ],
  [
    "a reopenRun that dies has reopened the run and added its attempt elsewhere",
    "D33: a reopenRun that dies",
    dyingHalfway("reopenRun", (driver) => (reopen) => driver.reopenRun({ ...reopen, path: `${reopen.path}-` })),
  ],
  [
    "a fork that dies is there with its steps and without its effects",
    "D34: a fork that dies",
    dyingHalfway("forkRun", (driver) => (fork) => driver.forkRun({ ...fork, effects: [] })),
  ],
  [
    "a rewind that dies has undone the steps and keeps their signals, with a mark of its own",
    "D42: a rewindRun that dies",
    dyingHalfway(
      "rewindRun",
      (driver) => (rewind) => driver.rewindRun({ ...rewind, mark: { ...rewind.mark, path: "half" } }),
    ),
  ],
  [
    "a firing that dies has created its run and left the schedule where it was",
    "D37: a firing that dies",
    dyingHalfway(
      "fireSchedule",
      (driver) =>
        ({ run }) =>
          Effect.map(driver.createRun(run), ({ created }) => ({ _tag: "Fired" as const, created })),
    ),
  ],
  ["a number past 2^53 - 1 is rounded", "D13: a stored number past", { onUnsafe: (driver) => driver }],
  [
    "what cannot be read is absent",
    "D14: what cannot be read",
    {
      onUnreadable: (driver) => ({ ...driver, findRun: () => Effect.succeed(null), load: () => Effect.succeed(null) }),
    },
  ],
  [
    "of what cannot be read nothing is open",
    "D14: what cannot be read",
    {
      onUnreadable: (driver) => ({
        ...faithful.onUnreadable(driver),
        loadOpen: () => Effect.succeed({ effects: [], attempts: [] }),
      }),
    },
  ],
  [
    "what cannot be read is a defect",
    "D14: what cannot be read",
    { onUnreadable: (driver) => ({ ...driver, findRun: () => Effect.die(new Error("no such table")) }) },
  ],
]

describe("with fault hooks the kit catches a driver in which", () => {
  it.each(broken)("%s", async (_, caughtBy, hooks) => {
    await expectCaught(named(caughtBy), withEverything({ ...faithful, ...hooks }))
  })
})

describe("with wake-ups the kit catches a driver in which", () => {
  it.each(wakeUpMutants.map((mutant) => [mutant.fault, mutant] as const))("%s", async (_, { calls, caughtBy }) => {
    await expectCaught(named(caughtBy), withWakeUps(calls))
  })
})

describe("with transactions the kit catches a driver in which", () => {
  it.each(transactionMutants.map((mutant) => [mutant.fault, mutant] as const))("%s", async (_, { caughtBy, ends }) => {
    await expectCaught(named(caughtBy), withTransactions(ends))
  })
})

describe("the mutants", () => {
  it("break every law, each fault once", () => {
    const titles = [...mutants, ...wakeUpMutants, ...transactionMutants].map(({ caughtBy }) => caughtBy)
    titles.push(...broken.map(([, caughtBy]) => caughtBy))
    const laws = new Set(titles.map((title) => title.split(":")[0]))
    expect(laws.size).toBe(44)
    expect(mutants.length).toBeGreaterThan(100)
    expect(new Set(mutants.map(({ fault }) => fault)).size).toBe(mutants.length)
  })

  it("stand on a driver that passes the case that catches them", async () => {
    const sound = onTestClock((driver) => driver)
    for (const caughtBy of new Set(mutants.map((mutant) => mutant.caughtBy))) {
      const exit = await Effect.runPromiseExit(runCase(named(caughtBy), sound))
      expect(Exit.isSuccess(exit), `'${caughtBy}' on a driver without a fault`).toBe(true)
    }
    for (const caughtBy of new Set(transactionMutants.map((mutant) => mutant.caughtBy))) {
      const exit = await Effect.runPromiseExit(runCase(named(caughtBy), withTransactions(soundTransactions)))
      expect(Exit.isSuccess(exit), `'${caughtBy}' on a driver without a fault`).toBe(true)
    }
    for (const caughtBy of new Set(wakeUpMutants.map((mutant) => mutant.caughtBy))) {
      const exit = await Effect.runPromiseExit(runCase(named(caughtBy), withWakeUps(toldInTime)))
      expect(Exit.isSuccess(exit), `'${caughtBy}' on a driver without a fault`).toBe(true)
    }
  })
})
