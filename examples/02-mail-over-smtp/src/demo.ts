/**
 * The demo: orders are confirmed by mail, and the worker is killed twice at the worst moments.
 *
 * `--help` lists the flags. The exit code is 1 unless under Cairn the server has accepted one mail an order.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import colors from "picocolors"
import { readFlags, usage } from "./flags.js"
import { narrator } from "./narration.js"
import { orderNumbers } from "./orders.js"
import { startDatabase } from "./processes.js"
import { play, type Facts } from "./scenario.js"
import type { StorePlace } from "./store.js"
import { complaints, renderTable, rowsOf } from "./summary.js"
import { filesIn } from "./workerProtocol.js"

const print = (text = ""): void => {
  process.stdout.write(`${text}\n`)
}

const flags = readFlags(process.argv.slice(2))
if ("problem" in flags) {
  console.error(flags.problem)
  process.exit(1)
}
if (flags.help) {
  print(usage)
  process.exit(0)
}

const orders = orderNumbers()
const folder = mkdtempSync(join(tmpdir(), "cairn-mail-demo-"))
const cairnFolder = join(folder, "cairn")

/** An empty place for runs, for as long as `use` takes. */
const withStore = async <A>(use: (place: StorePlace) => Promise<A>): Promise<A> => {
  if (flags.store === "sqlite") return use({ store: "sqlite", filename: filesIn(cairnFolder).database })
  const { announced, stop } = await startDatabase()
  try {
    const whose = announced.started ? "a server started for this demo" : "on the server that was given"
    print(`  Postgres    ${new URL(announced.url).host} (${whose})`)
    return await use({ store: "postgres", url: announced.url })
  } finally {
    await stop()
  }
}

const playCairn = (): Promise<Facts> => {
  const store = flags.store === "sqlite" ? "1 SQLite file" : "1 Postgres database"
  print(colors.bold(`Cairn: ${orders.length} orders confirmed by mail over SMTP, 2 kills, ${store}`))
  print()
  return withStore((place) => play(place, cairnFolder, narrator(print)))
}

const main = async (): Promise<number> => {
  const startedAt = performance.now()
  // The comparison runs beside it, unseen: Cairn waits for leases most of the time.
  const [cairn, plain] = await Promise.all([playCairn(), play(null, join(folder, "plain"))])
  print()
  print(colors.bold("What lies on the mail server's disk, and what its mailbox was asked"))
  print("  The plain retry was run beside it: the same letters, the same two kills, a job queue that runs an")
  print("  unfinished job again, and the same Message-ID each time. Its mails lie in a mailbox of their own.")
  print()
  print(renderTable(rowsOf(cairn), rowsOf(plain)))
  print()
  const found = complaints(cairn, orders)
  for (const complaint of found) print(colors.red(`  WRONG: ${complaint}`))
  if (found.length === 0) print(colors.green(`  ${orders.length} orders, 2 kills: one mail per Message-ID.`))
  print(colors.dim(`  ${((performance.now() - startedAt) / 1000).toFixed(1)} s`))
  return found.length === 0 ? 0 : 1
}

// Also after Ctrl-C; mail server and Postgres end by themselves when this process does.
process.once("SIGINT", () => process.exit(130))
process.once("exit", () => {
  if (flags.keep) print(`  Files are kept in ${folder}`)
  else rmSync(folder, { recursive: true, force: true })
})

process.exitCode = await main().catch((error: Error) => {
  console.error(error.message)
  return 1
})
