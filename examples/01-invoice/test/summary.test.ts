import { describe, expect, it } from "@effect/vitest"
import type { Facts } from "../src/scenario.js"
import type { Account } from "../src/workerProtocol.js"
import { accountComplaints, complaints, renderOvercharged, renderSaved, renderTable, tally } from "../src/summary.js"

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

const asked = { entry: "asked", at: 0, process: 1, engine: "rules" } as const
const billed = {
  entry: "billed",
  process: 1,
  model: "m",
  isEstimate: true,
  usage: { inputTokens: 1, outputTokens: 1 },
  microDollars: 300 as number | null,
} as const

const account: Account = { microDollars: 300, unknown: 0, saved: 600, interruptions: [2] }

const good: Facts = {
  lives: [
    { killAfter: "charge", exit: "SIGKILL" },
    { killAfter: "email", exit: "SIGKILL" },
    { killAfter: null, exit: 0 },
  ],
  payments: [received(1), charge(1, "A"), received(2), { entry: "replayed", request: 2, key: "k" }],
  mail: [received(1), mailing(1, "A")],
  model: [asked, billed],
  account,
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

describe("the judgement of the account", () => {
  const plain: Facts = { ...good, model: [asked, billed, asked, billed, asked, billed], account: null }
  const real = { ...billed, isEstimate: false }

  it("has nothing against one that agrees with the model's log and with what the other paid more", () => {
    expect(accountComplaints(good, plain)).toEqual([])
  })

  it.each<[string, Partial<Facts>, string]>([
    ["no account", { account: null }, "nothing was heard"],
    ["another sum", { account: { ...account, microDollars: 301 } }, "$0.000301, the model's log $0.000300"],
    ["savings that nobody paid", { account: { ...account, saved: 601 } }, "$0.000601 was saved"],
    ["a cost that it does not know", { account: { ...account, microDollars: 0, unknown: 1 } }, "cost of 1 calls"],
    ["a cost that the log does not know", { model: [asked, { ...billed, microDollars: null }] }, "log unknown"],
  ])("names %s", (_, change, words) => {
    expect(accountComplaints({ ...good, ...change }, plain).join("\n")).toContain(words)
  })

  it("does not ask of a language model that it answers in as many words each time", () => {
    const spoken = { ...good, model: [asked, real], account: { ...account, saved: 601 } }
    expect(accountComplaints(spoken, plain)).toEqual([])
    expect(accountComplaints({ ...spoken, model: [asked, { ...real, microDollars: 299 }] }, plain)).toHaveLength(1)
  })

  it("does not compare the savings of a run that something else than the kills has cut off", () => {
    const disturbed = { ...good, account: { ...account, saved: 900, interruptions: [3] } }
    expect(accountComplaints(disturbed, plain)).toEqual([])
    expect(renderSaved(disturbed, plain)).not.toContain("what the others paid more")
    expect(renderSaved(good, plain)).toContain("what the others paid more")
  })

  it("says under the table whether the cost is an estimate", () => {
    expect(renderSaved(good, plain)).toContain("~ An estimate")
    const counted = renderSaved(null, { ...plain, model: [asked, real] })
    expect(counted).not.toContain("estimate")
    expect(counted).toContain("the list price of m")
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
      modelCost: 300,
      isEstimate: true,
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
