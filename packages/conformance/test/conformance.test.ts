import { cases, isOffered, runCase, storeConformance } from "@cairn/conformance"
import { Cause, Effect, Exit } from "effect"
import { describe, expect, it } from "vitest"
import { faithful, onTestClock, toldInTime, withEverything, withWakeUps } from "./harnesses.js"
import { sound, withTransactions } from "./mutants/transactions.js"

storeConformance("MemoryDriver on a real clock, with every hook", withEverything(faithful))
storeConformance("MemoryDriver with wake-ups", withWakeUps(toldInTime))
storeConformance("MemoryDriver with transactions", withTransactions(sound))

describe("the kit", () => {
  it("has cases for every law, under titles that begin with it and are not used twice", () => {
    const laws = new Set(cases.map(({ law }) => law))
    expect([...laws]).toEqual(Array.from({ length: 44 }, (_, n) => `D${n + 1}`))
    for (const { law, title } of cases) expect(title.startsWith(`${law}: `)).toBe(true)
    expect(new Set(cases.map(({ title }) => title)).size).toBe(cases.length)
  })

  it("leaves out only the cases that need what a harness does not offer", () => {
    const clock = onTestClock((driver) => driver)
    const everything = withEverything(faithful)
    const hearing = withWakeUps(toldInTime)
    const booking = withTransactions(sound)
    const left = (harness: typeof clock) =>
      cases.filter((one) => !isOffered(one, harness)).flatMap(({ needs }) => needs)
    expect(new Set(left(clock))).toEqual(
      new Set(["second", "ownClock", "failAfter", "unsafeInteger", "unreadable", "wakeUps", "transactions"]),
    )
    expect(new Set(left(everything))).toEqual(new Set(["exactClock", "wakeUps", "failAfter", "transactions"]))
    expect(cases.every((one) => [clock, everything, hearing, booking].some((harness) => isOffered(one, harness)))).toBe(
      true,
    )
  })

  it("fails a harness that declares what its open store lacks", async () => {
    const lying = { ...onTestClock((driver) => driver), features: ["second" as const] }
    const exit = await Effect.runPromiseExit(runCase(cases[0]!, lying))
    expect(Exit.isFailure(exit) && Cause.pretty(exit.cause)).toContain(
      "the harness declares what its open store lacks: second",
    )
  })
})
