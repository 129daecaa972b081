/**
 * The demo: a thousand mails, and the worker is killed twice in the middle.
 *
 * `--store postgres` keeps the runs in a Postgres that is started for it, `--keep` leaves the files behind. The exit code is 1
 * unless everybody who can be reached was sent one mail.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import colors from "picocolors"
import { startDatabase } from "./processes.js"
import { recipients } from "./recipients.js"
import { play, type Facts, type Life } from "./scenario.js"
import type { StorePlace } from "./store.js"
import { complaints, countOf } from "./summary.js"
import { concurrency } from "./workflow.js"

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

const tell = ({ exit, asked, memory: { first, most } }: Life, number: number): void => {
  const [sent, refused, known] = [countOf(asked, "sent"), countOf(asked, "refused"), countOf(asked, "known")]
  print(`  ${colors.bold(`Worker ${number}`)}`)
  if (number > 1)
    print(`    asked again for ${known} that were under way: the mail API knew their keys, and sent nothing`)
  print(`    sent ${sent}, refused ${refused}`)
  print(
    `    heap ${first.heapMb} MB at first, ${most.heapMb} at most; process ${first.rssMb} MB, ${most.rssMb} at most`,
  )
  if (exit === "SIGKILL") print(colors.red(`    ${colors.bold("SIGKILL")}  with up to ${concurrency} mails under way`))
  else print(`    ended with ${exit}`)
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
  const folder = mkdtempSync(join(tmpdir(), "cairn-fan-out-demo-"))
  // Also after Ctrl-C; mail API and Postgres end by themselves when this process does.
  process.once("SIGINT", () => process.exit(130))
  process.once("exit", () => {
    if (flags.keep) print(`  Files are kept in ${folder}`)
    else rmSync(folder, { recursive: true, force: true })
  })
  print(colors.bold(`Cairn: ${recipients.length} mails, ${concurrency} at a time, 2 kills`))
  print()
  const facts = await withStore(flags.store, folder, (place) => play(place, join(folder, "mails.log.jsonl"), tell))
  const { log, ended } = facts
  print()
  print(colors.bold("What the mail API's own log says"))
  print(`  ${log.length} requests: ${countOf(log, "sent")} mails sent, ${countOf(log, "refused")} addresses refused,`)
  print(`  ${countOf(log, "known")} known keys that were answered as the first time`)
  if (ended?.event === "ended" && ended.unreachable.length > 0) {
    const [first, second] = ended.unreachable
    print(`  The run lists the ${ended.unreachable.length} unreachable: ${first}, ${second}, ..`)
  }
  print()
  const found = complaints(facts)
  for (const complaint of found.slice(0, 10)) print(colors.red(`  WRONG: ${complaint}`))
  if (found.length === 0) print(colors.green("  Everybody who can be reached was sent one mail."))
  print(colors.dim(`  ${((performance.now() - startedAt) / 1000).toFixed(1)} s`))
  return found.length === 0 ? 0 : 1
}

process.exitCode = await main().catch((error: Error) => {
  console.error(error.message)
  return 1
})
