/** Which engine the environment asks for. */
import type { Engine } from "./engine.js"
import { readByRules } from "./rules.js"

/** A rule of thumb for European languages. */
const charactersPerToken = 4

const estimatedTokens = (text: string): number => Math.ceil(text.length / charactersPerToken)

/**
 * Reads by rules, which cost nothing. So that a run without a key shows what there is to save all the same, it says what a model
 * would have been billed for the text and for the answer: an estimate, and marked as one wherever it is shown.
 */
export const rules: Engine = {
  name: "rules",
  model: "gpt-4.1-mini",
  isEstimate: true,
  read: async (text) => {
    const invoice = readByRules(text)
    const usage = { inputTokens: estimatedTokens(text), outputTokens: estimatedTokens(JSON.stringify(invoice)) }
    return { invoice, usage }
  },
}

/** A language model where a key for one is in the environment, rules otherwise. */
export const engineFrom = async (environment: NodeJS.ProcessEnv): Promise<Engine> => {
  const vendor = (["openai", "anthropic"] as const).find((name) => environment[`${name.toUpperCase()}_API_KEY`])
  if (vendor === undefined) return rules
  // Loaded only here: without a key, the client's start-up time is not paid.
  const { languageModel } = await import("./languageModel.js")
  return languageModel({
    vendor,
    apiKey: environment[`${vendor.toUpperCase()}_API_KEY`]!,
    baseURL: environment[`${vendor.toUpperCase()}_BASE_URL`],
    model: environment["CAIRN_DEMO_MODEL"],
  })
}
