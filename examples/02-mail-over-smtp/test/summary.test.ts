import { describe, expect, it } from "@effect/vitest"
import type { StoredMessage } from "../src/mailServer/maildir.js"
import type { Facts } from "../src/scenario.js"
import { complaints, renderTable, rowsOf } from "../src/summary.js"

const stored = (to: string, messageId: string): StoredMessage => ({ name: "n", to, messageId })

const good: Facts = {
  lives: [
    { dieAt: "beforeSend", exit: "SIGKILL" },
    { dieAt: "afterAccept", exit: "SIGKILL" },
    { dieAt: null, exit: 0 },
  ],
  messages: [stored("b@x", "<2@x>"), stored("a@x", "<1@x>")],
  questions: [
    { messageId: "<1@x>", found: 0 },
    { messageId: "<2@x>", found: 0 },
    { messageId: "<2@x>", found: 1 },
    { messageId: "<1@x>", found: 1 },
  ],
  problems: new Map([
    ["A", null],
    ["B", null],
  ]),
}

describe("the judgement", () => {
  it("has nothing against one mail an order after two kills", () => {
    expect(complaints(good, ["A", "B"])).toEqual([])
  })

  it.each<[string, Partial<Facts>, string]>([
    ["a second mail", { messages: [...good.messages, stored("a@x", "<1@x>")] }, "a@x was sent 2 mails with <1@x>"],
    [
      "a second Message-ID for an order",
      { messages: [...good.messages, stored("a@x", "<3@x>")] },
      "3 Message-IDs were accepted for 2 orders",
    ],
    ["a missing mail", { messages: good.messages.slice(1) }, "1 Message-IDs were accepted for 2 orders"],
    ["a mailbox that was not asked", { questions: [] }, "was not asked about <1@x>"],
    ["a mailbox that was asked only afterwards", { questions: good.questions.slice(2) }, "was not asked about <2@x>"],
    ["a run that is not finished", { problems: new Map([["A", null]]) }, "B did not finish"],
    ["a run that failed", { problems: new Map([["A", "refused"]]) }, "A ended badly: refused"],
    ["a worker that was not killed", { lives: [{ dieAt: null, exit: 0 }] }, "the workers ended with 0"],
  ])("names %s", (_, change, words) => {
    expect(complaints({ ...good, ...change }, ["A", "B"]).join("\n")).toContain(words)
  })
})

describe("the table", () => {
  it("has a row a Message-ID, with what was asked and what the plain retry has sent", () => {
    const plain = rowsOf({ ...good, messages: [stored("a@x", "<p@x>"), stored("a@x", "<p@x>")] })
    // eslint-disable-next-line no-control-regex
    const lines = renderTable(rowsOf(good), plain).replace(/\u001b\[\d+m/g, "")
    expect(lines).toMatch(/<1@x>\s+no, yes\s+1\s+2\n/)
    expect(lines).toMatch(/<2@x>\s+no, yes\s+1\s+0$/)
  })
})
