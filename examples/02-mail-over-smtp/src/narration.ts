/** Tells what happens, as it happens. */
import colors from "picocolors"
import type { Audience, Life } from "./scenario.js"
import { leaseMs, operationTimeoutMs } from "./timing.js"
import type { WorkerEvent } from "./workerProtocol.js"

type Print = (line: string) => void

const nameWidth = 9
const actWidth = 7

const line = (order: string, act: string, text: string): string =>
  `    ${order.padEnd(nameWidth)}${act.padEnd(actWidth)}${text}`

const describe = (event: WorkerEvent): string => {
  switch (event.event) {
    case "found": {
      const open = event.open === null ? "" : colors.yellow(`; '${event.open}' was to be sent: outcome unknown`)
      return line(event.order, "found", `committed: ${event.committed.join(", ")}${open}`)
    }
    case "asked":
      return line(
        event.order,
        "asked",
        event.found ? colors.green("the mailbox has it: nothing is sent") : "the mailbox does not have it: it is sent",
      )
    case "sent":
      // The name under which the server has stored it says nothing to people.
      return line(event.order, "sent", event.reply.replace(/ as .*/, ""))
    case "finished":
      return line(event.order, "end", event.problem === null ? colors.green("completed") : colors.red(event.problem))
  }
}

const death = ({ dieAt, exit }: Life, accepted: number): string => {
  if (exit !== "SIGKILL") return `    ended with ${typeof exit === "number" ? "exit code " : ""}${exit}`
  const happened =
    dieAt === "beforeSend"
      ? `each mail was about to be sent; the server has accepted ${accepted}`
      : `the server has accepted ${accepted} mails, and the worker could not record one of them`
  return colors.red(`    ${colors.bold("SIGKILL")}  ${happened}`)
}

const seconds = (milliseconds: number): string => `${milliseconds / 1000} s`

/** An audience that prints. */
export const narrator = (print: Print): Audience => ({
  server: ({ announced, pid }) =>
    print(`  mail server smtp://127.0.0.1:${announced.smtpPort}, mailbox ${announced.mailboxUrl} (process ${pid})`),
  born: (pid, life) => {
    print("")
    print(`  ${colors.bold(`Worker ${life}`)} ${colors.dim(`(process ${pid})`)}`)
    if (life === 1) return
    const [lease, timeout] = [seconds(leaseMs), seconds(operationTimeoutMs)]
    print(
      colors.dim(
        `    It waits out the dead worker's lease (${lease}) and the operation's timeout (${timeout}), then asks.`,
      ),
    )
  },
  event: (event) => print(describe(event)),
  died: (life, accepted) => print(death(life, accepted)),
})
