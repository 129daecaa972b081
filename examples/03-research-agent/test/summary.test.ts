import { describe, expect, it } from "@effect/vitest"
import type { CostSum } from "@cairn/core"
import { deaths, type Facts } from "../src/scenario.js"
import { accountComplaints, complaints, renderAccount } from "../src/summary.js"

const call = { call: 1, kind: "choose", turn: 0, costMicroUsd: 100 } as const

/** Nine calls, two of which were cut off: one in the life that ends in an answer of turn 1, one in that of the article. */
const account: CostSum = {
  ...{ key: "cairns", workflow: "research", calls: 9, unknown: 2, open: 0 },
  ...{ microDollars: 700, reserved: 250, saved: 2_200, inputTokens: 0, outputTokens: 0, cachedInputTokens: 0 },
}
const page = { event: "published", key: "k", page: "/pages/1", text: "t" } as const

const good: Facts = {
  lives: [
    ...deaths.map((death) => ({ death, exit: "SIGKILL" as const, found: null, calls: [call] })),
    { death: null, exit: 0, found: null, calls: [] },
  ],
  calls: Array.from({ length: 9 }, () => call),
  cms: [page, { ...page, event: "known" }],
  ended: { event: "ended", page: "/pages/1", problem: null, account },
}

describe("the judgement", () => {
  it("has nothing against nine calls and one page", () => {
    expect(complaints(good)).toEqual([])
  })

  it.each<[string, Partial<Facts>, string]>([
    ["a call too many", { calls: [...good.calls, call] }, "paid for 10 calls, and at most 9"],
    ["a second page", { cms: [page, page] }, "2 pages were published"],
    ["a second key", { cms: [page, { ...page, event: "known", key: "other" }] }, "more than one key"],
    ["another article", { cms: [page, { ...page, event: "refused" }] }, "another article under the same key"],
    ["a worker that was not killed", { lives: good.lives.slice(1) }, "the workers ended with"],
    [
      "a run that failed",
      { ended: { event: "ended", page: null, problem: "away", account } },
      "did not end well: away",
    ],
    ["a run that did not end", { ended: null }, "nothing was heard of it"],
  ])("names %s", (_, change, words) => {
    expect(complaints({ ...good, ...change }).join("\n")).toContain(words)
  })
})

describe("the judgement of the account", () => {
  const plain: Facts = { ...good, calls: Array.from({ length: 31 }, () => call) }
  const told = (change: Partial<CostSum>): Facts => ({
    ...good,
    ended: { event: "ended", page: "/pages/1", problem: null, account: { ...account, ...change } },
  })

  it("has nothing against one that covers the bills and saved what the plain retry paid more", () => {
    expect(accountComplaints(good, plain)).toEqual([])
  })

  it.each<[string, Facts, string]>([
    ["no account", { ...good, ended: null }, "nothing was heard"],
    ["a call too few", told({ unknown: 1 }), "1 calls that were cut off, and 2 were"],
    ["another sum", told({ microDollars: 701 }), "$0.000701, the model has billed $0.000700"],
    ["too little set aside", told({ reserved: 199 }), "$0.000199 were set aside for calls that have cost $0.000200"],
    ["savings that are too small", told({ saved: 2_199 }), "$0.002199 was saved, the plain retry has paid $0.002200"],
  ])("names %s", (_, cairn, words) => {
    expect(accountComplaints(cairn, plain).join("\n")).toContain(words)
  })

  it("shows what is known, what was cut off and what was saved", () => {
    for (const amount of ["$0.000700", "$0.000250", "$0.002200"]) expect(renderAccount(good)).toContain(amount)
  })
})
