/**
 * A durable log: one JSON object a line, written and synced before anybody is told about it. A line that a crash has cut
 * short was never answered for, and is not read.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs"

export const appendTo = (file: string, entry: object): void =>
  appendFileSync(file, `${JSON.stringify(entry)}\n`, { flush: true })

/** The entries, oldest first; none where there is no such file yet. */
export const readJournal = <Entry>(file: string): ReadonlyArray<Entry> => {
  if (!existsSync(file)) return []
  const text = readFileSync(file, "utf8")
  return text
    .slice(0, text.lastIndexOf("\n") + 1)
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Entry)
}
