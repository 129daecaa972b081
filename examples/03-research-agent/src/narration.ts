/** Tells what happens, as it happens: the model's words come from the run's live output. */
import colors from "picocolors"
import type { Audience } from "./scenario.js"
import { costOf, inDollars } from "./summary.js"

/** Of an article the beginning is shown. */
const shownCharacters = 72

/** An audience that writes. */
export const narrator = (write: (text: string) => void): Audience => {
  let shown = 0
  let isOpen = false
  const close = (mark: string): void => {
    if (isOpen) write(`${mark}\n`)
    isOpen = false
  }
  const chunk = (text: string): void => {
    const part = text.slice(0, Math.max(0, shownCharacters - shown))
    write(part)
    if (shown < shownCharacters && shown + text.length > shownCharacters) write(" ..")
    shown += text.length
  }
  return {
    event: (event, number) => {
      if (event.event === "found")
        write(
          `\n  ${colors.bold(`Worker ${number}`)}  ${event.at === null ? "starts the run" : `found the run at ${event.at}`}\n`,
        )
      if (event.event !== "live") return
      const { live } = event
      switch (live._tag) {
        case "Began":
          write(`    ${live.path.padEnd(16)}`)
          shown = 0
          isOpen = true
          return
        case "Chunk":
          return chunk(String(live.chunk))
        case "Committed":
          return close(colors.green("  kept"))
        case "Discarded":
          return close(colors.red("  discarded"))
        case "Skipped":
          return chunk("..")
      }
    },
    died: ({ death, exit, calls }) => {
      close("")
      if (exit === "SIGKILL") write(colors.red(`    ${colors.bold("SIGKILL")}  ${death?.inWords}\n`))
      else write(`    ended with ${exit}\n`)
      const bill =
        calls.length === 0
          ? "nothing"
          : `${inDollars(costOf(calls))} for ${calls.length} ${calls.length === 1 ? "call" : "calls"}`
      write(colors.dim(`    billed by the model: ${bill}\n`))
    },
  }
}
