import { describe, expect, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { readJournal } from "../src/mailServer/journal.js"
import { openMaildir } from "../src/mailServer/maildir.js"
import type { Question } from "../src/mailServer/mailServer.js"
import { filesIn } from "../src/workerProtocol.js"

const exampleFolder = fileURLToPath(new URL("..", import.meta.url))

/** Runs the demo as the folder's `demo` script does, with its files below a folder of the test. */
const runDemo = (flags: ReadonlyArray<string>, temporary: string) =>
  new Promise<{ readonly code: number; readonly output: string; readonly problems: string }>((resolve) => {
    execFile(
      process.execPath,
      ["--conditions=@cairn/source", "--import", "tsx", "src/demo.ts", ...flags],
      {
        cwd: exampleFolder,
        env: {
          ...process.env,
          TMPDIR: temporary,
          CI: "",
          FORCE_COLOR: "1",
          NO_COLOR: "1",
          CAIRN_TEST_POSTGRES_URL: "",
        },
      },
      (error, output, problems) => resolve({ code: error === null ? 0 : Number(error.code), output, problems }),
    )
  })

const withTemporary = async (use: (folder: string) => Promise<void>): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), "cairn-mail-test-"))
  // A Postgres that root starts runs under another account, and its files lie below.
  chmodSync(folder, 0o755)
  try {
    await use(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** How often each value stands there. */
const timesOf = <A>(values: ReadonlyArray<A>): ReadonlyMap<A, number> => {
  const times = new Map<A, number>()
  for (const value of values) times.set(value, (times.get(value) ?? 0) + 1)
  return times
}

/** A scenario's files, among those that `--keep` has left below the folder. */
const kept = async (temporary: string, name: "cairn" | "plain") => {
  const [made] = readdirSync(temporary).filter((entry) => entry.startsWith("cairn-mail-demo-"))
  const files = filesIn(join(temporary, made!, name))
  return {
    database: files.database,
    messages: await openMaildir(files.mail).messages(),
    questions: readJournal<Question>(files.questions),
  }
}

const readers = ["jose.nino@reader.example", "mara.lindqvist@reader.example", "t.okafor@reader.example"]

/** What the demo promises, whatever the store: by what lies on the server's disk, and by the table made of it. */
const expectPromises = async (output: string, temporary: string): Promise<void> => {
  const cairn = await kept(temporary, "cairn")
  expect(cairn.messages.map(({ to }) => to).sort()).toEqual(readers)
  const ids = timesOf(cairn.messages.map(({ messageId }) => messageId))
  expect([...ids.values()]).toEqual([1, 1, 1])
  for (const [id] of ids) {
    expect(id).toMatch(/^<[0-9a-f]{32}@bookshop\.example>$/)
    const answers = cairn.questions.filter(({ messageId }) => messageId === id).map(({ found }) => found)
    expect(answers[0]).toBe(0)
    expect(answers.at(-1)).toBe(1)
    expect(output).toMatch(new RegExp(`${id} +no,.* yes +1 +2\n`))
  }
  // Nothing was asked but about what was sent.
  expect(cairn.questions.filter(({ messageId }) => !ids.has(messageId))).toEqual([])

  const plain = await kept(temporary, "plain")
  expect([...timesOf(plain.messages.map(({ to }) => to)).entries()].sort()).toEqual(readers.map((to) => [to, 2]))
  expect([...timesOf(plain.messages.map(({ messageId }) => messageId)).values()]).toEqual([2, 2, 2])
  expect(plain.questions).toEqual([])

  expect(output.match(/SIGKILL/g)).toHaveLength(2)
  expect(output).toContain("3 orders, 2 kills: one mail per Message-ID.")
}

// Each waits for leases most of the time: together they take little longer than one.
describe.concurrent("the demo", { timeout: 120_000 }, () => {
  it("sends each mail once over two kills, and shows without colours what a plain retry sends", () =>
    withTemporary(async (temporary) => {
      const { code, output, problems } = await runDemo(["--keep"], temporary)
      expect(code, problems).toBe(0)
      await expectPromises(output, temporary)
      expect(statSync((await kept(temporary, "cairn")).database).size).toBeGreaterThan(0)
      expect(output).not.toContain("\u001b[")
      expect(output.split("\n").filter((line) => line.length > 100 && !line.includes(temporary))).toEqual([])
    }))

  it("does the same over a Postgres of its own with --store postgres, and leaves nothing of it behind", () =>
    withTemporary(async (temporary) => {
      const { code, output, problems } = await runDemo(["--", "--store", "postgres", "--keep"], temporary)
      expect(code, problems).toBe(0)
      await expectPromises(output, temporary)
      expect(output).toContain("(a server started for this demo)")
      expect(existsSync((await kept(temporary, "cairn")).database)).toBe(false)
      // But for the files that were to be kept, and what `tsx` has compiled.
      expect(readdirSync(temporary).filter((name) => !/^(cairn-mail-demo|tsx)-/.test(name))).toEqual([])
    }))

  it("prints its flags with --help, and one line with exit code 1 for a store that it does not know", () =>
    withTemporary(async (temporary) => {
      const help = await runDemo(["--", "--help"], temporary)
      expect(help.code).toBe(0)
      for (const flag of ["--store sqlite", "--store postgres", "--keep"]) expect(help.output).toContain(flag)

      const unknown = await runDemo(["--store", "mysql"], temporary)
      expect(unknown).toEqual({
        code: 1,
        output: "",
        problems: "There is no store 'mysql'; there are: sqlite, postgres.\n",
      })
      expect(readdirSync(temporary).filter((name) => name.startsWith("cairn-mail-demo-"))).toEqual([])
    }))
})
