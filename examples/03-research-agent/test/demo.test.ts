import { describe, expect, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { CmsEntry } from "../src/servers/cms.js"
import type { ModelCall } from "../src/servers/model.js"

const exampleFolder = fileURLToPath(new URL("..", import.meta.url))

/** Runs the demo as the folder's `demo` script does, with its files below a folder of the test. */
const runDemo = (flags: ReadonlyArray<string>, temporary: string) =>
  new Promise<{ readonly code: number; readonly output: string; readonly problems: string }>((resolve) => {
    execFile(
      process.execPath,
      ["--conditions=@cairn/source", "--import", "tsx", "src/demo.ts", ...flags],
      {
        cwd: exampleFolder,
        env: { ...process.env, TMPDIR: temporary, FORCE_COLOR: undefined, NO_COLOR: "1", CAIRN_TEST_POSTGRES_URL: "" },
      },
      (error, output, problems) => resolve({ code: error === null ? 0 : Number(error.code), output, problems }),
    )
  })

const withTemporary = async (use: (folder: string) => Promise<void>): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), "cairn-agent-test-"))
  // A Postgres that root starts runs under another account, and its files lie below.
  chmodSync(folder, 0o755)
  try {
    await use(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** What `--keep` has left below the folder. */
const kept = (temporary: string, file: string): string => {
  const made = readdirSync(temporary).find((entry) => entry.startsWith("cairn-agent-demo-"))
  return join(temporary, made!, file)
}

const readLog = <Entry>(file: string): ReadonlyArray<Entry> =>
  readFileSync(file, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Entry)

/** What the model was asked: the turn, or for the article. */
const asked = (calls: ReadonlyArray<ModelCall>): ReadonlyArray<number | "write"> =>
  calls.map(({ turn }) => turn ?? "write")

const costOf = (calls: ReadonlyArray<ModelCall>): number => calls.reduce((sum, call) => sum + call.costMicroUsd, 0)
const dollars = (microDollars: number): string => `\\$${(microDollars / 1e6).toFixed(6)}`

/** What the demo promises, whatever the store, by the logs of model and CMS. */
const expectPromises = (output: string, problems: string, temporary: string): void => {
  const calls = readLog<ModelCall>(kept(temporary, "cairn/model.log.jsonl"))
  // Each answer once, but for the two that were in flight when a worker died: in turn 1, and the article.
  expect(asked(calls)).toEqual([0, 1, 1, 2, 3, 4, 5, "write", "write"])
  const cms = readLog<CmsEntry>(kept(temporary, "cairn/cms.log.jsonl"))
  expect(cms.map(({ event, key, page }) => ({ event, key, page }))).toEqual([
    { event: "published", key: "default/cairns/publish#0", page: "/pages/1" },
    { event: "known", key: "default/cairns/publish#0", page: "/pages/1" },
  ])
  // What was paid for last is what stands there.
  expect(cms[0]!.text).toContain("(Draft 2.)")

  const plainCalls = readLog<ModelCall>(kept(temporary, "plain/model.log.jsonl"))
  const whole = [0, 1, 2, 3, 4, 5, "write"]
  expect(asked(plainCalls)).toEqual([0, 1, 0, 1, 2, 0, 1, 2, 3, 4, ...whole, ...whole, ...whole])
  const plainPages = readLog<CmsEntry>(kept(temporary, "plain/cms.log.jsonl"))
  expect(plainPages.map(({ page, text }) => [page, /Draft \d/.exec(text)?.[0]])).toEqual([
    ["/pages/1", "Draft 2"],
    ["/pages/2", "Draft 3"],
  ])

  expect(output.match(/ {4}SIGKILL {2}/g)).toHaveLength(5)
  expect(output).toMatch(/model calls \(one run needs 7\) +9 +31\n/)
  expect(output).toMatch(/pages published +1 +2\n/)

  const [billed, billedByPlain] = [costOf(calls), costOf(plainCalls)]
  expect(output).toMatch(new RegExp(`billed for them +${dollars(billed)} +${dollars(billedByPlain)}\\n`))
  // The third call and the eighth were those in flight, asked again: Cairn knows of each one answer.
  const seen = billed - calls[2]!.costMicroUsd - calls[8]!.costMicroUsd
  expect(output).toMatch(new RegExp(`paid for answers that it has seen +${dollars(seen)}\\n`))
  expect(output).toMatch(/for 2 answers cut off, at most +\$0\.0\d+\n/)
  const saved = Number(/saved by resuming +\$(\d\.\d{6})\n/.exec(output)?.[1]) * 1e6
  // A worker that is starved of its processor may lose its lease, which counts as one more interruption.
  if (problems.includes("LeaseLost")) expect(saved).toBeGreaterThanOrEqual(billedByPlain - billed)
  else expect(saved).toBeCloseTo(billedByPlain - billed)

  // What the model said was shown while it said it; what a kill hit was not kept, and said again.
  expect(output).toContain(' agent[0]/think  {"tool":"search","words":"cairn"}  kept\n')
  expect(output.match(/ agent\[1]\/think {2}.*/g)?.map((line) => line.endsWith("kept"))).toEqual([false, true])
  expect(output.match(/^ {4}article .*/gm)?.map((line) => line.endsWith("kept"))).toEqual([false, true])
  expect(output).toContain("5 kills: what was in flight was paid again, and one page is there.")
}

// Each waits for leases most of the time: together they take little longer than one.
describe.concurrent("the demo", { timeout: 240_000 }, () => {
  it("pays again for what was in flight and nothing else over five kills, and publishes one page", () =>
    withTemporary(async (temporary) => {
      const { code, output, problems } = await runDemo(["--keep"], temporary)
      expect(code, output + problems).toBe(0)
      expectPromises(output, problems, temporary)
      expect(output).not.toContain("\u001b[")
    }))

  it("does the same over a Postgres of its own with --store postgres", () =>
    withTemporary(async (temporary) => {
      const { code, output, problems } = await runDemo(["--", "--store", "postgres", "--keep"], temporary)
      expect(code, output + problems).toBe(0)
      expectPromises(output, problems, temporary)
    }))

  it("says in one line that it does not know a store", () =>
    withTemporary(async (temporary) => {
      expect(await runDemo(["--store", "mysql"], temporary)).toEqual({
        code: 1,
        output: "",
        problems: "There is no store 'mysql'; there are: sqlite, postgres.\n",
      })
    }))
})
