/** Counts what the mail API's log says, and judges it. */
import type { MailEntry } from "./mailApi.js"
import { goneAddresses, recipients } from "./recipients.js"
import type { Facts } from "./scenario.js"
import { concurrency } from "./workflow.js"

export const countOf = (log: ReadonlyArray<MailEntry>, event: MailEntry["event"]): number =>
  log.filter((entry) => entry.event === event).length

/** What is wrong: nothing, if everybody who can be reached was sent one mail, and the others are listed. */
export const complaints = ({ lives, log, ended }: Facts): ReadonlyArray<string> => {
  const found: Array<string> = []
  const exits = lives.map(({ exit }) => exit).join(", ")
  if (exits !== "SIGKILL, SIGKILL, 0") found.push(`the workers ended with ${exits} instead of SIGKILL, SIGKILL, 0`)
  const times = new Map<string, number>()
  for (const { event, to } of log) if (event === "sent") times.set(to, (times.get(to) ?? 0) + 1)
  for (const { address } of recipients) {
    const due = goneAddresses.includes(address) ? 0 : 1
    const mails = times.get(address) ?? 0
    if (mails !== due) found.push(`${address} was sent ${mails} mails instead of ${due}`)
  }
  const again = countOf(log, "known")
  // Two kills, and each can hit what is under way, no more.
  if (again > 2 * concurrency)
    found.push(`${again} mails were asked for again, and at most ${2 * concurrency} were under way`)
  if (countOf(log, "keyReused") > 0) found.push("a key was used with another mail")
  if (ended?.event !== "ended") found.push(`the run did not end well: ${ended?.problem ?? "nothing was heard of it"}`)
  else {
    if (ended.sent !== recipients.length - goneAddresses.length) found.push(`the run counts ${ended.sent} mails`)
    if (ended.unreachable.join() !== [...goneAddresses].sort().join())
      found.push(
        `the run lists ${ended.unreachable.length} unreachable addresses, and there are ${goneAddresses.length}`,
      )
  }
  return found
}
