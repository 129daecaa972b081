import { describe, expect, it } from "@effect/vitest"
import type { MailEntry } from "../src/mailApi.js"
import { goneAddresses, recipients } from "../src/recipients.js"
import type { Facts, Life } from "../src/scenario.js"
import { complaints } from "../src/summary.js"

const entry = (event: MailEntry["event"], to: string): MailEntry => ({ event, key: `key of ${to}`, to })
const memory = { first: { heapMb: 1, rssMb: 1 }, most: { heapMb: 1, rssMb: 1 } }
const life = (exit: Life["exit"]): Life => ({ exit, asked: [], memory })

const log = recipients.map(({ address }) => entry(goneAddresses.includes(address) ? "refused" : "sent", address))
const good: Facts = {
  lives: [life("SIGKILL"), life("SIGKILL"), life(0)],
  log,
  ended: { event: "ended", sent: 980, unreachable: [...goneAddresses].sort() },
}

describe("the judgement", () => {
  it("has nothing against one mail for everybody who can be reached", () => {
    expect(complaints(good)).toEqual([])
  })

  it.each<[string, Partial<Facts>, string]>([
    ["a second mail", { log: [...log, log[0]!] }, "reader-0001@reader.example was sent 2 mails instead of 1"],
    ["a missing mail", { log: log.slice(1) }, "reader-0001@reader.example was sent 0 mails instead of 1"],
    ["a mail to nobody", { log: [...log, entry("sent", goneAddresses[0]!)] }, "was sent 1 mails instead of 0"],
    [
      "more asked for again than was under way",
      { log: [...log, ...Array.from({ length: 41 }, () => entry("known", "a@reader.example"))] },
      "41 mails were asked for again, and at most 40",
    ],
    ["a key for two mails", { log: [...log, entry("keyReused", "a@reader.example")] }, "a key was used with another"],
    ["a worker that was not killed", { lives: [life(0)] }, "the workers ended with 0"],
    ["a wrong count", { ended: { event: "ended", sent: 979, unreachable: goneAddresses } }, "counts 979 mails"],
    ["a short list", { ended: { event: "ended", sent: 980, unreachable: [] } }, "lists 0 unreachable addresses"],
    ["a run that failed", { ended: { event: "failed", problem: "away" } }, "did not end well: away"],
    ["a run that did not end", { ended: null }, "nothing was heard of it"],
  ])("names %s", (_, change, words) => {
    expect(complaints({ ...good, ...change }).join("\n")).toContain(words)
  })
})
