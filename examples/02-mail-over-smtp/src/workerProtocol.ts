/** What a worker process is told, and what it says: one line of JSON for each event. */
import type { MailServerAddress } from "./mailer.js"
import type { StorePlace } from "./store.js"

/** Where a worker dies: just before it sends, or when the server has said 250 and nothing of it is recorded. */
export type Moment = "beforeSend" | "afterAccept"

/** A worker is started with these in its environment, where a url with a password may stand: a command line is public. */
export interface WorkerSettings {
  readonly server: MailServerAddress
  /** Null for the plain retry. */
  readonly store: StorePlace | null
  /** The jobs that the plain retry has done. */
  readonly jobFile: string
  /** Null to live. */
  readonly dieAt: Moment | null
}

export type WorkerEvent =
  /** What the worker finds when it starts. */
  | {
      readonly event: "found"
      readonly order: string
      readonly committed: ReadonlyArray<string>
      readonly open: string | null
    }
  | { readonly event: "asked"; readonly order: string; readonly found: boolean }
  | { readonly event: "sent"; readonly order: string; readonly reply: string }
  | { readonly event: "finished"; readonly order: string; readonly problem: string | null }

export const settingsVariable = "CAIRN_DEMO_WORKER"

export const readSettings = (): WorkerSettings => {
  const text = process.env[settingsVariable]
  if (text === undefined) throw new Error(`This is started by the demo, with ${settingsVariable} in the environment.`)
  return JSON.parse(text) as WorkerSettings
}

/** A pipe is written synchronously on POSIX: what was said before a SIGKILL arrives. */
export const say = (event: WorkerEvent): void => {
  process.stdout.write(`${JSON.stringify(event)}\n`)
}

/** Files of one scenario. */
export const filesIn = (folder: string) => ({
  /** Of no use where the runs are kept in Postgres. */
  database: `${folder}/cairn.sqlite`,
  mail: `${folder}/mail`,
  questions: `${folder}/questions.log.jsonl`,
  jobs: `${folder}/jobs.log.jsonl`,
})
