/** Worker processes over a place, and the log in which their outside world writes down what it was asked. */
import type { CheckpointDriver } from "@cairn/core"
import { Effect } from "effect"
import { spawn } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"

/** A place without a run. `script` is what a worker process runs, `args` how it finds the place. */
export interface Place {
  readonly driver: CheckpointDriver
  readonly script: URL
  readonly args: ReadonlyArray<string>
}

/** A file that is gone with the scope. */
export const logFile = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(path.join(tmpdir(), "cairn-log-"))),
  (folder) => Effect.promise(() => rm(folder, { recursive: true, force: true })),
).pipe(Effect.map((folder) => path.join(folder, "log.jsonl")))

/** A process that is killed with the scope; `ended` is its end, with what it has printed. */
export const startWorker = ({ args, script }: Place, ...given: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const child = spawn(
        process.execPath,
        ["--conditions=@cairn/source", "--import", "tsx", script.pathname, ...args, ...given],
        { stdio: ["ignore", "pipe", "pipe"] },
      )
      let output = ""
      for (const stream of [child.stdout, child.stderr]) {
        stream.on("data", (chunk: Buffer) => (output += chunk.toString()))
      }
      const ended = new Promise<{ readonly signal: NodeJS.Signals | null; readonly output: string }>((resolve) =>
        child.on("close", (_, signal) => resolve({ signal, output: output.trim() })),
      )
      return { child, ended: Effect.promise(() => ended) }
    }),
    ({ child }) => Effect.sync(() => child.kill("SIGKILL")),
  )

/** A process until its end, which is its own or by its own hand. */
export const ranWorker = (place: Place, ...given: ReadonlyArray<string>) =>
  Effect.scoped(Effect.flatMap(startWorker(place, ...given), ({ ended }) => ended))
