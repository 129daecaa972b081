/** Which engine the environment asks for. */
import type { Engine } from "./engine.js"
import { readByRules } from "./rules.js"

export const rules: Engine = { name: "rules", read: async (text) => readByRules(text) }

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
