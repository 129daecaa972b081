import { describe, expect, it } from "@effect/vitest"
import { Cairn } from "@cairn/core"
import { SqliteStore } from "@cairn/sqlite"
import { Effect } from "effect"
import { execFile } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { setTimeout as sleep } from "node:timers/promises"
import { expense, pettyCash, PayOut } from "../src/workflow.js"

const script = fileURLToPath(new URL("../decide.js", import.meta.url))

const decide = (args: ReadonlyArray<string>, store: string) =>
  new Promise<{ readonly code: number; readonly said: string }>((resolve) => {
    execFile(
      process.execPath,
      [script, ...args],
      { env: { ...process.env, APPROVALS: store } },
      (error, out, problems) => resolve({ code: error === null ? 0 : Number(error.code), said: out + problems }),
    )
  })

describe("decide.js", () => {
  it("decides once, and says what it cannot do", async () => {
    const folder = mkdtempSync(join(tmpdir(), "cairn-decide-test-"))
    const filename = join(folder, "approvals.sqlite")
    const paid: Array<string> = []
    const cairn = await Cairn.open({
      store: SqliteStore.layer({ filename }),
      workflows: [expense, pettyCash],
      handlers: PayOut.toLayer(({ note }) => Effect.sync(() => ({ transfer: `t${paid.push(note)}` }))),
      pollInterval: "50 millis",
    })
    try {
      const of = { person: "A", what: "w", cents: 1 }
      const run = await cairn.start(expense, of, { runId: "a" })
      while ((await run.poll()).status !== "review") await sleep(20)
      expect(await decide(["a", "approve", "--by", "Ann", "--note", "yes"], filename)).toEqual({
        code: 0,
        said: "Ann: approve is recorded\n",
      })
      expect(await run.result()).toBe("paid (t1)")
      expect(paid).toEqual(["yes"])

      const again = await decide(["a", "reject", "--by", "Bob"], filename)
      expect(again.code).toBe(1)
      expect(again.said).toContain("Bob: DecisionRefused")
      const unknown = await decide(["nobody", "approve"], filename)
      expect(unknown.code).toBe(1)
      expect(unknown.said).toContain("RunNotFound")
      const wrong = await decide(["a", "perhaps"], filename)
      expect(wrong.code).toBe(2)
      expect(wrong.said).toContain("usage: node decide.js <run> approve|reject")
    } finally {
      await cairn.close()
      rmSync(folder, { recursive: true, force: true })
    }
  })
})
