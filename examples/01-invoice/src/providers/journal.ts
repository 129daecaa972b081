/**
 * A durable log: one JSON object a line, written and synced before anybody is told about it.
 *
 * - **J1** What was appended is on disk: each entry is one `write`, followed by `fsync`.
 * - **J2** One entry is one line. A line cut short by a crash was never answered for; the next opening removes it.
 */
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, truncateSync, writeSync } from "node:fs"

export interface Journal<Entry> {
  readonly append: (entry: Entry) => void
  /** Everything on disk, oldest first. */
  readonly read: () => ReadonlyArray<Entry>
  readonly close: () => void
}

const wholeLines = (file: string): string => {
  if (!existsSync(file)) return ""
  const text = readFileSync(file, "utf8")
  return text.slice(0, text.lastIndexOf("\n") + 1)
}

/** The entries of a log that another process writes; empty where there is no such file yet. */
export const readJournal = <Entry>(file: string): ReadonlyArray<Entry> =>
  wholeLines(file)
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Entry)

export const openJournal = <Entry>(file: string): Journal<Entry> => {
  if (existsSync(file)) truncateSync(file, Buffer.byteLength(wholeLines(file))) // J2
  const descriptor = openSync(file, "a")
  return {
    append: (entry) => {
      writeSync(descriptor, `${JSON.stringify(entry)}\n`)
      fsyncSync(descriptor) // J1
    },
    read: () => readJournal<Entry>(file),
    close: () => closeSync(descriptor),
  }
}
