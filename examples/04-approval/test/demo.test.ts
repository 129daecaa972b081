import { describe, expect, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { BankEntry } from "../src/bank.js"

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
  const folder = mkdtempSync(join(tmpdir(), "cairn-approval-test-"))
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
  const made = readdirSync(temporary).find((entry) => entry.startsWith("cairn-approval-demo-"))
  return join(temporary, made!, file)
}

const readLog = <Entry>(file: string): ReadonlyArray<Entry> =>
  existsSync(file)
    ? readFileSync(file, "utf8")
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as Entry)
    : []

/** What the demo promises, whatever the store: who wins is open, and everything else follows from it. */
const expectPromises = (output: string, temporary: string): void => {
  const isApproved = output.includes("Ann: approve is recorded")
  const [winner, loser] = isApproved ? ["Ann", "Bob"] : ["Bob", "Ann"]
  expect(output).toContain(`${winner}: ${isApproved ? "approve" : "reject"} is recorded`)
  expect(output).toContain(`${loser}: DecisionRefused: `)
  expect(output).toContain(`${winner} has decided on 'approve' already`)
  expect(output).toContain("Eve: approve is recorded")
  expect(output).toMatch(/paper-6 +paid \(transfer-\d\)/)
  expect(output).toMatch(isApproved ? /train-7 +paid \(transfer-\d\)/ : /train-7 +rejected by Bob: too dear/)
  expect(output).toMatch(/hotel-8 +rejected by Cleo: the trip was called off/)
  expect(output).toMatch(/books-9 +expired: nobody has decided/)
  expect(output).toContain("Dora: DecisionRefused: ")

  const paid = (runId: string, to: string) => ({ event: "paid", key: `default/${runId}/way:approved/pay#0`, to })
  const log = [...readLog<BankEntry>(kept(temporary, "bank.log.jsonl"))].sort((a, b) => (a.key < b.key ? -1 : 1))
  expect(log).toEqual([paid("paper-6", "Ira Dahl"), ...(isApproved ? [paid("train-7", "Jo Amara")] : [])])
  expect(output.match(/SIGKILL {2}/g)).toHaveLength(1)
  expect(output).toContain("One decision a run, and nothing was paid without it.")
}

// Each waits for a deadline most of the time: together they take little longer than one.
describe.concurrent("the demo", { timeout: 120_000 }, () => {
  it("takes the first decision, refuses the other and a late one, and pays only what was approved", () =>
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
