/** What a worker process is told, and what it says: one line of JSON for each event. */
import { Logger } from "effect"
import type { StorePlace } from "./store.js"

export interface WorkerSettings {
  readonly bankUrl: string
  readonly store: StorePlace
}

export type WorkerEvent =
  /** Every run waits for a decision. */
  | { readonly event: "waiting" }
  | { readonly event: "ended"; readonly runId: string; readonly output: string }
  | { readonly event: "failed"; readonly runId: string; readonly problem: string }

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
