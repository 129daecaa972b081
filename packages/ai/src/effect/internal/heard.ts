/** What a model has answered, whatever becomes of its answer. */
import type { UsageAmounts } from "@cairn/core"
import type * as Response from "@effect/ai/Response"
import * as Telemetry from "@effect/ai/Telemetry"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"

type Part = Pick<Response.AllParts<any>, "type">

const isFinish = (part: Part): part is Response.FinishPart => part.type === "finish"
const isText = (part: Part): part is Response.TextPart => part.type === "text"

/** As the provider's own body has it, where its client hands that on. */
interface ClaudeUsage {
  readonly input_tokens?: number
  readonly cache_read_input_tokens?: number | null
  readonly cache_creation_input_tokens?: number | null
}

/** Claude counts what came from its cache, or went into it, beside the other tokens, and its client leaves it so. */
const besides = ({ metadata, usage }: Response.FinishPart): { readonly read: number; readonly written: number } => {
  const told = (metadata as Readonly<Record<string, { readonly usage?: ClaudeUsage } | undefined>>)["anthropic"]?.usage
  if (told === undefined || told.input_tokens !== usage.inputTokens) return { read: 0, written: 0 }
  return { read: told.cache_read_input_tokens ?? 0, written: told.cache_creation_input_tokens ?? 0 }
}

/** Undefined where no part tells: an answer or a stream that broke off. */
export const amountsOf = (parts: ReadonlyArray<Part>): UsageAmounts | undefined => {
  const finish = parts.find(isFinish)
  if (finish === undefined) return undefined
  const { inputTokens, cachedInputTokens, outputTokens } = finish.usage
  const { read, written } = besides(finish)
  return {
    inputTokens: inputTokens === undefined ? undefined : inputTokens + read + written,
    cachedInputTokens,
    ...(written > 0 ? { cacheWriteTokens: written } : {}),
    outputTokens,
  }
}

export interface Heard {
  parts: ReadonlyArray<Part>
}

/** The text of an answer, empty for one without; undefined where there was no answer. */
export const textOf = ({ parts }: Heard): string | undefined =>
  parts.length === 0
    ? undefined
    : parts
        .filter(isText)
        .map(({ text }) => text)
        .join("")

/**
 * Listens to one call. `generateObject` fails with an error that holds neither text nor usage where the answer does not fit; who
 * transforms the span of a call is told the answer before it is decoded.
 */
export const hear = <A, E, R>(heard: Heard, call: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Effect.serviceOption(Telemetry.CurrentSpanTransformer), (outer) =>
    Effect.provideService(call, Telemetry.CurrentSpanTransformer, (options) => {
      heard.parts = options.response
      if (Option.isSome(outer)) outer.value(options)
    }),
  )
