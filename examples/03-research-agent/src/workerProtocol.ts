/** What a worker process is told, and what it says: one line of JSON for each event. */
import type { CostSum, LiveEvent } from "@cairn/core"
import { Logger } from "effect"
import type { Addresses, Watch } from "./services.js"
import type { StorePlace } from "./store.js"

/** Where a worker dies. Cairn and the plain retry come past the same moments. */
export interface Moment {
  readonly call: string
  readonly when: "asked" | "answered"
  /** For people. */
  readonly inWords: string
}

export interface WorkerSettings {
  readonly addresses: Addresses
  /** Null for the plain retry. */
  readonly store: StorePlace | null
  /** Null to live. */
  readonly death: Moment | null
}

export const runId = "cairns"
export const question = "How were mountain paths marked before there were signs?"

export type WorkerEvent =
  /** Which path was committed last when the worker started; null where there was no run yet. */
  | { readonly event: "found"; readonly at: string | null }
  | { readonly event: "live"; readonly live: LiveEvent }
  /** `account`: what its paid calls have cost, by Cairn; null for the plain retry. */
  | {
      readonly event: "ended"
      readonly page: string | null
      readonly problem: string | null
      readonly account: CostSum | null
    }

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

/** `SIGKILL` cannot be caught: nothing is flushed, closed or released. */
export const dieAt =
  (moment: Moment | null): Watch =>
  (call, when) => {
    if (moment?.call === call && moment.when === when) process.kill(process.pid, "SIGKILL")
  }
