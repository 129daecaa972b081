/** Tells what happens, as it happens. */
import colors from "picocolors"
import type { Audience, Facts, Life, Told } from "./scenario.js"
import { doneIn } from "./summary.js"
import { leaseMs, operationTimeoutMs } from "./timing.js"

type Print = (line: string) => void

const nameWidth = 14
const stepWidth = 9

const line = (name: string, step: string, text: string): string =>
  `    ${name.padEnd(nameWidth)}${step.padEnd(stepWidth)}${text}`

const describe = (event: Told): string => {
  switch (event.event) {
    case "found": {
      const open = event.open === null ? "" : colors.yellow(`; '${event.open}' was sent, its outcome is unknown`)
      const committed = event.committed.length === 0 ? "nothing yet" : event.committed.join(", ")
      return line(event.run.replace(/\.txt$/, ""), "found", `committed: ${committed}${open}`)
    }
    case "extracted":
      return line(event.invoice, "extract", `model asked (${event.engine}): ${event.amount}, due ${event.dueOn}`)
    case "answered": {
      const { status, id, replayed } = event.answered
      const kept = replayed ? colors.green("  kept answer of the first request: nothing happened again") : ""
      return line(event.invoice, event.step, `${status} ${id}${kept}`)
    }
    case "finished":
      return line(
        event.run.replace(/\.txt$/, ""),
        "end",
        event.problem === null ? colors.green("completed") : colors.red(event.problem),
      )
  }
}

const death = ({ killAfter, exit }: Life, so: Pick<Facts, "payments" | "mail">): string => {
  if (exit !== "SIGKILL") return `    ended with ${typeof exit === "number" ? "exit code " : ""}${exit}`
  const happened =
    killAfter === "charge"
      ? `the payment API has made ${doneIn(so.payments).length} charges`
      : `the mail API has delivered ${doneIn(so.mail).length} mails`
  return colors.red(`    ${colors.bold("SIGKILL")}  ${happened}, and the worker could not record one of them`)
}

const seconds = (milliseconds: number): string => `${milliseconds / 1000} s`

/** An audience that prints. */
export const narrator = (print: Print): Audience => ({
  providers: (payments, mail) => {
    print(`  payment API ${payments.url} (process ${payments.pid})`)
    print(`  mail API    ${mail.url} (process ${mail.pid})`)
  },
  born: (pid, life) => {
    print("")
    print(`  ${colors.bold(`Worker ${life}`)} ${colors.dim(`(process ${pid})`)}`)
    if (life === 1) return
    const wait = `${seconds(leaseMs)}) and then the operation's timeout (${seconds(operationTimeoutMs)})`
    print(colors.dim(`    It waits out the dead worker's lease (${wait}:`))
    print(colors.dim("    a silent worker may be a slow one, with its request still under way (law X5)."))
  },
  event: (event) => print(describe(event)),
  died: (life, so) => print(death(life, so)),
})
