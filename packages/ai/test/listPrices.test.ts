import { listPrices } from "@cairn/ai"
import type { ModelPrice } from "@cairn/core"
import { describe, expect, it } from "vitest"

const entries: ReadonlyArray<readonly [string, ModelPrice]> = Object.entries(listPrices)

describe("list prices", () => {
  it("are there", () => {
    expect(entries.length).toBeGreaterThan(10)
  })

  it.each(entries)("of %s are amounts, a cache's below the others", (_, { input, cachedInput, output }) => {
    expect(cachedInput).toBeGreaterThan(0)
    expect(input).toBeGreaterThan(cachedInput ?? input)
    expect(output).toBeGreaterThan(input)
  })

  it.each(entries)("stand under the name that all dates of %s have in common", (name) => {
    expect(name).not.toMatch(/-\d{8}$|-\d{4}-\d{2}-\d{2}$|-latest$/)
  })
})
