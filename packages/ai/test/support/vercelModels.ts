/** Models of real provider packages that ask the provider on this machine, one for each wire format. */
import { createAnthropic } from "@ai-sdk/anthropic"
import { createOpenAI } from "@ai-sdk/openai"
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"

export const modelName = "test-model-2026-01-31"

const settings = (url: string) => ({ baseURL: url, apiKey: "sk-test" })

export const vercelModels = [
  ["OpenAI, chat completions", (url: string) => createOpenAI(settings(url)).chat(modelName)],
  ["OpenAI, responses", (url: string) => createOpenAI(settings(url)).responses(modelName)],
  [
    "one that is compatible with OpenAI",
    (url: string) =>
      createOpenAICompatible({
        ...settings(url),
        name: "compatible",
        includeUsage: true,
        supportsStructuredOutputs: true,
      }).chatModel(modelName),
  ],
  ["Anthropic, messages", (url: string) => createAnthropic(settings(url))(modelName)],
] as const
