/**
 * Stores that are away for seconds and for a minute, and a disk that is full; one line of figures each.
 *
 *     node --conditions=@cairn/source --import tsx chaos/src/outageReport.ts [sqlite|postgres] [seconds] [runs] [lease]
 *
 * `lease` in seconds: one that is longer than the outage is kept, a shorter one is lost.
 */
import { startPostgres } from "@cairn/postgres-server"
import { Effect, Exit, Scope } from "effect"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"
import { makeCuttingProxy } from "../../packages/postgres/test/internal/cuttingProxy.js"
import { locked, smallDisk, stopped, swallowed, throughOutage, type Outage } from "./outages.js"

const [which = "sqlite", seconds = "10", runs = "1000", lease = "30"] = process.argv.slice(2)

interface Case {
  readonly outage: Outage
  readonly store: string
}

const root = await mkdtemp(path.join(tmpdir(), "cairn-outages-"))
const scope = await Effect.runPromise(Scope.make())

const onPostgres = async (): Promise<ReadonlyArray<Case>> => {
  const server = await startPostgres()
  await Effect.runPromise(
    Scope.addFinalizer(
      scope,
      Effect.promise(() => server.stop()),
    ),
  )
  const proxy = await Effect.runPromise(Scope.extend(makeCuttingProxy(server.url), scope))
  return [
    { outage: stopped(server), store: `${server.url}#stopped` },
    { outage: swallowed(proxy), store: `${proxy.url}#swallowed` },
  ]
}

const onSqlite = async (): Promise<ReadonlyArray<Case>> => {
  const { disk, outage, remove } = await smallDisk(root, 400)
  await Effect.runPromise(Scope.addFinalizer(scope, Effect.sync(remove)))
  const filename = path.join(root, "runs.db")
  return [
    { outage: locked(filename), store: filename },
    { outage, store: path.join(disk, "runs.db") },
  ]
}

let isWrong = false
try {
  for (const [index, { outage, store }] of (await (which === "postgres" ? onPostgres() : onSqlite())).entries()) {
    const { accepted, complaints, repeated, ...figures } = await throughOutage(
      {
        store,
        workers: 2,
        runs: Number(runs),
        // Each of them has some under way when the store goes away, and others still before it.
        concurrency: 100,
        leaseMs: Number(lease) * 1_000,
        outputChars: 100_000,
        maxPendingBytes: 8 * 1024 * 1024,
        log: path.join(root, `${index}.jsonl`),
        trace: path.join(root, `${index}.trace`),
      },
      outage,
      Number(seconds) * 1_000,
    )
    const shown = { ...figures, accepted, repeated: repeated.length, complaints: complaints.slice(0, 2_000) }
    process.stdout.write(`${which}, ${outage.name} for ${seconds} s, lease ${lease} s: ${JSON.stringify(shown)}\n`)
    const { completed, gaps, others, workersAlive, wrongKeys, wrongOutputs, wrongPayloads, wrongSteps } = figures
    isWrong ||= completed !== Number(runs) || workersAlive !== 2 || complaints !== ""
    isWrong ||= [others, gaps, wrongKeys, wrongOutputs, wrongPayloads, wrongSteps].some((list) => list.length > 0)
  }
} finally {
  await Effect.runPromise(Scope.close(scope, Exit.void))
  await rm(root, { recursive: true, force: true })
}
process.exit(isWrong ? 1 : 0)
