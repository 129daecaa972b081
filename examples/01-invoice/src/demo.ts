/**
 * The demo: invoices are read, cards charged, receipts mailed, and the worker is killed twice at the worst moments.
 *
 * `--plain` plays only the comparison, `--keep` leaves the files behind. The exit code is 1 unless Cairn charged and
 * mailed every invoice exactly once.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import colors from "picocolors"
import { readInbox } from "./inbox.js"
import { narrator } from "./narration.js"
import { play, type Facts } from "./scenario.js"
import { complaints, renderOvercharged, renderTable, tally } from "./summary.js"
import { filesIn } from "./workerProtocol.js"

const print = (text = ""): void => {
  process.stdout.write(`${text}\n`)
}

const { values: flags } = parseArgs({
  options: { plain: { type: "boolean", default: false }, keep: { type: "boolean", default: false } },
})

const runs = readInbox().map(({ file }) => file)
const folder = mkdtempSync(join(tmpdir(), "cairn-demo-"))

const playCairn = async (): Promise<Facts> => {
  print(colors.bold(`Cairn: ${runs.length} invoices (read, charge the card, mail the receipt), 2 kills, 1 SQLite file`))
  print()
  return play("cairn", join(folder, "cairn"), narrator(print))
}

const playPlain = async (): Promise<readonly [plain: Facts, withKeys: Facts]> => {
  print(
    colors.bold("The same work and the same two kills, with a job queue that runs an unfinished job from its start"),
  )
  print("  Really run, once without idempotency keys and once with keys made from the invoice's number,")
  print("  against the same providers with logs of their own ...")
  return Promise.all([play("plain", join(folder, "plain")), play("plainWithKeys", join(folder, "plain-with-keys"))])
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
  print()
  print(`  Charged by the plain retry beyond what was owed: ${colors.red(renderOvercharged(tally(plain)))}`)
  print("  Keys save the money while the model reads a text the same way each time. It is asked again, and")
  print("  another payload under the same key is refused. Cairn sends the payload that it has recorded.")
  return cairn === null ? [] : complaints(cairn, runs)
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
  if (flags.keep) print(`  SQLite file: ${filesIn(join(folder, "cairn")).database}`)
  return found.length === 0 ? 0 : 1
}

// Also after Ctrl-C; the providers end by themselves when this process does.
process.once("SIGINT", () => process.exit(130))
process.once("exit", () => {
  if (flags.keep) print(`  Files are kept in ${folder}`)
  else rmSync(folder, { recursive: true, force: true })
})

process.exitCode = await main()
