/**
 * The demo: four expenses wait for a person, and their worker is killed meanwhile.
 *
 * `--store postgres` keeps the runs in a Postgres that is started for it, `--keep` leaves the files behind. The exit code is 1
 * unless the first decision counted, and only what was approved has been paid.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import colors from "picocolors"
import { startDatabase } from "./processes.js"
import { play, type Audience, type Facts } from "./scenario.js"
import type { StorePlace } from "./store.js"
import { complaints } from "./summary.js"

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

const tell: Audience = (moment) => {
  if (moment === "killed") {
    print("  Worker 1 has started paper-6, train-7, hotel-8 and books-9; each waits for a decision")
    print(colors.red(`  ${colors.bold("SIGKILL")}  while they wait`))
    print()
    print("  No worker is alive. Four people decide, each in a process of their own, at once:")
  } else if (moment === "goesOn") {
    print()
    print("  Worker 2 goes on; for books-9 there are 6 s, and nobody decides")
  } else if ("by" in moment) print(`    ${moment.runId.padEnd(9)}${moment.said}`)
  else print(`    ${moment.runId.padEnd(9)}${moment.event === "ended" ? moment.output : moment.problem}`)
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
  const folder = mkdtempSync(join(tmpdir(), "cairn-approval-demo-"))
  // Also after Ctrl-C; bank and Postgres end by themselves when this process does.
  process.once("SIGINT", () => process.exit(130))
  process.once("exit", () => {
    if (flags.keep) print(`  Files are kept in ${folder}`)
    else rmSync(folder, { recursive: true, force: true })
  })
  print(colors.bold("Cairn: four expenses, and people who decide"))
  print()
  const facts = await withStore(flags.store, folder, (place) => play(place, join(folder, "bank.log.jsonl"), tell))
  print()
  print(colors.bold("What the bank's own log says"))
  for (const { event, key, to } of facts.log) print(`  ${event}: ${to}, under the key ${key}`)
  if (facts.log.length === 0) print("  nothing")
  print()
  const found = complaints(facts)
  for (const complaint of found) print(colors.red(`  WRONG: ${complaint}`))
  if (found.length === 0) print(colors.green("  One decision a run, and nothing was paid without it."))
  print(colors.dim(`  ${((performance.now() - startedAt) / 1000).toFixed(1)} s`))
  return found.length === 0 ? 0 : 1
}

process.exitCode = await main().catch((error: Error) => {
  console.error(error.message)
  return 1
})
