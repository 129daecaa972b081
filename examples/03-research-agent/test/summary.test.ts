import { describe, expect, it } from "@effect/vitest"
import { deaths, type Facts } from "../src/scenario.js"
import { complaints } from "../src/summary.js"

const call = { call: 1, kind: "choose", turn: 0, costMicroUsd: 100 } as const
const page = { event: "published", key: "k", page: "/pages/1", text: "t" } as const

const good: Facts = {
  lives: [
    ...deaths.map((death) => ({ death, exit: "SIGKILL" as const, found: null, calls: [] })),
    { death: null, exit: 0, found: null, calls: [] },
  ],
  calls: Array.from({ length: 9 }, () => call),
  cms: [page, { ...page, event: "known" }],
  ended: { event: "ended", page: "/pages/1", problem: null },
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
    ["a run that failed", { ended: { event: "ended", page: null, problem: "away" } }, "did not end well: away"],
    ["a run that did not end", { ended: null }, "nothing was heard of it"],
  ])("names %s", (_, change, words) => {
    expect(complaints({ ...good, ...change }).join("\n")).toContain(words)
  })
})
