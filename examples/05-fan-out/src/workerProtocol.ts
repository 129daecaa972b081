/** What a worker process is told, and what it says: one line of JSON for each event. */
import { Logger } from "effect"
import type { StorePlace } from "./store.js"

export interface WorkerSettings {
  readonly apiUrl: string
  readonly store: StorePlace
  /** It dies when the mail API has answered it so often; null to live. */
  readonly dieAfter: number | null
}

export const runId = "newsletter"

export type WorkerEvent =
  /** When the run is started or found, every hundred answers, and at the end. */
  | { readonly event: "memory"; readonly answers: number; readonly heapMb: number; readonly rssMb: number }
  | { readonly event: "ended"; readonly sent: number; readonly unreachable: ReadonlyArray<string> }
  | { readonly event: "failed"; readonly problem: string }

export const settingsVariable = "CAIRN_DEMO_WORKER"

export const readSettings = (): WorkerSettings => {
  const text = process.env[settingsVariable]
  if (text === undefined) throw new Error(`This is started by the demo, with ${settingsVariable} in the environment.`)
  // Without this, a worker would outlive a demo that was stopped with Ctrl-C.
  process.stdin
    .once("end", () => process.exit(1))
    .resume()
    .unref()
  return JSON.parse(text) as WorkerSettings
}

/** Standard output belongs to the events. */
export const logsOnStandardError = Logger.replace(Logger.defaultLogger, Logger.withConsoleError(Logger.logfmtLogger))

/** A pipe is written synchronously on POSIX: what was said before a SIGKILL arrives. */
export const say = (event: WorkerEvent): void => {
  process.stdout.write(`${JSON.stringify(event)}\n`)
}
