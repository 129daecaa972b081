import { describe, expect, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { ModelCall } from "../src/extractors/engine.js"
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
  try {
    await use(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const cells = (output: string, label: string): ReadonlyArray<number> => {
  const row = output.split("\n").find((line) => line.trim().startsWith(label))
  return (row ?? "").replace(label, "").trim().split(/\s+/).map(Number)
}

const invoicesOf = (log: ReadonlyArray<Entry<Charge | Mail>>): ReadonlyArray<string> =>
  log.flatMap((entry) => (entry.entry === "performed" && entry.done !== null ? [entry.done.invoice] : [])).sort()

const all = ["CH-2291", "INV-20417", "RE-2026-0815"]

/** Alone on two cores the demo takes about 12 seconds; beside other tests it has to share them. */
const timeout = 120_000

describe("the demo", { timeout }, () => {
  it("charges and mails each invoice once over two kills, and shows without colours what a plain retry costs", () =>
    withTemporary(async (temporary) => {
      const { code, output, problems } = await runDemo(["--keep"], temporary, { FORCE_COLOR: "1", NO_COLOR: "1" })
      expect(code, problems).toBe(0)

      const [made] = readdirSync(temporary).filter((name) => name.startsWith("cairn-demo-"))
      const scenario = (name: string) => {
        const files = filesIn(join(temporary, made!, name))
        return {
          database: files.database,
          payments: readJournal<Entry<Charge>>(files.payments),
          mail: readJournal<Entry<Mail>>(files.mail),
          model: readJournal<ModelCall>(files.model),
        }
      }
      const replayed = (log: ReadonlyArray<Entry<unknown>>) => log.filter(({ entry }) => entry === "replayed")
      const received = (log: ReadonlyArray<Entry<unknown>>) => log.filter(({ entry }) => entry === "received")

      const cairn = scenario("cairn")
      expect(statSync(cairn.database).size).toBeGreaterThan(0)
      expect(invoicesOf(cairn.payments)).toEqual(all)
      expect(invoicesOf(cairn.mail)).toEqual(all)
      expect(cairn.model).toHaveLength(3)
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
      expect(plain.model).toHaveLength(9)

      const withKeys = scenario("plain-with-keys")
      expect(invoicesOf(withKeys.payments)).toEqual(all)
      expect(invoicesOf(withKeys.mail)).toEqual(all)
      expect(withKeys.model).toHaveLength(9)

      expect(cells(output, "worker processes started")).toEqual([3, 3, 3])
      expect(cells(output, "of them killed with SIGKILL")).toEqual([2, 2, 2])
      expect(cells(output, "requests to the payment API")).toEqual([received(cairn.payments).length, 9, 9])
      expect(cells(output, "requests to the mail API")).toEqual([received(cairn.mail).length, 6, 6])
      const kept = replayed(cairn.payments).length + replayed(cairn.mail).length
      expect(cells(output, "of both: given a kept answer")).toEqual([kept, 0, 9])
      expect(cells(output, "charges made")).toEqual([3, 9, 3])
      expect(cells(output, "mails delivered")).toEqual([3, 6, 3])
      expect(cells(output, "model calls")).toEqual([3, 9, 9])
      for (const beyond of ["CHF 8,776.42", "GBP 5,805.60", "EUR 3,497.18"]) expect(output).toContain(beyond)
      expect(output).toContain("each charged once, each mailed once")
      expect(output).toContain(cairn.database)
      expect(output).not.toContain("\u001b[")
      const tooLong = output.split("\n").filter((line) => line.length > 100 && !line.includes(temporary))
      expect(tooLong).toEqual([])
    }))

  it("plays the comparison alone with --plain, coloured on request, and leaves no files behind", () =>
    withTemporary(async (temporary) => {
      const { code, output } = await runDemo(["--plain"], temporary, { FORCE_COLOR: "1", NO_COLOR: "" })
      expect(code).toBe(0)
      expect(output).toContain("\u001b[31m")
      expect(output).not.toContain("Worker 1")
      expect(readdirSync(temporary).filter((name) => name.startsWith("cairn-demo-"))).toEqual([])
    }))
})
