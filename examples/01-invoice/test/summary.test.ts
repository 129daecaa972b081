import { describe, expect, it } from "@effect/vitest"
import type { Facts } from "../src/scenario.js"
import { complaints, renderOvercharged, renderTable, tally } from "../src/summary.js"

const answer = { status: 201, body: {} }

const charge = (request: number, invoice: string, amountCents = 100, currency = "EUR") =>
  ({
    entry: "performed",
    request,
    at: 0,
    key: null,
    fingerprint: "f",
    answer,
    done: { id: `ch_${request}`, card: "card", amountCents, currency, invoice },
  }) as const

const mailing = (request: number, invoice: string) =>
  ({
    entry: "performed",
    request,
    at: 0,
    key: null,
    fingerprint: "f",
    answer,
    done: { id: `msg_${request}`, to: "a@b", subject: "s", body: "b", invoice },
  }) as const

const received = (request: number) => ({ entry: "received", request, at: 0, key: "k" }) as const

const good: Facts = {
  lives: [
    { killAfter: "charge", exit: "SIGKILL" },
    { killAfter: "email", exit: "SIGKILL" },
    { killAfter: null, exit: 0 },
  ],
  payments: [received(1), charge(1, "A"), received(2), { entry: "replayed", request: 2, key: "k" }],
  mail: [received(1), mailing(1, "A")],
  model: [{ at: 0, process: 1, engine: "rules", characters: 1 }],
  problems: new Map([["A.txt", null]]),
}

describe("the judgement", () => {
  it("has nothing against one charge and one mail an invoice after two kills", () => {
    expect(complaints(good, ["A.txt"])).toEqual([])
  })

  it.each<[string, Partial<Facts>, string]>([
    ["a second charge", { payments: [...good.payments, charge(3, "A")] }, "A was charged 2 times"],
    ["a second mail", { mail: [...good.mail, mailing(2, "A")] }, "A was mailed 2 times"],
    ["a missing charge", { payments: [received(1)] }, "0 of 1 invoices were charged"],
    ["a missing mail", { mail: [] }, "0 of 1 invoices were mailed"],
    ["a run that is not finished", { problems: new Map() }, "A.txt did not finish"],
    ["a run that failed", { problems: new Map([["A.txt", "declined"]]) }, "A.txt ended badly: declined"],
    ["a worker that was not killed", { lives: [{ killAfter: null, exit: 0 }] }, "the workers ended with 0"],
  ])("names %s", (_, change, words) => {
    expect(complaints({ ...good, ...change }, ["A.txt"]).join("\n")).toContain(words)
  })
})

describe("the tally", () => {
  it("counts requests apart from effects, and money beyond once an invoice", () => {
    expect(tally({ ...good, payments: [...good.payments, charge(3, "B", 250, "CHF"), charge(4, "A")] })).toEqual({
      workers: 3,
      kills: 2,
      chargeRequests: 2,
      charges: 3,
      mailRequests: 1,
      mails: 1,
      replayed: 1,
      modelCalls: 1,
      overcharged: { EUR: 100 },
    })
  })

  it("counts a declined charge as a request and not as a charge", () => {
    const declined = { ...charge(1, "A"), done: null }
    expect(tally({ ...good, payments: [received(1), declined] })).toMatchObject({ chargeRequests: 1, charges: 0 })
  })
})

describe("the table", () => {
  it("has a column a scenario and a row a fact", () => {
    const one = tally(good)
    const lines = renderTable(
      [
        { title: "Cairn", tally: one },
        { title: "other", tally: { ...one, charges: 7 } },
      ],
      1,
    )
    expect(lines).toContain("Cairn")
    // eslint-disable-next-line no-control-regex
    expect(lines.replace(/\u001b\[\d+m/g, "")).toMatch(/charges made\s+1\s+7\n/)
  })

  it("names the money that was charged beyond once an invoice", () => {
    const charges = [charge(1, "A"), charge(2, "B", 5, "CHF"), charge(3, "A"), charge(4, "B", 5, "CHF"), charge(5, "A")]
    expect(renderOvercharged(tally({ ...good, payments: charges }))).toBe("EUR 2.00, CHF 0.05")
    expect(renderOvercharged(tally(good))).toBe("nothing")
  })
})
