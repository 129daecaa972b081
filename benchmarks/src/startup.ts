/**
 * What start-up costs, by part: processes that load one thing after the other, open a store and run one step.
 *
 * `npx -y pnpm@10 build && npx tsc -p benchmarks && node benchmarks/dist/startup.js [rounds]`. A part is the CPU time of the whole
 * process from the mark before it, garbage collection and the threads of V8 and libuv with it: medians over the rounds.
 */
import { fork } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { median } from "./statistics.js"
import type { Place } from "./Subject.js"

type Marks = ReadonlyArray<readonly [part: string, cpuMs: number]>

const opened = {
  memory: async () => (await import("@cairn/core")).MemoryStore.layer,
  sqlite: async ({ file }: Place) => (await import("@cairn/sqlite")).SqliteStore.layer({ filename: file }),
  postgres: async ({ url }: Place) => (await import("@cairn/postgres")).PostgresStore.layer({ url }),
}

type StoreName = keyof typeof opened

const child = async (name: StoreName, place: Place): Promise<Marks> => {
  const marks: Array<readonly [string, number]> = []
  const mark = (part: string): void => {
    const { system, user } = process.cpuUsage()
    marks.push([part, (system + user) / 1_000])
  }
  mark("Node")
  const Schema = await import("effect/Schema")
  mark("effect/Schema, which a workflow's file imports")
  const { Cairn, Workflow } = await import("@cairn/core")
  mark("Cairn's code")
  const store = await opened[name](place)
  mark("the store's code, and its client's")
  const workflow = Workflow.make("startup", { version: 1, input: Schema.Void })
    .step("first", { effects: [], output: Schema.Void }, () => mark("a run is started, claimed and begun"))
    .compile()
  const cairn = await Cairn.open({ store: store as never, workflows: [workflow] })
  mark("the store is opened, and a worker")
  await (await cairn.start(workflow, undefined)).result()
  await cairn.close()
  return marks
}

const ask = (name: StoreName, place: Place): Promise<Marks> =>
  new Promise((resolve, reject) => {
    const asked = fork(fileURLToPath(import.meta.url), [JSON.stringify([name, place])], { execArgv: ["--no-warnings"] })
    asked.once("message", (marks) => resolve(marks as Marks))
    asked.once("exit", (code) => reject(new Error(`it ended with ${code} and no answer`)))
  })

const measure = async (rounds: number): Promise<void> => {
  // Not in the children: they load what a user's process does.
  const { startServer } = await import("./postgres.js")
  const folder = await mkdtemp(path.join(tmpdir(), "cairn-startup-"))
  const server = await startServer()
  const place = { file: path.join(folder, "runs.db"), url: await server.database("startup") }
  const names = Object.keys(opened) as ReadonlyArray<StoreName>
  const told = new Map<StoreName, Array<Marks>>(names.map((name) => [name, []]))
  // The first round makes the tables, and counts for nothing.
  for (let round = -1; round < rounds; round++) {
    for (const name of names) {
      const marks = await ask(name, place)
      if (round >= 0) told.get(name)!.push(marks)
    }
  }
  await server.stop()
  await rm(folder, { recursive: true, force: true })
  for (const [name, all] of told) {
    console.log(`\n${name}`)
    const parts = all.map((marks) => marks.map(([part, ms], at) => [part, ms - (marks[at - 1]?.[1] ?? 0)] as const))
    for (const [at, [part]] of parts[0]!.entries()) {
      console.log(`${median(parts.map((each) => each[at]![1])).toFixed(0).padStart(5)} ms  ${part}`)
    }
    console.log(`${median(all.map((marks) => marks.at(-1)![1])).toFixed(0).padStart(5)} ms  all of it`)
  }
}

const [given] = process.argv.slice(2)
if (process.send === undefined) {
  await measure(Number(given ?? 11))
  // The package of the embedded server has a say in the exit code.
  process.exit(0)
}
process.send(await child(...(JSON.parse(given!) as [StoreName, Place])))
process.disconnect()
