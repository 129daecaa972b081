/** A child that runs TypeScript from source and talks in lines. */
import { spawn, type ChildProcess } from "node:child_process"
import { createInterface } from "node:readline"
import { Effect } from "effect"

export interface Child {
  readonly process: ChildProcess
  /** The next line that the child prints; fails if it ends before. */
  readonly line: () => Promise<string>
  readonly tell: (text: string) => void
  /** How the child ended: its exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals | null>
}

const start = (file: string, args: ReadonlyArray<string>): Child => {
  const path = new URL(`../children/${file}`, import.meta.url).pathname
  const child = spawn(process.execPath, ["--conditions=@cairn/source", "--import", "tsx", path, ...args], {
    stdio: ["pipe", "pipe", "inherit"],
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    process: child,
    line: async () => {
      const next = await lines.next()
      if (next.done === true) throw new Error(`${file} ended before it printed what the test waits for`)
      return next.value
    },
    tell: (text) => child.stdin.write(`${text}\n`),
    ended: new Promise((resolve) => child.on("exit", (code, signal) => resolve(signal ?? code))),
  }
}

/** A child that is killed at the latest when the scope ends. */
export const startChild = (file: string, ...args: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.sync(() => start(file, args)),
    (child) => Effect.sync(() => child.process.kill("SIGKILL")),
  )
