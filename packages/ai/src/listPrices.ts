/** What models cost, as their makers list it. */
import type { Prices } from "@cairn/core"

/**
 * List prices of well-known models, in dollars for a million tokens, as of 2026-11-30.
 *
 * *Shape.* Standard rates, directly from the maker: no batch, priority or regional rates, no surcharge for very long prompts, and
 * nothing for tools that the provider runs; what is written to Claude's cache is reckoned as kept for five minutes. Models whose rate
 * follows from the prompt's length are left out. Makers change their prices without asking: check what you bill by, and put your
 * own beside or over it.
 *
 * *Source.* Public tables of that day, not audited. What counts is https://developers.openai.com/api/docs/pricing and
 * https://platform.claude.com/docs/en/about-claude/pricing.
 *
 * @example
 * ```ts
 * import { listPrices } from "@cairn/ai"
 *
 * const prices = { ...listPrices, "our-own-model": { input: 0.1, output: 0.2 } }
 * prices["gpt-4o-mini"]
 * // => { input: 0.15, cachedInput: 0.075, output: 0.6 }
 * ```
 *
 * @category constants
 * @since 0.1.0
 */
export const listPrices = {
  "gpt-4o": { input: 2.5, cachedInput: 1.25, output: 10 },
  "gpt-4o-mini": { input: 0.15, cachedInput: 0.075, output: 0.6 },
  "gpt-4.1": { input: 2, cachedInput: 0.5, output: 8 },
  "gpt-4.1-mini": { input: 0.4, cachedInput: 0.1, output: 1.6 },
  "gpt-4.1-nano": { input: 0.1, cachedInput: 0.025, output: 0.4 },
  "gpt-5": { input: 1.25, cachedInput: 0.125, output: 10 },
  "gpt-5-mini": { input: 0.25, cachedInput: 0.025, output: 2 },
  "gpt-5-nano": { input: 0.05, cachedInput: 0.005, output: 0.4 },
  "gpt-5.1": { input: 1.25, cachedInput: 0.125, output: 10 },
  "gpt-5.2": { input: 1.75, cachedInput: 0.175, output: 14 },
  "claude-haiku-4-5": { input: 1, cachedInput: 0.1, cacheWrite: 1.25, output: 5 },
  "claude-sonnet-4-5": { input: 3, cachedInput: 0.3, cacheWrite: 3.75, output: 15 },
  "claude-sonnet-4-6": { input: 3, cachedInput: 0.3, cacheWrite: 3.75, output: 15 },
  "claude-sonnet-5": { input: 2, cachedInput: 0.2, cacheWrite: 2.5, output: 10 },
  "claude-opus-4-1": { input: 15, cachedInput: 1.5, cacheWrite: 18.75, output: 75 },
  "claude-opus-4-5": { input: 5, cachedInput: 0.5, cacheWrite: 6.25, output: 25 },
  "claude-opus-4-6": { input: 5, cachedInput: 0.5, cacheWrite: 6.25, output: 25 },
  "claude-opus-5": { input: 5, cachedInput: 0.5, cacheWrite: 6.25, output: 25 },
} as const satisfies Prices
