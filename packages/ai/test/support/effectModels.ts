/** Models of Effect's own provider packages that ask the provider on this machine. */
import { EffectModel } from "@cairn/ai/effect"
import { AnthropicClient, AnthropicLanguageModel } from "@effect/ai-anthropic"
import { OpenAiClient, OpenAiLanguageModel } from "@effect/ai-openai"
import { FetchHttpClient } from "@effect/platform"
import { Layer, Redacted } from "effect"
import { modelName } from "./vercelModels.js"

const maxOutputTokens = 50
const apiKey = Redacted.make("sk-test")
const recording = EffectModel.withUsage({ model: modelName, maxOutputTokens })

export const effectModels = [
  [
    "Effect's client for OpenAI",
    (url: string) =>
      OpenAiLanguageModel.layer({ model: modelName, config: { max_output_tokens: maxOutputTokens } }).pipe(
        recording,
        Layer.provide(OpenAiClient.layer({ apiKey, apiUrl: url })),
        Layer.provide(FetchHttpClient.layer),
      ),
  ],
  [
    "Effect's client for Anthropic",
    (url: string) =>
      AnthropicLanguageModel.layer({ model: modelName, config: { max_tokens: maxOutputTokens } }).pipe(
        recording,
        Layer.provide(AnthropicClient.layer({ apiKey, apiUrl: url.replace(/\/v1$/, "") })),
        Layer.provide(FetchHttpClient.layer),
      ),
  ],
] as const
