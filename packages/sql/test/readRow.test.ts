import { StoreError } from "@cairn/core"
import { describe, expect, it } from "vitest"
import { readRow, whole, wholeMs } from "../src/readRow.js"
import { workerTable } from "../src/tables.js"

const read = (until: unknown) => readRow("read a worker", workerTable.columns, { workerId: "w", until })

const failureOf = (run: () => unknown): StoreError => {
  try {
    run()
  } catch (thrown) {
    if (thrown instanceof StoreError) return thrown
  }
  throw new Error("no StoreError was thrown")
}

describe("a row that is read", () => {
  const max = Number.MAX_SAFE_INTEGER

  it.each([0, 7, max, -max, 7n, BigInt(max), "7", String(max)])("takes %s for the integer that it is", (value) => {
    expect(read(value)).toEqual({ workerId: "w", until: Number(value) })
  })

  it.each([
    2 ** 53,
    -(2 ** 53),
    2n ** 53n,
    "9007199254740993",
    1.5,
    "1.5",
    "",
    "many",
    Number.NaN,
    null,
    undefined,
    true,
  ])("does not take %s for an integer", (value) => {
    expect(failureOf(() => read(value))).toMatchObject({ reason: "Corrupt", operation: "read a worker" })
    expect(failureOf(() => read(value)).message).toContain("'until'")
  })

  it("does not take a number for text, nor nothing for something", () => {
    for (const workerId of [5, null, undefined]) {
      expect(failureOf(() => readRow("read", workerTable.columns, { workerId, until: 1 })).message).toContain(
        "'worker_id'",
      )
    }
  })
})

describe("a number that is written", () => {
  it("is whole and at most 2^53 - 1", () => {
    expect(whole("commit", "seq", 2 ** 53 - 1)).toBe(2 ** 53 - 1)
    for (const value of [2 ** 53, 0.5, Number.NaN, Infinity]) {
      expect(failureOf(() => whole("commit", "seq", value))).toMatchObject({ reason: "Constraint" })
    }
  })

  it("is never an early time", () => {
    expect(wholeMs("commit", "wakeInMs", 0.4)).toBe(1)
    expect(wholeMs("commit", "wakeInMs", 10_000)).toBe(10_000)
    expect(failureOf(() => wholeMs("commit", "wakeInMs", Infinity))).toMatchObject({ reason: "Constraint" })
  })
})
