/** Two workers die in the middle of the list, the third one finishes it. What happened is read from the mail API's own log. */
import { existsSync, readFileSync } from "node:fs"
import type { MailEntry } from "./mailApi.js"
import { run, startService, type Ending } from "./processes.js"
import type { StorePlace } from "./store.js"
import { settingsVariable, type WorkerEvent, type WorkerSettings } from "./workerProtocol.js"

export interface Life {
  readonly exit: Ending
  /** How often the mail API was asked in it. */
  readonly asked: ReadonlyArray<MailEntry>
  /** Of the worker's process: when it found the run, and at most. */
  readonly memory: { readonly first: Memory; readonly most: Memory }
}

export type Memory = Pick<Extract<WorkerEvent, { event: "memory" }>, "heapMb" | "rssMb">

export interface Facts {
  readonly lives: ReadonlyArray<Life>
  readonly log: ReadonlyArray<MailEntry>
  readonly ended: Extract<WorkerEvent, { event: "ended" | "failed" }> | null
}

export const readLog = (file: string): ReadonlyArray<MailEntry> =>
  existsSync(file)
    ? readFileSync(file, "utf8")
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line) as MailEntry)
    : []

/** After so many answers a worker dies. */
const deaths = [300, 350, null] as const

export const play = async (
  store: StorePlace,
  logFile: string,
  onLife: (life: Life, number: number) => void = () => {},
): Promise<Facts> => {
  const api = await startService<{ readonly url: string }>("The mail API", "mailApi.ts", { args: [logFile] })
  try {
    const lives: Array<Life> = []
    let ended: Facts["ended"] = null
    for (const dieAfter of deaths) {
      const before = readLog(logFile).length
      const seen: Array<Memory> = []
      const settings: WorkerSettings = { apiUrl: api.announced.url, store, dieAfter }
      const worker = run("worker.ts", { environment: { [settingsVariable]: JSON.stringify(settings) } }, (line) => {
        const event = JSON.parse(line) as WorkerEvent
        if (event.event === "memory") seen.push(event)
        else ended = event
      })
      const exit = await worker.exit
      const most = { heapMb: Math.max(...seen.map((at) => at.heapMb)), rssMb: Math.max(...seen.map((at) => at.rssMb)) }
      const memory = { first: seen[0] ?? most, most }
      const life: Life = { exit, asked: readLog(logFile).slice(before), memory }
      lives.push(life)
      onLife(life, lives.length)
    }
    return { lives, log: readLog(logFile), ended }
  } finally {
    await api.stop()
  }
}
