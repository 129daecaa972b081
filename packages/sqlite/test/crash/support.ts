/** Child processes over one SQLite file and one log of the outside world. */
import { CheckpointStore, type RunState } from "@cairn/core"
import { SqliteStore } from "@cairn/sqlite"
import { Effect } from "effect"
import { spawn, type ChildProcess } from "node:child_process"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"
import { fileURLToPath } from "node:url"
import type { Sent } from "./fixtures/workflow.js"

export interface Place {
  readonly folder: string
  readonly filename: string
  readonly log: string
}

export const makePlace = async (): Promise<Place> => {
  const folder = await mkdtemp(path.join(tmpdir(), "cairn-crash-"))
  return { folder, filename: path.join(folder, "cairn.db"), log: path.join(folder, "sent.jsonl") }
}

export const removePlace = (place: Place): Promise<void> => rm(place.folder, { recursive: true, force: true })

export interface Ended {
  readonly signal: NodeJS.Signals | null
  readonly code: number | null
  readonly events: ReadonlyArray<{ readonly event: string; readonly ok?: boolean; readonly value?: unknown }>
  readonly output: string
}

export interface RunningWorker {
  readonly process: ChildProcess
  readonly ended: Promise<Ended>
  readonly output: () => string
}

const scriptOf = (program: string): string => fileURLToPath(new URL(`./fixtures/${program}.ts`, import.meta.url))

export const startWorker = (
  place: Place,
  runId: string,
  fault = "",
  environment: Readonly<Record<string, string>> = {},
  program: "worker" | "policyWorker" | "localWorker" = "worker",
): RunningWorker => {
  const own = { CAIRN_FILE: place.filename, CAIRN_LOG: place.log, CAIRN_RUN: runId, CAIRN_FAULT: fault }
  const child = spawn(process.execPath, ["--conditions=@cairn/source", "--import", "tsx", scriptOf(program)], {
    env: { ...process.env, ...own, ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  })
  let output = ""
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()))
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()))
  const ended = new Promise<Ended>((resolve) => {
    child.on("close", (code, signal) => {
      const events = output.split("\n").flatMap((line) => (line.startsWith("{") ? [JSON.parse(line)] : []))
      resolve({ code, signal, events, output })
    })
  })
  return { process: child, ended, output: () => output }
}

export const sent = async (place: Place): Promise<ReadonlyArray<Sent>> =>
  (await readFile(place.log, "utf8").catch(() => ""))
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Sent)

/** The run as a newcomer to the file sees it. */
export const load = (place: Place, runId: string): Promise<RunState> =>
  Effect.runPromise(
    Effect.flatMap(CheckpointStore, (store) => store.load("default", runId)).pipe(
      Effect.provide(SqliteStore.layer({ filename: place.filename })),
    ),
  )

/** Waits until something that is looked at again and again is so; fails with what was seen last. */
export const until = async <A>(look: () => A | Promise<A>, so: (seen: A) => boolean, what: string): Promise<A> => {
  const end = Date.now() + 20_000
  for (;;) {
    const seen = await look()
    if (so(seen)) return seen
    if (Date.now() > end) throw new Error(`never saw ${what}; last: ${JSON.stringify(seen)}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** Whether the kernel has stopped a process (state T). */
export const isStopped = async (pid: number): Promise<boolean> =>
  /\) T /.test(await readFile(`/proc/${pid}/stat`, "utf8").catch(() => ""))
