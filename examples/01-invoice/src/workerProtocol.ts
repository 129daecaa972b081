/** What a worker process is told, and what it says: one line of JSON for each event. */
import type { Answered } from "./handlers.js"
import type { StorePlace } from "./store.js"

/** Who does the work: Cairn over a store, or a job queue that runs a job again from its start. */
export type Contender =
  | { readonly store: StorePlace }
  /** Whether it sends keys made from the invoice's number. */
  | { readonly ownKeys: boolean }

/** A worker is started with these in its environment, where a url with a password may stand: a command line is public. */
export type WorkerSettings<Who extends Contender = Contender> = Who & {
  readonly folder: string
  readonly paymentsUrl: string
  readonly mailUrl: string
  /** The step after whose answers it dies; null to live. */
  readonly killAfter: "charge" | "email" | null
}

/**
 * Cairn's account of the model's calls, in micro-dollars. `unknown`: how many calls there are whose cost is not known.
 * `interruptions`: how often each run was cut off, by a kill or otherwise; `saved` counts all of them.
 */
export interface Account {
  readonly microDollars: number
  readonly unknown: number
  readonly saved: number
  readonly interruptions: ReadonlyArray<number>
}

export type WorkerEvent =
  /** What the worker finds when it starts. */
  | {
      readonly event: "found"
      readonly run: string
      readonly committed: ReadonlyArray<string>
      readonly open: string | null
    }
  | {
      readonly event: "extracted"
      readonly engine: string
      readonly invoice: string
      readonly amount: string
      readonly dueOn: string
    }
  | {
      readonly event: "answered"
      readonly invoice: string
      readonly step: "charge" | "email"
      readonly answered: Answered
    }
  | { readonly event: "finished"; readonly run: string; readonly problem: string | null }
  /** Under Cairn, at the end. */
  | ({ readonly event: "accounted" } & Account)

export const settingsVariable = "CAIRN_DEMO_WORKER"

export const readSettings = <Who extends Contender>(): WorkerSettings<Who> => {
  const text = process.env[settingsVariable]
  if (text === undefined) throw new Error(`This is started by the demo, with ${settingsVariable} in the environment.`)
  return JSON.parse(text) as WorkerSettings<Who>
}

/** A pipe is written synchronously on POSIX: what was said before a SIGKILL arrives. */
export const say = (event: WorkerEvent): void => {
  process.stdout.write(`${JSON.stringify(event)}\n`)
}

/** Files of one scenario. */
export const filesIn = (folder: string) => ({
  /** Of no use where the runs are kept in Postgres. */
  database: `${folder}/cairn.sqlite`,
  payments: `${folder}/payments.log.jsonl`,
  mail: `${folder}/mail.log.jsonl`,
  model: `${folder}/model.log.jsonl`,
  /** Plain retry only: what the job queue knows. */
  jobs: `${folder}/jobs.log.jsonl`,
})
