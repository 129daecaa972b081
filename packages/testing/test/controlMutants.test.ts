/** The explorer can fail where control flow does: each planted fault is found, by a check that names it, with a short schedule. */
import type { AnyWorkflow } from "@cairn/core"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { explore, type Check, type Report } from "../src/index.js"
import { Tampering, type Tamper } from "../src/internal/tampering.js"
import { controlRuntimes, controlStores } from "./support/controlMutants.js"
import { journey, stubborn } from "./support/journey.js"

const explored = (workflow: AnyWorkflow, options: object, tamper?: Tamper): Promise<Report> => {
  const exploring = explore(workflow, { input: 3, depth: 1, maxSchedules: 60, ...options } as never)
  return Effect.runPromise(tamper === undefined ? exploring : Effect.provideService(exploring, Tampering, tamper))
}

const expectFound = ({ breaches, table }: Report, check: Check, troubles: number, problem: RegExp): void => {
  const breach = breaches.find((found) => found.check === check)
  expect(breach?.schedule, table).toHaveLength(troubles)
  expect(breach?.problem).toMatch(problem)
}

type Expected = readonly [check: Check, troubles: number, problem: RegExp]

const stores: Readonly<Record<keyof typeof controlStores, Expected>> = {
  losesWakeUps: ["stuck", 0, /'before:papers\/visa'/],
  overwritesDecisions: ["review", 0, /'go' went on as approved by bob, and ann approved it/],
  takesEveryDecision: ["review", 0, /both were heard/],
}

const runtimes: Readonly<Record<keyof typeof controlRuntimes, Expected>> = {
  closesWithoutStep: ["stuck", 0, /still 'waiting' at 'before:papers\/visa'/],
  losesItemEnds: ["commit", 0, /forEach 'stops' has ended, and 3 of its items have not/],
  delaysItemEnds: ["window", 0, /3 items of 'stops' were under way, at most 2 may be/],
  skipsTurns: ["commit", 1, /loop 'plan' has ended, and its last turn is not done/],
  leavesParentsAsleep: ["stuck", 1, /'before:bags\/pack'/],
  keepsSignals: ["signal", 0, /'before:papers\/visa' went on without a signal/],
  choosesAnew: ["steering", 0, /'on' of 'route' was computed again/],
  readsHistory: ["resume", 0, /turn 'plan\[0\]' was read, which is over/],
  forgetsAttempts: ["attempts", 0, /'all\[1\]\/odd' has failed 4 times/],
}

describe("a store with a fault of control flow", () => {
  for (const [name, expected] of Object.entries(stores)) {
    it(`${name} is found: ${expected[0]}, with ${expected[1]} troubles`, async () => {
      expectFound(await explored(journey, { store: controlStores[name as keyof typeof stores] }), ...expected)
    }, 120_000)
  }
})

describe("a runtime with a fault of control flow", () => {
  for (const [name, expected] of Object.entries(runtimes)) {
    it(`${name} is found: ${expected[0]}, with ${expected[1]} troubles`, async () => {
      const workflow = name === "forgetsAttempts" ? stubborn : journey
      expectFound(await explored(workflow, {}, controlRuntimes[name as keyof typeof runtimes]), ...expected)
    }, 120_000)
  }

  it("is none: the same workflows keep their promises", async () => {
    expect((await explored(stubborn, {})).breaches).toEqual([])
    expect((await explored(journey, { maxSchedules: 20 })).breaches).toEqual([])
  }, 120_000)
})
