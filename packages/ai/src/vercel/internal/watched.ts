/** A model of which one knows whether it was asked, and what it has used, whatever becomes of its answer. */
import type { UsageAmounts } from "@cairn/core"
import { wrapLanguageModel, type LanguageModelMiddleware } from "ai"

/** A model of the AI SDK: an object, never a name that only its gateway can resolve. */
export type ProvidedModel = Parameters<typeof wrapLanguageModel>[0]["model"]

type Used = Awaited<ReturnType<ReturnType<typeof wrapLanguageModel>["doGenerate"]>>["usage"]

export interface Watched {
  readonly model: ReturnType<typeof wrapLanguageModel>
  readonly wasAsked: () => boolean
  /** A stream has begun: what it fails of after that has been billed, up to there. */
  readonly hasBegun: () => boolean
  /** Undefined as long as no answer has told. */
  readonly used: () => UsageAmounts | undefined
}

const amountsOf = ({ inputTokens, outputTokens }: Used): UsageAmounts => ({
  inputTokens: inputTokens.total,
  cachedInputTokens: inputTokens.cacheRead,
  ...(inputTokens.cacheWrite ? { cacheWriteTokens: inputTokens.cacheWrite } : {}),
  outputTokens: outputTokens.total,
})

/** One call: the SDK may still refuse an answer that the provider has billed, and then says nothing of its usage. */
export const watched = (model: ProvidedModel): Watched => {
  let asked = false
  let begun = false
  let used: UsageAmounts | undefined
  const middleware: LanguageModelMiddleware = {
    specificationVersion: "v3",
    wrapGenerate: async ({ doGenerate }) => {
      asked = true
      const answer = await doGenerate()
      used = amountsOf(answer.usage)
      return answer
    },
    wrapStream: async ({ doStream }) => {
      asked = true
      const { stream, ...answer } = await doStream()
      begun = true
      type Part = typeof stream extends ReadableStream<infer P> ? P : never
      const told = new TransformStream<Part, Part>({
        transform: (part, controller) => {
          if (part.type === "finish") used = amountsOf(part.usage)
          controller.enqueue(part)
        },
      })
      return { ...answer, stream: stream.pipeThrough(told) }
    },
  }
  return {
    model: wrapLanguageModel({ model, middleware }),
    wasAsked: () => asked,
    hasBegun: () => begun,
    used: () => used,
  }
}
