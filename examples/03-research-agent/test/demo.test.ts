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
  calls.map(({ kind, turn }) => (kind === "write" ? kind : turn))

/** What the demo promises, whatever the store, by the logs of model and CMS. */
const expectPromises = (output: string, temporary: string): void => {
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
  expect(output).toContain("5 kills: what was in flight was paid again, and one page is there.")
}

// Each waits for leases most of the time: together they take little longer than one.
describe.concurrent("the demo", { timeout: 120_000 }, () => {
  it("pays again for what was in flight and nothing else over five kills, and publishes one page", () =>
    withTemporary(async (temporary) => {
      const { code, output, problems } = await runDemo(["--keep"], temporary)
      expect(code, output + problems).toBe(0)
      expectPromises(output, temporary)
      expect(output).not.toContain("\u001b[")
    }))

  it("does the same over a Postgres of its own with --store postgres", () =>
    withTemporary(async (temporary) => {
      const { code, output, problems } = await runDemo(["--", "--store", "postgres", "--keep"], temporary)
      expect(code, output + problems).toBe(0)
      expectPromises(output, temporary)
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
