import { makeTestDatabase } from "@cairn/postgres-server"
import { describe, expect, it, vi } from "@effect/vitest"
import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { ModelEntry } from "../src/extractors/engine.js"
import type { AnnouncedPostgres } from "../src/processes.js"
import type { Entry } from "../src/providers/idempotentApi.js"
import { readJournal } from "../src/providers/journal.js"
import type { Mail } from "../src/providers/mail.js"
import type { Charge } from "../src/providers/payments.js"
import { filesIn } from "../src/workerProtocol.js"

const exampleFolder = fileURLToPath(new URL("..", import.meta.url))

/** Runs the demo as the root's `demo` script does, with its files below a folder of the test. */
const runDemo = (flags: ReadonlyArray<string>, temporary: string, environment: NodeJS.ProcessEnv = {}) =>
  new Promise<{ readonly code: number; readonly output: string; readonly problems: string }>((resolve) => {
    execFile(
      process.execPath,
      ["--conditions=@cairn/source", "--import", "tsx", "src/demo.ts", ...flags],
      {
        cwd: exampleFolder,
        env: {
          ...process.env,
          TMPDIR: temporary,
          OPENAI_API_KEY: "",
          ANTHROPIC_API_KEY: "",
          CI: "",
          ...environment,
        },
      },
      (error, output, problems) => resolve({ code: error === null ? 0 : Number(error.code), output, problems }),
    )
  })

const withTemporary = async (use: (folder: string) => Promise<void>): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), "cairn-demo-test-"))
  // A Postgres that root starts runs under another account, and its files lie below.
  chmodSync(folder, 0o755)
  try {
    await use(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const connected = (port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy()
      resolve()
    })
    socket.once("error", reject)
  })

const cells = (output: string, label: string): ReadonlyArray<number> => {
  const row = output.split("\n").find((line) => line.trim().startsWith(label))
  return (row ?? "").replace(label, "").trim().split(/\s+/).map(Number)
}

const invoicesOf = (log: ReadonlyArray<Entry<Charge | Mail>>): ReadonlyArray<string> =>
  log.flatMap((entry) => (entry.entry === "performed" && entry.done !== null ? [entry.done.invoice] : [])).sort()

const all = ["CH-2291", "INV-20417", "RE-2026-0815"]

/** Alone on two cores the demo takes about 12 seconds; beside other tests it has to share them. */
const timeout = 120_000

/** Each scenario's logs, among the files that `--keep` has left below the folder. */
const kept = (temporary: string) => {
  const [made] = readdirSync(temporary).filter((name) => name.startsWith("cairn-demo-"))
  return (name: string) => {
    const files = filesIn(join(temporary, made!, name))
    return {
      database: files.database,
      payments: readJournal<Entry<Charge>>(files.payments),
      mail: readJournal<Entry<Mail>>(files.mail),
      model: readJournal<ModelEntry>(files.model),
    }
  }
}

const replayed = (log: ReadonlyArray<Entry<unknown>>) => log.filter(({ entry }) => entry === "replayed")
const received = (log: ReadonlyArray<Entry<unknown>>) => log.filter(({ entry }) => entry === "received")
const asked = (log: ReadonlyArray<ModelEntry>) => log.filter(({ entry }) => entry === "asked")

/** What a scenario's model has cost, in micro-dollars, by its log. */
const costIn = (log: ReadonlyArray<ModelEntry>): number =>
  log.reduce((sum, entry) => sum + (entry.entry === "billed" ? entry.microDollars! : 0), 0)

const dollars = (microDollars: number): string => `$${(microDollars / 1e6).toFixed(6)}`

/** What the demo promises, whatever the store: by the logs, and by the table made of them. */
const expectPromises = (output: string, scenario: ReturnType<typeof kept>): void => {
  const cairn = scenario("cairn")
  expect(invoicesOf(cairn.payments)).toEqual(all)
  expect(invoicesOf(cairn.mail)).toEqual(all)
  expect(asked(cairn.model)).toHaveLength(3)
  for (const log of [cairn.payments, cairn.mail]) {
    // Each was sent before the kill and again after it, under one key an invoice.
    expect(received(log).length).toBeGreaterThanOrEqual(6)
    expect(new Set(received(log).map(({ key }) => key)).size).toBe(3)
    expect(received(log).every(({ key }) => key !== null)).toBe(true)
    expect(replayed(log)).toHaveLength(received(log).length - 3)
  }

  const plain = scenario("plain")
  expect(invoicesOf(plain.payments)).toEqual([...all, ...all, ...all].sort())
  expect(invoicesOf(plain.mail)).toEqual([...all, ...all].sort())
  expect(asked(plain.model)).toHaveLength(9)

  const withKeys = scenario("plain-with-keys")
  expect(invoicesOf(withKeys.payments)).toEqual(all)
  expect(invoicesOf(withKeys.mail)).toEqual(all)
  expect(asked(withKeys.model)).toHaveLength(9)

  expect(cells(output, "worker processes started")).toEqual([3, 3, 3])
  expect(cells(output, "of them killed with SIGKILL")).toEqual([2, 2, 2])
  expect(cells(output, "requests to the payment API")).toEqual([received(cairn.payments).length, 9, 9])
  expect(cells(output, "requests to the mail API")).toEqual([received(cairn.mail).length, 6, 6])
  const answersKept = replayed(cairn.payments).length + replayed(cairn.mail).length
  expect(cells(output, "of both: given a kept answer")).toEqual([answersKept, 0, 9])
  expect(cells(output, "charges made")).toEqual([3, 9, 3])
  expect(cells(output, "mails delivered")).toEqual([3, 6, 3])
  expect(cells(output, "model calls")).toEqual([3, 9, 9])
  const [once, thrice] = [costIn(cairn.model), costIn(plain.model)]
  expect(once).toBeGreaterThan(0)
  expect([thrice, costIn(withKeys.model)]).toEqual([3 * once, 3 * once])
  expect(output).toMatch(new RegExp(`what they cost +~\\${dollars(once)}( +~\\${dollars(thrice)}){2}\n`))
  // By Cairn's own account, which knows of no plain retry.
  const saved =
    Number(/Resuming has saved ~\$(\d\.\d{6}), by Cairn's own account \(Cairn\.cost\)/.exec(output)?.[1]) * 1e6
  // A worker that is starved of its processor may lose a lease, which counts as one more interruption.
  if (output.includes("what the others paid more")) expect(saved).toBeCloseTo(thrice - once)
  else expect(saved).toBeGreaterThanOrEqual(thrice - once)
  expect(output).toContain("~ An estimate: rules have read the texts, and nobody bills them.")
  for (const beyond of ["CHF 8,776.42", "GBP 5,805.60", "EUR 3,497.18"]) expect(output).toContain(beyond)
  expect(output).toContain("each charged once, each mailed once")
}

const colourless = { FORCE_COLOR: "1", NO_COLOR: "1" }

// Each waits for leases most of the time: together they take little longer than one.
describe.concurrent("the demo", { timeout }, () => {
  it("charges and mails each invoice once over two kills, and shows without colours what a plain retry costs", () =>
    withTemporary(async (temporary) => {
      const { code, output, problems } = await runDemo(["--keep"], temporary, colourless)
      expect(code, problems).toBe(0)
      expectPromises(output, kept(temporary))
      const { database } = kept(temporary)("cairn")
      expect(statSync(database).size).toBeGreaterThan(0)
      expect(output).toContain(database)
      expect(output).not.toContain("\u001b[")
      const tooLong = output.split("\n").filter((line) => line.length > 100 && !line.includes(temporary))
      expect(tooLong).toEqual([])
    }))

  it("does the same over a Postgres of its own with --store postgres, and leaves nothing of it behind", () =>
    withTemporary(async (temporary) => {
      const { code, output, problems } = await runDemo(["--", "--store", "postgres", "--keep"], temporary, {
        ...colourless,
        CAIRN_TEST_POSTGRES_URL: "",
      })
      expect(code, problems).toBe(0)
      expectPromises(output, kept(temporary))
      expect(existsSync(kept(temporary)("cairn").database)).toBe(false)
      const port = Number(/Postgres +127\.0\.0\.1:(\d+) \(a server started for this demo\)/.exec(output)?.[1])
      await expect(connected(port)).rejects.toMatchObject({ code: "ECONNREFUSED" })
      // But for the logs that were to be kept, and what `tsx` has compiled.
      expect(readdirSync(temporary).filter((name) => !/^(cairn-demo|tsx)-/.test(name))).toEqual([])
    }))

  it("plays the comparison alone with --plain, coloured on request, and leaves no files behind", () =>
    withTemporary(async (temporary) => {
      const { code, output } = await runDemo(["--plain"], temporary, { FORCE_COLOR: "1", NO_COLOR: "" })
      expect(code).toBe(0)
      expect(output).toContain("\u001b[31m")
      expect(output).not.toContain("Worker 1")
      expect(output).not.toContain("Cairn.cost")
      expect(readdirSync(temporary).filter((name) => name.startsWith("cairn-demo-"))).toEqual([])
    }))

  it("prints its flags with --help, and one line with exit code 1 for a store that it does not know", () =>
    withTemporary(async (temporary) => {
      const help = await runDemo(["--", "--help"], temporary)
      expect(help.code).toBe(0)
      for (const flag of ["--store sqlite", "--store postgres", "--plain", "--keep"])
        expect(help.output).toContain(flag)

      const unknown = await runDemo(["--store", "mysql"], temporary)
      expect(unknown).toEqual({
        code: 1,
        output: "",
        problems: "There is no store 'mysql'; there are: sqlite, postgres.\n",
      })
    }))

  it("gets a database on the server of CAIRN_TEST_POSTGRES_URL, which is dropped even when the demo is killed", async () => {
    const server = await makeTestDatabase()
    const script = `
      import { startDatabase } from "./src/processes.ts"
      const { announced } = await startDatabase()
      console.log(JSON.stringify(announced))`
    const starter = spawn(
      process.execPath,
      ["--conditions=@cairn/source", "--import", "tsx", "--input-type=module", "--eval", script],
      {
        cwd: exampleFolder,
        env: { ...process.env, CAIRN_TEST_POSTGRES_URL: server.url },
        stdio: ["ignore", "pipe", "inherit"],
      },
    )
    try {
      const [line] = (await once(starter.stdout, "data")) as [Buffer]
      const { url, started } = JSON.parse(line.toString()) as AnnouncedPostgres
      const made = new URL(url)
      const databases = () =>
        server.query("select datname from pg_database where datname = $1", [made.pathname.slice(1)])
      expect(started).toBe(false)
      expect(made.host).toBe(new URL(server.url).host)
      expect(made.pathname).not.toBe(new URL(server.url).pathname)
      expect(await databases()).toHaveLength(1)

      starter.kill("SIGKILL")
      await vi.waitFor(async () => expect(await databases()).toEqual([]), { timeout: 30_000, interval: 50 })
    } finally {
      starter.kill("SIGKILL")
      await server.drop()
    }
  })
})
