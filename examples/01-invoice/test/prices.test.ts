import { describe, expect, it } from "@effect/vitest"
import { bill } from "../src/prices.js"

describe("a bill", () => {
  it("counts tokens from the cache for less, and a part of a micro-dollar as a whole one", () => {
    expect(bill("gpt-4.1-mini", { inputTokens: 1_000, outputTokens: 100, cachedInputTokens: 400 })).toBe(440)
    expect(bill("gpt-4.1-mini", { inputTokens: 1, outputTokens: 0 })).toBe(1)
    // 0.4 times 3 and 1.6 times 3 is a little more than 6 in floating point.
    expect(bill("gpt-4.1-mini", { inputTokens: 3, outputTokens: 3 })).toBe(6)
  })

  it("is unknown without a price, and where the provider has not said what was used", () => {
    expect(bill("another", { inputTokens: 1, outputTokens: 1 })).toBe(null)
    expect(bill("claude-haiku-4-5", { inputTokens: 1 })).toBe(null)
  })
})
