/** Short storms over both databases. `chaos/src/report.ts` runs the long ones. */
import { startPostgres, type PostgresServer } from "@cairn/postgres-server"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { connectionsEnd, restarts } from "../src/postgresStorms.js"
import { kills, stalls, weather, type Storm } from "../src/storm.js"

const leaseMs = 1_500
const forMs = 6_000
const runs = 200

describe("a fleet of workers", () => {
  let folder: string
  let server: PostgresServer
  let count = 0
  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "cairn-chaos-"))
    // A server of its own: it is crashed and restarted.
    server = await startPostgres()
  })
  afterAll(async () => {
    await server.stop()
    await rm(folder, { recursive: true, force: true })
  })

  const cases: ReadonlyArray<readonly [name: string, where: "SQLite" | "Postgres", storm: () => Storm]> = [
    ["workers are killed", "SQLite", () => kills(forMs)],
    ["workers stall past their lease", "SQLite", () => stalls(forMs, leaseMs)],
    ["workers are killed", "Postgres", () => kills(forMs)],
    ["workers stall past their lease", "Postgres", () => stalls(forMs, leaseMs)],
    ["the server restarts", "Postgres", () => restarts(forMs, server)],
    ["connections are ended", "Postgres", () => connectionsEnd(forMs, server)],
  ]

  it.each(cases)("finishes every run while %s, on %s", async (_, where, storm) => {
    const index = count++
    const store = where === "SQLite" ? path.join(folder, `${index}.db`) : `${server.url}#storm${index}`
    const log = path.join(folder, `${index}.jsonl`)
    const verdict = await weather({ store, log, workers: 4, runs, leaseMs }, storm())
    expect(verdict).toMatchObject({
      completed: runs,
      others: [],
      wrongSteps: [],
      wrongOutputs: [],
      wrongKeys: [],
      wrongPayloads: [],
      complaints: "",
    })
    // Each of the two operations of each run was performed at least once.
    expect(verdict.sent - verdict.resent).toBe(2 * runs)
  })
}, 180_000)
