/** What the models of this example cost, and what a provider's bill comes to. */
import type { Prices, UsageAmounts } from "@cairn/core"

/** Dollars for a million tokens, as their makers list them (November 2026). */
export const prices: Prices = {
  "gpt-4.1-mini": { input: 0.4, cachedInput: 0.1, output: 1.6 },
  "claude-haiku-4-5": { input: 1, cachedInput: 0.1, output: 5 },
}

/**
 * A call's bill in micro-dollars (dollars for a million tokens are micro-dollars for one), for the log of the model; null where
 * that is unknown. Not by Cairn's own arithmetic: the two are compared in the end.
 */
export const bill = (model: string, usage: UsageAmounts): number | null => {
  const { inputTokens, outputTokens, cachedInputTokens = 0, microDollars } = usage
  if (microDollars !== undefined) return microDollars
  const price = prices[model]
  if (price === undefined || inputTokens === undefined || outputTokens === undefined) return null
  const { input, cachedInput = input, output } = price
  const exact = (inputTokens - cachedInputTokens) * input + cachedInputTokens * cachedInput + outputTokens * output
  // 138.00000000000003 are 138; a real fraction counts as a whole one.
  return Math.ceil(Number(exact.toFixed(6)))
}
