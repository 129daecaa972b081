/**
 * Reads invoices with a language model, through the AI SDK. The JSON Schema that the model is given is written by the
 * schema that its answer must pass: there is one description of an invoice.
 */
import { generateObject, jsonSchema, type LanguageModel } from "ai"
import { JSONSchema } from "effect"
import { invoiceFields } from "../invoice.js"
import { maxOutputTokens, type Engine } from "./engine.js"

/** A vendor's key and address, as its own client names them in the environment. */
export interface Account {
  readonly vendor: "openai" | "anthropic"
  readonly apiKey: string
  readonly baseURL: string | undefined
  readonly model: string | undefined
}

const defaultModels = { openai: "gpt-4.1-mini", anthropic: "claude-haiku-4-5" } as const

const instructions = [
  "Extract this invoice. Amounts in hundredths of the currency, as whole numbers (1.180,00 € is 118000).",
  "Days as YYYY-MM-DD. Copy names and descriptions as they are written, without article positions.",
].join(" ")

const load = async ({ vendor, apiKey, baseURL }: Account, model: string): Promise<LanguageModel> => {
  const settings = { apiKey, ...(baseURL === undefined ? {} : { baseURL }) }
  return vendor === "openai"
    ? (await import("@ai-sdk/openai")).createOpenAI(settings)(model)
    : (await import("@ai-sdk/anthropic")).createAnthropic(settings)(model)
}

export const languageModel = async (account: Account): Promise<Engine> => {
  const name = account.model ?? defaultModels[account.vendor]
  const model = await load(account, name)
  return {
    name: `${account.vendor}:${name}`,
    model: name,
    isEstimate: false,
    read: async (text, signal) => {
      const { object, usage } = await generateObject({
        model,
        schema: jsonSchema(JSONSchema.make(invoiceFields) as Parameters<typeof jsonSchema>[0]),
        schemaName: "invoice",
        system: instructions,
        prompt: text,
        maxOutputTokens,
        ...(signal === undefined ? {} : { abortSignal: signal }),
        // The workflow retries, where each call is counted; a second retry loop inside would hide some.
        maxRetries: 0,
      })
      return { invoice: object, usage }
    },
  }
}
