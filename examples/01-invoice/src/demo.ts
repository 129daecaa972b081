/**
 * The demo: invoices are read, cards charged, receipts mailed, and the worker is killed twice at the worst moments.
 *
 * `--help` lists the flags. The exit code is 1 unless Cairn charged and mailed every invoice exactly once, and its account of what
 * the model cost agrees with the logs.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import colors from "picocolors"
import { readFlags, usage } from "./flags.js"
import { readInbox } from "./inbox.js"
import { narrator } from "./narration.js"
import { startDatabase } from "./processes.js"
import { play, type Facts } from "./scenario.js"
import type { StorePlace } from "./store.js"
import { accountComplaints, complaints, renderOvercharged, renderSaved, renderTable, tally } from "./summary.js"
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

const runs = readInbox().map(({ file }) => file)
const folder = mkdtempSync(join(tmpdir(), "cairn-demo-"))

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

const playCairn = async (): Promise<Facts> => {
  const store = flags.store === "sqlite" ? "1 SQLite file" : "1 Postgres database"
  print(colors.bold(`Cairn: ${runs.length} invoices (read, charge the card, mail the receipt), 2 kills, ${store}`))
  print()
  return withStore((place) => play({ store: place }, cairnFolder, narrator(print)))
}

const playPlain = async (): Promise<readonly [plain: Facts, withKeys: Facts]> => {
  print(
    colors.bold("The same work and the same two kills, with a job queue that runs an unfinished job from its start"),
  )
  print("  Really run, once without idempotency keys and once with keys made from the invoice's number,")
  print("  against the same providers with logs of their own ...")
  return Promise.all([
    play({ ownKeys: false }, join(folder, "plain")),
    play({ ownKeys: true }, join(folder, "plain-with-keys")),
  ])
}

/** A job that the queue could not finish: a model that read the text another way, say, and a key that was refused. */
const printFailures = (title: string, { problems }: Facts): void => {
  for (const [run, problem] of problems) if (problem !== null) print(colors.red(`  ${title}: ${run}: ${problem}`))
}

const conclude = (cairn: Facts | null, plain: Facts, withKeys: Facts): ReadonlyArray<string> => {
  printFailures("plain retry", plain)
  printFailures("retry with keys", withKeys)
  print()
  print(colors.bold("What the logs of the providers and of the model say"))
  print()
  const columns = [
    ...(cairn === null ? [] : [{ title: "Cairn", tally: tally(cairn) }]),
    { title: "plain retry", tally: tally(plain) },
    { title: "retry with keys", tally: tally(withKeys) },
  ]
  print(renderTable(columns, runs.length))
  print(renderSaved(cairn, plain))
  print()
  print(`  Charged by the plain retry beyond what was owed: ${colors.red(renderOvercharged(tally(plain)))}`)
  print("  Keys save the money while the model reads a text the same way each time. It is asked again, and")
  print("  another payload under the same key is refused. Cairn sends the payload that it has recorded.")
  return cairn === null ? [] : [...complaints(cairn, runs), ...accountComplaints(cairn, plain)]
}

const main = async (): Promise<number> => {
  const startedAt = performance.now()
  const cairn = flags.plain ? null : await playCairn()
  if (cairn !== null) print()
  const found = conclude(cairn, ...(await playPlain()))
  print()
  for (const complaint of found) print(colors.red(`  WRONG: ${complaint}`))
  if (cairn !== null && found.length === 0)
    print(colors.green(`  ${runs.length} invoices, 2 kills: each charged once, each mailed once.`))
  print(colors.dim(`  ${((performance.now() - startedAt) / 1000).toFixed(1)} s`))
  if (flags.keep && cairn !== null && flags.store === "sqlite") print(`  SQLite file: ${filesIn(cairnFolder).database}`)
  return found.length === 0 ? 0 : 1
}

// Also after Ctrl-C; providers and Postgres end by themselves when this process does.
process.once("SIGINT", () => process.exit(130))
process.once("exit", () => {
  if (flags.keep) print(`  Files are kept in ${folder}`)
  else rmSync(folder, { recursive: true, force: true })
})

process.exitCode = await main().catch((error: Error) => {
  console.error(error.message)
  return 1
})
