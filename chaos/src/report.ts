/**
 * The long version: `node --conditions=@cairn/source --import tsx chaos/src/report.ts [sqlite|postgres] [seconds]`.
 * Four workers, a thousand runs of ten steps, one kind of trouble after the other; one line of figures each.
 */
import { startPostgres } from "@cairn/postgres-server"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"
import { connectionsEnd, restarts } from "./postgresStorms.js"
import { kills, stalls, weather, type Storm } from "./storm.js"

const [which = "sqlite", seconds = "30"] = process.argv.slice(2)
const forMs = Number(seconds) * 1_000
const leaseMs = 2_000

/** So few at once that a thousand runs of one and a half seconds last as long as a storm of half a minute. */
const concurrency = 16

const folder = await mkdtemp(path.join(tmpdir(), "cairn-chaos-"))
const server = which === "postgres" ? await startPostgres() : null
let wrong = false
try {
  const storms: ReadonlyArray<Storm> = [
    kills(forMs),
    stalls(forMs, leaseMs),
    ...(server === null ? [] : [restarts(forMs, server), connectionsEnd(forMs, server)]),
  ]
  for (const [index, storm] of storms.entries()) {
    // A schema for each storm would do as well; a server for all of them is enough.
    const store = server === null ? path.join(folder, `${index}.db`) : `${server.url}#storm${index}`
    const log = path.join(folder, `${index}.jsonl`)
    const began = Date.now()
    const { complaints, ...verdict } = await weather(
      { store, log, workers: 4, runs: 1_000, leaseMs, concurrency },
      storm,
    )
    const took = ((Date.now() - began) / 1_000).toFixed(1)
    process.stdout.write(`${which}, ${storm.name}, ${seconds} s: done in ${took} s ${JSON.stringify(verdict)}\n`)
    if (complaints !== "") process.stdout.write(`workers said: ${complaints.slice(0, 2_000)}\n`)
    const { others, wrongSteps, wrongOutputs, wrongKeys, wrongPayloads } = verdict
    wrong ||= [others, wrongSteps, wrongOutputs, wrongKeys, wrongPayloads].some((list) => list.length > 0)
  }
} finally {
  await server?.stop()
  await rm(folder, { recursive: true, force: true })
}
process.exit(wrong ? 1 : 0)
