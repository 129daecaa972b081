/** The explorer can fail: each planted fault of the runtime is found, by a check that names it, with a short schedule. */
import { SqliteStore } from "@cairn/sqlite"
import type { AnyWorkflow } from "@cairn/core"
import { Effect } from "effect"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { booking, makeLedger, paying, runningAhead, takingBack } from "../scripts/subjects.js"
import { explore, type Check, type ExploreOptions, type Report, type Trouble } from "../src/index.js"
import { Tampering, type Tamper } from "../src/internal/tampering.js"
import { storeMutants } from "./support/mutants.js"
import { runtimeMutants, transactionMutants } from "./support/runtimeMutants.js"
import { declining, hesitant, onceDeclined, undone } from "./support/workflows.js"

type Options = Omit<ExploreOptions<AnyWorkflow>, "input">

interface Case {
  readonly workflow: AnyWorkflow
  readonly options?: Options & { readonly input?: unknown }
  readonly check: Check
  readonly troubles: number
}

const pays = (policy: Parameters<typeof paying>[0], check: Check, troubles: number): Case => ({
  ...{ workflow: paying(policy), check, troubles },
})
const takesBack = (check: Check, troubles: number): Case => ({
  ...{ workflow: undone, options: { input: null, handlers: declining }, check, troubles },
})

/** Which check finds it in which workflow, and how many troubles that takes. */
const cases: Readonly<Record<keyof typeof runtimeMutants, Case>> = {
  settlesApart: pays("retryWithKey", "commit", 1),
  reusesTheGeneration: { workflow: hesitant, options: { simulate: onceDeclined }, check: "intent", troubles: 0 },
  takesUnknownForFailure: pays("retryWithKey", "result", 1),
  neverAsks: pays("checkFirst", "effects", 1),
  recomputesPayloads: pays("retryWithKey", "payload", 1),
  ignoresRecords: pays("recordFirst", "effects", 1),
  neverRecords: pays("recordFirst", "effects", 1),
  demandsTheFence: pays("recordFirst", "effects", 1),
  forgetsIntents: pays("review", "effects", 1),
  skipsCompensation: takesBack("effects", 1),
  assumesCompensation: takesBack("effects", 1),
  sharesTheKey: takesBack("intent", 0),
  sleepsForEver: pays("retryWithKey", "stuck", 1),
  skipsTheBarrierBefore: pays("retryWithKey", "intent", 0),
  skipsTheBarrierAfter: pays("retryWithKey", "barrier", 0),
  writesTheLastAlone: { workflow: runningAhead(), check: "commit", troubles: 0 },
  writesInReverse: { workflow: runningAhead(), check: "commit", troubles: 0 },
  // The store refuses to write the step twice, and the worker, whose numbers are ahead of it, never gets on.
  renumbersRetries: { workflow: runningAhead(), check: "stuck", troubles: 1 },
  cancelsOverTheUnknown: pays("checkFirst", "result", 1),
  takesBackTheKnownAlone: {
    ...{ workflow: takingBack(), check: "effects", troubles: 2 },
    options: { depth: 2, troubles: ["lostAnswer", "cancel"] },
  },
  ignoresCancels: pays("retryWithKey", "result", 1),
}

const explored = (workflow: AnyWorkflow, options: object, tamper?: Tamper): Promise<Report> => {
  const exploring = explore(workflow, { input: 7 as never, depth: 1, maxSchedules: 200, ...options } as never)
  return Effect.runPromise(tamper === undefined ? exploring : Effect.provideService(exploring, Tampering, tamper))
}

const expectFound = ({ breaches, table }: Report, check: Check, troubles: number): void => {
  expect(breaches.find((found) => found.check === check)?.schedule, table).toHaveLength(troubles)
}

describe("a runtime with a fault", () => {
  for (const [name, { workflow, options, check, troubles }] of Object.entries(cases)) {
    it(`${name} is found: ${check}, with ${troubles} troubles`, async () => {
      const tamper = runtimeMutants[name as keyof typeof runtimeMutants]
      expectFound(await explored(workflow, { ...options }, tamper), check, troubles)
    }, 120_000)
  }

  it("is none: the same workflows keep their promises", async () => {
    expect((await explored(hesitant, { simulate: onceDeclined })).breaches).toEqual([])
    expect((await explored(undone, { input: null, handlers: declining, maxSchedules: 60 })).breaches).toEqual([])
  }, 120_000)
})

describe("answers of people", () => {
  const answering: ReadonlyArray<[keyof typeof storeMutants, Check]> = [
    ["takesEveryAnswer", "answer"],
    ["forgetsAnswers", "parked"],
  ]
  for (const [name, check] of answering) {
    it(`that a store treats wrongly are found: ${name}`, async () => {
      expectFound(await explored(paying("review"), { store: storeMutants[name] }), check, 1)
    }, 120_000)
  }
})

describe("a runtime whose transaction steps have a fault", () => {
  const troubles: ReadonlyArray<Trouble> = ["kill", "lostAck"]
  const found: Readonly<Record<keyof typeof transactionMutants, readonly [Check, number, problem: string]>> = {
    booksApart: ["barrier", 0, "went on before 'book' was durable"],
    assumesRollback: ["invariant", 1, "has booked 2 rows"],
  }
  for (const [name, [check, most, problem]] of Object.entries(found)) {
    it(`${name} is found: ${check}, with ${most} troubles`, async () => {
      const tamper = transactionMutants[name as keyof typeof transactionMutants]
      const directory = await mkdtemp(join(tmpdir(), "cairn-testing-"))
      try {
        const store = SqliteStore.layer({ filename: join(directory, "runs.sqlite"), synchronous: "normal" })
        await makeLedger(store)
        const { workflow, options } = booking("?")
        const report = await explored(workflow, { ...options, store, troubles, maxSchedules: 60 }, tamper)
        expectFound(report, check, most)
        expect(report.table).toContain(problem)
      } finally {
        await rm(directory, { recursive: true, force: true })
      }
    }, 120_000)
  }
})
