/**
 * The demo: an agent's worker is killed five times, at different turns.
 *
 * `--store postgres` keeps the runs in a Postgres that is started for it, `--keep` leaves the files behind. The exit code is 1
 * unless only the answers in flight were paid again, Cairn's account agrees with the model's bills, and one page is there.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import colors from "picocolors"
import { narrator } from "./narration.js"
import { startDatabase } from "./processes.js"
import { play, type Facts } from "./scenario.js"
import type { StorePlace } from "./store.js"
import { accountComplaints, complaints, renderAccount, renderTable } from "./summary.js"
import { question } from "./workerProtocol.js"

const print = (text = ""): void => {
  process.stdout.write(`${text}\n`)
}

const readFlags = () => {
  // `pnpm demo -- --keep` hands its own separator on.
  const args = process.argv.slice(2).filter((arg) => arg !== "--")
  const { values } = parseArgs({
    args,
    options: { store: { type: "string", default: "sqlite" }, keep: { type: "boolean", default: false } },
  })
  if (values.store !== "sqlite" && values.store !== "postgres")
    throw new Error(`There is no store '${values.store}'; there are: sqlite, postgres.`)
  return values
}

const withStore = async (store: string, folder: string, use: (place: StorePlace) => Promise<Facts>): Promise<Facts> => {
  if (store === "sqlite") return use({ store: "sqlite", filename: join(folder, "cairn.sqlite") })
  const { announced, stop } = await startDatabase()
  try {
    return await use({ store: "postgres", url: announced.url })
  } finally {
    await stop()
  }
}

const main = async (): Promise<number> => {
  const flags = readFlags()
  const startedAt = performance.now()
  const folder = mkdtempSync(join(tmpdir(), "cairn-agent-demo-"))
  // Also after Ctrl-C; the servers end by themselves when this process does.
  process.once("SIGINT", () => process.exit(130))
  process.once("exit", () => {
    if (flags.keep) print(`  Files are kept in ${folder}`)
    else rmSync(folder, { recursive: true, force: true })
  })
  print(colors.bold(`Cairn: an agent is asked "${question}"`))
  // The comparison runs beside it, unseen: Cairn waits for leases most of the time.
  const [cairn, plain] = await Promise.all([
    withStore(flags.store, folder, (place) =>
      play(
        place,
        join(folder, "cairn"),
        narrator((text) => process.stdout.write(text)),
      ),
    ),
    play(null, join(folder, "plain")),
  ])
  print()
  print(colors.bold("What the servers' own logs say"))
  print("  The plain retry was run beside it: the same agent, the same five kills, run from its start each time.")
  print()
  print(renderTable(cairn, plain))
  print()
  print(renderAccount(cairn))
  print()
  const found = [...complaints(cairn), ...accountComplaints(cairn, plain)]
  for (const complaint of found) print(colors.red(`  WRONG: ${complaint}`))
  if (found.length === 0) print(colors.green("  5 kills: what was in flight was paid again, and one page is there."))
  print(colors.dim(`  ${((performance.now() - startedAt) / 1000).toFixed(1)} s`))
  return found.length === 0 ? 0 : 1
}

process.exitCode = await main().catch((error: Error) => {
  console.error(error.message)
  return 1
})
