/** The most that a call can use, for budgets. */
import type { UsageAmounts } from "@cairn/core"

/** What providers add of their own to a prompt that has tools or a schema: they say some hundred tokens. */
const instructionTokens = 1_000

/**
 * *Shape.* A token stands for a byte at least, so a prompt has no more tokens than bytes; as JSON it is longer than what the
 * provider makes of it, roles and separators included. Undefined where nothing bounds the answer, or the prompt holds what is
 * counted otherwise (images, files).
 */
export const atMost = (
  said: { readonly prompt: unknown; readonly tools?: unknown; readonly schema?: unknown },
  maxOutputTokens: number | undefined,
): UsageAmounts | undefined => {
  if (maxOutputTokens === undefined) return undefined
  const instructed = said.tools !== undefined || said.schema !== undefined
  try {
    const bytes = new TextEncoder().encode(JSON.stringify(said)).length
    return { inputTokens: bytes + (instructed ? instructionTokens : 0), outputTokens: maxOutputTokens }
  } catch {
    // What has no JSON is no text either: the provider's client will say so.
    return undefined
  }
}
