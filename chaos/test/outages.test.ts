/**
 * Stores that are away for three seconds under a fleet that works (laws W4 to W6). `chaos/src/outageReport.ts` runs those of
 * ten seconds and of a minute, a server that swallows everything, and a disk that is full.
 */
import { startPostgres, type PostgresServer } from "@cairn/postgres-server"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { locked, stopped, throughOutage, type Outage } from "../src/outages.js"

const runs = 120
const awayMs = 3_000
const outputChars = 100_000

describe("a fleet whose store goes away and comes back before a lease has ended", () => {
  let folder: string
  let server: PostgresServer
  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "cairn-outages-"))
    // A server of its own: it is stopped.
    server = await startPostgres()
  })
  afterAll(async () => {
    await server.stop()
    await rm(folder, { recursive: true, force: true })
  })

  const cases: ReadonlyArray<readonly [where: "SQLite" | "Postgres", make: (store: string) => Outage]> = [
    ["SQLite", locked],
    ["Postgres", () => stopped(server)],
  ]

  it.each(cases)("goes on where it stood, repeats nothing and stays small, on %s", async (where, make) => {
    const store = where === "SQLite" ? path.join(folder, "runs.db") : `${server.url}#outage`
    const [log, trace] = [path.join(folder, `${where}.jsonl`), path.join(folder, `${where}.trace`)]
    const sizes = { workers: 2, runs, concurrency: 20, outputChars, maxPendingBytes: 1_000_000 }
    const figures = await throughOutage({ store, log, trace, ...sizes, leaseMs: 30_000 }, make(store), awayMs)
    expect(figures).toMatchObject({
      completed: runs,
      others: [],
      wrongSteps: [],
      gaps: [],
      wrongOutputs: [],
      wrongKeys: [],
      wrongPayloads: [],
      sent: 2 * runs,
      resent: 0,
      takeovers: 0,
      repeated: [],
      // No process ended, and none had anything to say: an unheard rejection is a word on its standard error.
      workersAlive: 2,
      complaints: "",
    })
    // Forty are at work at once.
    expect(figures.endedBefore).toBeLessThan(runs / 2)
    // The buffer, what is being written, and what the collector has not got to yet.
    expect(figures.rssMbAway - figures.rssMbBefore).toBeLessThan(100)
  })
}, 120_000)
