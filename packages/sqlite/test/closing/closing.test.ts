/** How processes end, and what they leave in the file (field cases P051, P052, P053, P055). */
import { CheckpointStore } from "@cairn/core"
import { SqliteStore } from "@cairn/sqlite"
import { Effect } from "effect"
import { spawn } from "node:child_process"
import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterEach, beforeEach, describe, expect, it } from "vitest"

const script = fileURLToPath(new URL("./worker.ts", import.meta.url))
const steps = ["a", "b", "c", "d"]

describe.each([false, true])("a process (with a local log: %s)", (withLog) => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "cairn-closing-"))
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  const run = (end: string, name = "r") => {
    const environment = {
      CAIRN_FILE: join(folder, "cairn.db"),
      CAIRN_LOCAL: withLog ? join(folder, "local") : "",
      CAIRN_END: end,
      CAIRN_NAME: name,
    }
    const child = spawn(process.execPath, ["--conditions=@cairn/source", "--import", "tsx", script], {
      env: { ...process.env, ...environment },
      stdio: ["ignore", "pipe", "inherit"],
    })
    let output = ""
    const waiting: Array<() => void> = []
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString()
      for (const look of waiting) look()
    })
    const events = (): ReadonlyArray<any> =>
      output.split("\n").flatMap((line) => (line.startsWith("{") ? [JSON.parse(line)] : []))
    const ended = new Promise<number | NodeJS.Signals | null>((resolve) =>
      child.on("close", (code, signal) => resolve(signal ?? code)),
    )
    const says = (event: string) =>
      new Promise<void>((resolve) => {
        const look = () => (events().some((one) => one.event === event) ? resolve() : undefined)
        waiting.push(look)
        look()
      })
    return { child, ended, events, says }
  }

  const load = (runIds: ReadonlyArray<string>) =>
    Effect.flatMap(CheckpointStore, (store) => Effect.forEach(runIds, (runId) => store.load("default", runId))).pipe(
      Effect.provide(SqliteStore.layer({ filename: join(folder, "cairn.db") })),
      Effect.runPromise,
    )
  const names = (name: string, count: number) => Array.from({ length: count }, (_, n) => `${name}-${n}`)
  const pathsOf = (state: Awaited<ReturnType<typeof load>>[number]) => state.steps.map(({ path }) => path)

  it("that is killed as soon as a start has resolved leaves the run, with its input", async () => {
    for (const round of ["one", "two"]) {
      expect(await run("killed after start", round).ended).toBe("SIGKILL")
      for (const { run: row } of await load(names(round, 25))) expect(row.input).toBe('{"stepMs":0}')
    }
  })

  it("that exits as soon as a result has resolved leaves all of the run's steps", async () => {
    expect(await run("exit after result").ended).toBe(0)
    for (const state of await load(names("r", 25))) {
      expect(state.run.status).toBe("completed")
      expect(pathsOf(state)).toEqual(steps)
    }
  })

  it("that is asked to stop keeps what it has got through, and another goes on from there", async () => {
    const first = run("until asked")
    await first.says("started")
    await new Promise((resolve) => setTimeout(resolve, 600))
    first.child.kill("SIGTERM")
    expect(await first.ended).toBe(0)
    expect(first.events().at(-1).ms).toBeLessThan(3_000)
    const left = await load(names("r", 10))
    for (const { run: row } of left) expect([row.status, row.leaseOwner]).toEqual(["pending", null])
    // The step under way was let end.
    for (const state of left) expect(pathsOf(state).length).toBeGreaterThan(0)
    const second = run("results")
    expect(await second.ended).toBe(0)
    const [{ results }] = second.events()
    expect(results).toEqual(Array.from({ length: 10 }, () => steps))
    for (const [n, state] of (await load(names("r", 10))).entries()) {
      // What was there stands as it was, and no takeover counts as a recovery.
      expect(state.steps.slice(0, left[n]!.steps.length)).toEqual(left[n]!.steps)
      expect(state.run.recoveries).toBe(0)
    }
  })

  it("that has closed its client, twice at once, ends by itself, and leaves nothing on its host", async () => {
    const { ended, events } = run("close")
    expect(await ended).toBe(0)
    const [closed, exits] = events()
    expect(closed.left).toEqual([])
    expect(exits.at - closed.at).toBeLessThan(500)
    if (withLog) expect(readdirSync(join(folder, "local"))).toEqual([])
  })
})
