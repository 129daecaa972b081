import { describe, expect, it } from "@effect/vitest"
import type { Decided, Facts } from "../src/scenario.js"
import { complaints } from "../src/summary.js"

const decided = (runId: Decided["runId"], exit: 0 | 1): Decided => ({
  by: "somebody",
  runId,
  said: exit === 0 ? "recorded" : "DecisionRefused: somebody was first",
  exit,
})
const ends = {
  "paper-6": "paid (transfer-1)",
  "train-7": "paid (transfer-2)",
  "hotel-8": "rejected by Cleo: the trip was called off",
  "books-9": "expired: nobody has decided",
}
const paper = { event: "paid", key: "p", to: "Ira Dahl" } as const
const train = { event: "paid", key: "t", to: "Jo Amara" } as const

const approved: Facts = {
  workers: ["SIGKILL", 0],
  rivals: [decided("train-7", 0), decided("train-7", 1)],
  approval: decided("paper-6", 0),
  rejection: decided("hotel-8", 0),
  late: decided("books-9", 1),
  ends: new Map(Object.entries(ends)),
  log: [train, paper],
}
const rejected: Facts = {
  ...approved,
  rivals: [decided("train-7", 1), decided("train-7", 0)],
  ends: new Map(Object.entries({ ...ends, "train-7": "rejected by Bob: too dear" })),
  log: [paper],
}
const endsWith = (change: Partial<typeof ends>) => new Map(Object.entries({ ...ends, ...change }))

describe("the judgement", () => {
  it("has nothing against the first decision, whosever it was", () => {
    expect(complaints(approved)).toEqual([])
    expect(complaints(rejected)).toEqual([])
  })

  it.each<[string, Partial<Facts>, string]>([
    ["two winners", { rivals: [decided("train-7", 0), decided("train-7", 0)] }, "2 of two decisions were taken"],
    ["no winner", { rivals: [decided("train-7", 1), decided("train-7", 1)] }, "0 of two decisions were taken"],
    ["a decision that was not obeyed", { ends: endsWith({ "train-7": "expired" }) }, "train-7 ended as 'expired'"],
    ["a payment that nobody approved", { log: [paper, train, { ...paper, to: "Kim Berg" }] }, "paid: 'Ira Dahl,Jo"],
    ["a second payment", { log: [paper, train, train] }, "paid: 'Ira Dahl,Jo Amara,Jo Amara'"],
    ["a payment that is missing", { log: [paper] }, "paid: 'Ira Dahl' instead of 'Ira Dahl,Jo Amara'"],
    ["a late decision that was taken", { late: decided("books-9", 0) }, "a late decision was not refused"],
    ["a rejection that was not taken", { rejection: decided("hotel-8", 1) }, "the rejection was not taken"],
    ["an approval that was not taken", { approval: decided("paper-6", 1) }, "the approval was not taken"],
    ["one that did not expire", { ends: endsWith({ "books-9": "paid" }) }, "books-9: 'paid'"],
    ["a worker that was not killed", { workers: [0, 0] }, "the workers ended with 0, 0"],
  ])("names %s", (_, change, words) => {
    expect(complaints({ ...approved, ...change }).join("\n")).toContain(words)
  })
})
