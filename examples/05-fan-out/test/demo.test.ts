import { describe, expect, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { MailEntry } from "../src/mailApi.js"
import { goneAddresses, recipients } from "../src/recipients.js"

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
  const folder = mkdtempSync(join(tmpdir(), "cairn-fan-out-test-"))
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
  const made = readdirSync(temporary).find((entry) => entry.startsWith("cairn-fan-out-demo-"))
  return join(temporary, made!, file)
}

const readLog = <Entry>(file: string): ReadonlyArray<Entry> =>
  readFileSync(file, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Entry)

/** What the demo promises, whatever the store, by the mail API's log. */
const expectPromises = (output: string, temporary: string): void => {
  const log = readLog<MailEntry>(kept(temporary, "mails.log.jsonl"))
  const of = (event: MailEntry["event"]) => log.filter((entry) => entry.event === event)
  const reachable = recipients.map(({ address }) => address).filter((address) => !goneAddresses.includes(address))
  expect(
    of("sent")
      .map(({ to }) => to)
      .sort(),
  ).toEqual(reachable)
  expect(new Set(log.map(({ key }) => key)).size).toBe(1_000)
  expect(new Set(of("refused").map(({ to }) => to))).toEqual(new Set(goneAddresses))
  // Twice twenty were under way when a worker died.
  expect(of("known").length).toBeGreaterThan(0)
  expect(of("known").length).toBeLessThanOrEqual(40)
  expect(of("keyReused")).toEqual([])

  expect(goneAddresses).toHaveLength(20)
  expect(output).toContain(`The run lists the 20 unreachable: ${goneAddresses[0]}, ${goneAddresses[1]}, ..`)
  expect(output.match(/SIGKILL {2}/g)).toHaveLength(2)
  expect(output.match(/heap \d+ MB at first, \d+ at most; process \d+ MB, \d+ at most/g)).toHaveLength(3)
  expect(output).toContain("Everybody who can be reached was sent one mail.")
}

// Each waits for leases most of the time: together they take little longer than one.
describe.concurrent("the demo", { timeout: 120_000 }, () => {
  it("sends a thousand mails once each over two kills, and lists who could not be reached", () =>
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
