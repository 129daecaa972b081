/** Starts the processes of the demo: two providers, and workers that die. */
import { spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { settingsVariable, type WorkerEvent, type WorkerSettings } from "./workerProtocol.js"

/** From source, like the demo itself; `tsx` is found from the example's folder. */
const nodeOptions = ["--conditions=@cairn/source", "--import", "tsx"]
const exampleFolder = fileURLToPath(new URL("..", import.meta.url))

/** Past this, a worker hangs: it is ended with SIGTERM, and the demo says so. */
const workerDeadlineMs = 120_000

interface Start {
  readonly args?: ReadonlyArray<string>
  readonly environment?: NodeJS.ProcessEnv
  readonly timeout?: number
}

const start = (script: string, { args = [], environment = {}, timeout }: Start): ChildProcess =>
  spawn(process.execPath, [...nodeOptions, fileURLToPath(new URL(script, import.meta.url)), ...args], {
    cwd: exampleFolder,
    env: { ...process.env, ...environment },
    // The child's standard input ends when this process does, however it does.
    stdio: ["pipe", "pipe", "inherit"],
    timeout,
  })

/** Calls back with each line, and ends with the exit: code or signal. */
const untilExit = async (child: ChildProcess, onLine: (line: string) => void): Promise<number | NodeJS.Signals> => {
  const lines = createInterface({ input: child.stdout! }).on("line", onLine)
  const [[code, signal]] = (await Promise.all([once(child, "exit"), once(lines, "close")])) as [
    [number | null, NodeJS.Signals | null],
    unknown,
  ]
  return signal ?? code ?? 1
}

export interface RunningProvider {
  readonly url: string
  readonly pid: number
  readonly stop: () => Promise<void>
}

/** Starts a provider and waits until it listens. */
export const startProvider = async (name: "payments" | "mail", logFile: string): Promise<RunningProvider> => {
  const child = start("providers/serve.ts", { args: [name, logFile] })
  let announce: (url: string) => void = () => {}
  const announced = new Promise<string>((resolve) => (announce = resolve))
  const exit = untilExit(child, (line) => announce((JSON.parse(line) as { readonly url: string }).url))
  const url = await Promise.race([
    announced,
    exit.then((how) => Promise.reject(new Error(`The ${name} provider ended (${how}) before it listened.`))),
  ])
  return {
    url,
    pid: child.pid!,
    stop: async () => {
      child.stdin!.end()
      await exit
    },
  }
}

/** Runs a worker process to its end: an exit code, or the signal that ended it. */
export const runWorker = (
  script: "worker.ts" | "plainRetry.ts",
  settings: WorkerSettings,
  onEvent: (event: WorkerEvent) => void,
): { readonly pid: number; readonly exit: Promise<number | NodeJS.Signals> } => {
  const child = start(script, {
    environment: { [settingsVariable]: JSON.stringify(settings) },
    timeout: workerDeadlineMs,
  })
  return { pid: child.pid!, exit: untilExit(child, (line) => onEvent(JSON.parse(line) as WorkerEvent)) }
}
