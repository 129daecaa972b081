/**
 * One scenario: four runs ask for a decision, and their worker is killed while they wait. One is approved, one rejected; two
 * people decide on another at once; nobody cares for the fourth. Then a new worker goes on. What was paid is read from the
 * bank's own log.
 */
import { existsSync, readFileSync } from "node:fs"
import type { BankEntry } from "./bank.js"
import type { RunId } from "./expenses.js"
import { run, startService, type Ending, type Program } from "./processes.js"
import type { StorePlace } from "./store.js"
import { settingsVariable, type WorkerEvent, type WorkerSettings } from "./workerProtocol.js"

/** What a process that decided has printed, and its exit code. */
export interface Decided {
  readonly by: string
  readonly runId: RunId
  readonly said: string
  readonly exit: Ending
}

export interface Facts {
  readonly workers: ReadonlyArray<Ending>
  /** Both at once. */
  readonly rivals: readonly [Decided, Decided]
  readonly approval: Decided
  readonly rejection: Decided
  /** After the deadline. */
  readonly late: Decided
  readonly ends: ReadonlyMap<string, string>
  readonly log: ReadonlyArray<BankEntry>
}

export type Audience = (moment: "killed" | "goesOn" | Decided | Extract<WorkerEvent, { runId: string }>) => void

const readLog = (file: string): ReadonlyArray<BankEntry> =>
  existsSync(file)
    ? readFileSync(file, "utf8")
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line) as BankEntry)
    : []

export const play = async (store: StorePlace, logFile: string, audience: Audience = () => {}): Promise<Facts> => {
  const bank = await startService<{ readonly url: string }>("The bank", "bank.ts", { args: [logFile] })
  const where = store.store === "sqlite" ? store.filename : store.url

  const decide = async (by: string, runId: RunId, what: "approve" | "reject", note: string): Promise<Decided> => {
    let said = ""
    const args = [runId, what, "--by", by, "--note", note]
    const { exit } = run("../decide.js", { args, environment: { APPROVALS: where } }, (line) => (said += line))
    const decided = { by, runId, said, exit: await exit }
    audience({ ...decided, said })
    return { ...decided, said }
  }

  const startWorker = (onEvent: (event: WorkerEvent, worker: Program) => void): Program => {
    const settings: WorkerSettings = { bankUrl: bank.announced.url, store }
    const worker: Program = run(
      "worker.ts",
      { environment: { [settingsVariable]: JSON.stringify(settings) } },
      (line) => onEvent(JSON.parse(line) as WorkerEvent, worker),
    )
    return worker
  }

  try {
    const first = await startWorker(({ event }, worker) => {
      if (event === "waiting") worker.kill()
    }).exit
    audience("killed")

    // No worker is alive: what is decided now is kept.
    const [approval, ann, bob, rejection] = await Promise.all([
      decide("Eve", "paper-6", "approve", "within the budget"),
      decide("Ann", "train-7", "approve", "as agreed"),
      decide("Bob", "train-7", "reject", "too dear"),
      decide("Cleo", "hotel-8", "reject", "the trip was called off"),
    ])

    audience("goesOn")
    const ends = new Map<string, string>()
    const second = await startWorker((event) => {
      if (event.event === "waiting") return
      ends.set(event.runId, event.event === "ended" ? event.output : `failed: ${event.problem}`)
      audience(event)
    }).exit
    const late = await decide("Dora", "books-9", "approve", "better late than never")
    return { workers: [first, second], rivals: [ann, bob], approval, rejection, late, ends, log: readLog(logFile) }
  } finally {
    await bank.stop()
  }
}
