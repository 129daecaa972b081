/** A driver with transactions over memory, and one fault each in what is there together (D20). */
import type { Harness } from "@cairn/conformance"
import { MemoryDriver, type CheckpointDriver, type TransactionAccess } from "@cairn/core"
import { Context, Effect, Exit, TestClock, TestContext } from "effect"

/** What a transaction does at its ends; a mutant replaces one of them. */
export interface Ends {
  /** Where a statement's name goes: to those that wait for the commit, or to the table. */
  readonly written: (staged: Array<string>, table: Array<string>) => Array<string>
  /** Whether what the body wrote is kept. */
  readonly keeps: (isCommitted: boolean, isEnded: boolean) => boolean
  readonly commits: boolean
  readonly refusesLate: boolean
  readonly runs: number
}

export const sound: Ends = {
  written: (staged) => staged,
  keeps: (isCommitted) => isCommitted,
  commits: true,
  refusesLate: true,
  runs: 1,
}

export const withTransactions = (ends: Ends): Harness => ({
  open: Effect.map(MemoryDriver.make(), (memory) => {
    const table: Array<string> = []
    const transact: NonNullable<CheckpointDriver["transact"]> = (_, body) =>
      Effect.suspend(() => {
        const staged: Array<string> = []
        let isOver = false
        const access: TransactionAccess = {
          services: Context.empty() as Context.Context<any>,
          query: (name) =>
            Effect.suspend(() => {
              if (isOver && ends.refusesLate) return Effect.fail("the body has ended")
              ;(isOver ? table : ends.written(staged, table)).push(name)
              return Effect.succeed([])
            }),
        }
        const once = Effect.exit(body(access))
        return Effect.gen(function* () {
          let ended = yield* once
          for (let run = 1; run < ends.runs; run++) ended = yield* once
          isOver = true
          if (Exit.isFailure(ended)) {
            if (ends.keeps(false, false)) table.push(...staged)
            return yield* Effect.failCause(ended.cause)
          }
          const { commit, value } = ended.value
          const [result] = ends.commits
            ? yield* memory.commit([commit])
            : [{ _tag: "Committed", at: 1, status: commit.run.status } as const]
          if (ends.keeps(result!._tag === "Committed", true)) table.push(...staged)
          return { result: result!, value }
        })
      })
    const driver: CheckpointDriver = {
      ...memory,
      capabilities: { ...memory.capabilities, transactions: true },
      transact,
    }
    const ledger = {
      insert: (access: TransactionAccess, name: string) => access.query(name, []),
      names: Effect.sync(() => [...table]),
    }
    return { driver, ledger }
  }),
  features: ["transactions"],
  elapse: (ms) => TestClock.adjust(ms),
  environment: TestContext.TestContext,
})

export interface TransactionMutant {
  readonly fault: string
  readonly caughtBy: string
  readonly ends: Ends
}

const together = "D20: what a body writes"
const refused = "D20: a refused commit"
const unfinished = "D20: a body that fails"
const late = "D20: what is asked of the client"

export const transactionMutants: ReadonlyArray<TransactionMutant> = [
  {
    fault: "a body writes beside its transaction",
    caughtBy: refused,
    ends: { ...sound, written: (_, table) => table },
  },
  { fault: "what a body wrote is lost", caughtBy: together, ends: { ...sound, keeps: () => false } },
  { fault: "what a body wrote is kept without its commit", caughtBy: together, ends: { ...sound, commits: false } },
  {
    fault: "what a body wrote outlives its refused commit",
    caughtBy: refused,
    ends: { ...sound, keeps: (_, isEnded) => isEnded },
  },
  {
    fault: "what a body wrote outlives its failure",
    caughtBy: unfinished,
    ends: { ...sound, keeps: (isCommitted, isEnded) => isCommitted || !isEnded },
  },
  { fault: "a body that fails is run again by the same call", caughtBy: unfinished, ends: { ...sound, runs: 2 } },
  { fault: "a client outlives its body", caughtBy: late, ends: { ...sound, refusesLate: false } },
]
