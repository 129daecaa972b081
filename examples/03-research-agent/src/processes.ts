/** Starts the processes of the demo: servers that run until they are stopped, and workers that die. */
import { spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"

/** From source, like the demo itself; `tsx` is found from the example's folder. */
const nodeOptions = ["--conditions=@cairn/source", "--import", "tsx"]
const exampleFolder = fileURLToPath(new URL("..", import.meta.url))

/** Past this, a process hangs: it is ended with SIGTERM, and the demo says so. */
const deadlineMs = 60_000

interface Start {
  readonly args?: ReadonlyArray<string>
  readonly environment?: NodeJS.ProcessEnv
  readonly timeout?: number
  readonly detached?: boolean
}

const start = (script: string, { args = [], environment = {}, timeout, detached = false }: Start): ChildProcess =>
  spawn(process.execPath, [...nodeOptions, fileURLToPath(new URL(script, import.meta.url)), ...args], {
    cwd: exampleFolder,
    env: { ...process.env, ...environment },
    // The child's standard input ends when this process does, however it does.
    stdio: ["pipe", "pipe", "inherit"],
    timeout,
    detached,
  })

/** How a process ended: its exit code, or the signal that ended it. */
export type Ending = number | NodeJS.Signals

/** Calls back with each line that the process prints, and resolves with how it ended. */
const untilExit = async (child: ChildProcess, onLine: (line: string) => void): Promise<Ending> => {
  const lines = createInterface({ input: child.stdout! }).on("line", onLine)
  const [[code, signal]] = (await Promise.all([once(child, "exit"), once(lines, "close")])) as [
    [number | null, NodeJS.Signals | null],
    unknown,
  ]
  return signal ?? code ?? 1
}

/** A process that runs until it is stopped, with the line of JSON that it announced itself with. */
export interface Service<Announced> {
  readonly announced: Announced
  readonly pid: number
  /** Closes its standard input and waits for its end. */
  readonly stop: () => Promise<void>
}

export const startService = async <Announced>(
  title: string,
  script: string,
  how: Start = {},
): Promise<Service<Announced>> => {
  const child = start(script, how)
  let announce: (announced: Announced) => void = () => {}
  const listening = new Promise<Announced>((resolve) => (announce = resolve))
  const exit = untilExit(child, (line) => announce(JSON.parse(line) as Announced))
  const announced = await Promise.race([
    listening,
    exit.then((ending) => Promise.reject(new Error(`${title} ended (${ending}) before it listened.`))),
  ])
  return {
    announced,
    pid: child.pid!,
    stop: async () => {
      child.stdin!.end()
      await exit
    },
  }
}

/** `started`: whether the server is the demo's own. */
export interface AnnouncedPostgres {
  readonly url: string
  readonly started: boolean
}

/** Makes an empty database and waits until it can be used. */
export const startDatabase = (): Promise<Service<AnnouncedPostgres>> =>
  // In a process group of its own: Ctrl-C would end it before its files are removed.
  startService("Postgres", "postgresServer.ts", { detached: true })

/** A process that ends by itself, or is killed. */
export interface Program {
  readonly pid: number
  readonly exit: Promise<Ending>
  readonly kill: () => void
}

/** Starts a program. Settings stand in its environment, where a url with a password may stand: a command line is public. */
export const run = (
  script: string,
  how: Pick<Start, "args" | "environment">,
  onLine: (line: string) => void = () => {},
): Program => {
  const child = start(script, { ...how, timeout: deadlineMs })
  return { pid: child.pid!, exit: untilExit(child, onLine), kill: () => child.kill("SIGKILL") }
}
