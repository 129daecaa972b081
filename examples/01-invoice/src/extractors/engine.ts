/** What reads an invoice's text: rules, or a language model. Plain promises, for whoever wants to use it. */
import type { UsageAmounts } from "@cairn/core"
import { bill } from "../prices.js"
import type { Journal } from "../providers/journal.js"

export interface Reading {
  /** In the shape of an invoice; unchecked. */
  readonly invoice: unknown
  /** Tokens: as the provider counts them, or estimated. */
  readonly usage: UsageAmounts
}

export interface Engine {
  /** For the log. */
  readonly name: string
  /** As the prices name it. Of the rules: the model whose bill is reckoned. */
  readonly model: string
  /** Whether nobody bills anything, and the tokens are guessed. */
  readonly isEstimate: boolean
  readonly read: (text: string, signal?: AbortSignal) => Promise<Reading>
}

/** An answer is cut off here. An invoice of fifty lines stays far below. */
export const maxOutputTokens = 4_000

/** Instructions and schema beside the text, generously. */
const promptTokens = 5_000

/** The most that reading a text can use, for the budget: no token is shorter than a byte. */
export const atMost = (text: string): UsageAmounts => ({
  inputTokens: Buffer.byteLength(text) + promptTokens,
  outputTokens: maxOutputTokens,
})

/** What a failed call is billed: an answer that was no JSON all of it, a request that was refused nothing; null: nobody knows. */
export const billedAnyway = (error: unknown): UsageAmounts | null => {
  const { usage, statusCode } = Object(error) as { readonly usage?: UsageAmounts; readonly statusCode?: number }
  return usage ?? (statusCode === 401 || statusCode === 429 ? { microDollars: 0 } : null)
}

/** The model's log: a call is `asked` before it is made, and `billed` when it has ended. */
export type ModelEntry =
  | { readonly entry: "asked"; readonly at: number; readonly process: number; readonly engine: string }
  | {
      readonly entry: "billed"
      readonly process: number
      readonly model: string
      readonly isEstimate: boolean
      readonly usage: UsageAmounts
      /** Null where the model has no price here. */
      readonly microDollars: number | null
    }

/** The engine with every call logged before it is made: a call costs, whatever becomes of its answer. */
export const logged = (engine: Engine, log: Journal<ModelEntry>): Engine => {
  const { name, model, isEstimate } = engine
  const billed = (usage: UsageAmounts | null): void => {
    if (usage === null) return
    log.append({ entry: "billed", process: process.pid, model, isEstimate, usage, microDollars: bill(model, usage) })
  }
  return {
    ...engine,
    read: async (text, signal) => {
      log.append({ entry: "asked", at: Date.now(), process: process.pid, engine: name })
      try {
        const reading = await engine.read(text, signal)
        billed(reading.usage)
        return reading
      } catch (error) {
        billed(billedAnyway(error))
        throw error
      }
    },
  }
}
