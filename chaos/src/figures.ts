/**
 * Figures of what grows and what waits; asserted nowhere, because a machine that is busy otherwise changes them.
 *
 *     node --conditions=@cairn/source --import tsx chaos/src/figures.ts wal [seconds]
 *     node --conditions=@cairn/source --import tsx chaos/src/figures.ts waiters [rounds]
 */
import { startPostgres } from "@cairn/postgres-server"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"
import { measureWaiters, poolSize, type Round } from "./waiters.js"
import { walLoad } from "./walLoad.js"

const [what = "wal", amount] = process.argv.slice(2)

const print = (figures: object): void => void process.stdout.write(`${JSON.stringify(figures)}\n`)

const wal = async (seconds: number) => {
  const folder = await mkdtemp(path.join(tmpdir(), "cairn-wal-"))
  try {
    const filename = path.join(folder, "runs.db")
    print(await walLoad({ filename, outputChars: 100_000, enough: ({ ms }) => ms >= seconds * 1_000 }))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const at = (share: number, values: ReadonlyArray<number>): number =>
  [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) * share)] ?? 0

const summary = (rounds: ReadonlyArray<Round>) => {
  const commits = rounds.flatMap(({ commitMs }) => commitMs)
  const lookUps = rounds.flatMap(({ lookUpMs }) => lookUpMs)
  const wallMs = rounds.reduce((sum, round) => sum + round.wallMs, 0)
  return {
    wallMs: Math.round(wallMs),
    commits: commits.length,
    commitP50: at(0.5, commits).toFixed(2),
    commitP95: at(0.95, commits).toFixed(2),
    lookUps: lookUps.length,
    mostLookUpsAtOnce: Math.max(...rounds.map(({ mostLookUpsAtOnce }) => mostLookUpsAtOnce)),
    // Of the time that all connections of the pool have.
    lookUpShare: (lookUps.reduce((sum, ms) => sum + ms, 0) / (wallMs * poolSize)).toFixed(3),
  }
}

const waiters = async (rounds: number) => {
  const server = await startPostgres()
  try {
    const figures = await measureWaiters({ url: server.url, schema: "waiters", waiters: 2_000, active: 50, rounds })
    const [without, withWaiters] = [summary(figures.without), summary(figures.withWaiters)]
    print({ without, withWaiters, ratioOfP95: (Number(withWaiters.commitP95) / Number(without.commitP95)).toFixed(2) })
  } finally {
    await server.stop()
  }
}

await (what === "waiters" ? waiters(Number(amount ?? 10)) : wal(Number(amount ?? 60)))
process.exit(0)
