/** Child processes that run workers of these tests, and what they say. */
import { spawn, type ChildProcess } from "node:child_process"
import { fileURLToPath } from "node:url"

/** What a worker process is told. */
export interface Orders {
  readonly store: string
  readonly log: string
  /** Starts so many runs of its own, `<name>-<n>`, and ends when they have. Otherwise it works until it is killed. */
  readonly starts?: number
  readonly name: string
  readonly leaseMs?: number
  readonly concurrency?: number
  readonly maxRecoveries?: number
  readonly local?: { readonly directory: string }
  /** Its clock is off by so much. */
  readonly clockMs?: number
  /** Kills itself where this run, or any, passes this step's gate. */
  readonly killAt?: { readonly step: string; readonly runId?: string }
  /** The step `stall` keeps the event loop busy until there is a file of this name. */
  readonly stallUntil?: string
}

export interface Said {
  readonly event: string
  readonly [field: string]: unknown
}

export interface WorkerProcess {
  readonly process: ChildProcess
  readonly said: ReadonlyArray<Said>
  readonly output: () => string
  readonly ended: Promise<number | NodeJS.Signals | null>
  /** The first thing of that name that it says. */
  readonly says: (event: string) => Promise<Said>
}

const script = fileURLToPath(new URL("../children/worker.ts", import.meta.url))

/** Starts a worker process. `environment` is added to this one's. */
export const startWorker = (orders: Orders, environment: Readonly<Record<string, string>> = {}): WorkerProcess => {
  const child = spawn(process.execPath, ["--conditions=@cairn/source", "--import", "tsx", script], {
    env: { ...process.env, ...environment, CHAOS_ORDERS: JSON.stringify(orders) },
    stdio: ["ignore", "pipe", "pipe"],
  })
  const said: Array<Said> = []
  const waiting: Array<() => void> = []
  let output = ""
  let rest = ""
  child.stdout.on("data", (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split("\n")
    rest = lines.pop() ?? ""
    for (const line of lines) {
      if (line.startsWith('{"event"')) said.push(JSON.parse(line) as Said)
      else output += `${line}\n`
    }
    for (const look of waiting) look()
  })
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()))
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) =>
    child.on("close", (code, signal) => resolve(signal ?? code)),
  )
  return {
    process: child,
    said,
    output: () => output,
    ended,
    says: (event) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const found = said.find((one) => one.event === event)
          if (found !== undefined) resolve(found)
        }
        waiting.push(look)
        look()
        void ended.then((how) => reject(new Error(`the worker ended (${String(how)}) without '${event}': ${output}`)))
      }),
  }
}
