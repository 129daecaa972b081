/**
 * Reads an invoice's text. A service behind a tag, so that the workflow neither knows nor cares whether rules or a
 * language model do it; either way its answer is `unknown` until the step's schema has seen it.
 */
import { Usage, type UsageAmounts } from "@cairn/core"
import { Context, Data, Effect, Layer } from "effect"
import { atMost, billedAnyway, type Engine } from "./extractors/engine.js"

/** The model could not be asked, or gave no answer. */
export class ModelError extends Data.TaggedError("ModelError")<{
  readonly problem: string
  readonly isRetryable: boolean
  /** What it has cost all the same; null where nobody knows. */
  readonly usage: UsageAmounts | null
  readonly cause?: unknown
}> {
  override get message() {
    return `The model gave no answer: ${this.problem}`
  }
}

export class Extractor extends Context.Tag("example/Extractor")<
  Extractor,
  { readonly extract: (text: string) => Effect.Effect<unknown, ModelError> }
>() {}

const modelError = (cause: unknown): ModelError =>
  new ModelError({
    problem: cause instanceof Error ? cause.message : String(cause),
    // The client says so of a refused key, which stays refused. An overloaded service, or an answer that was no JSON,
    // may do better next time.
    isRetryable: (cause as { readonly isRetryable?: unknown } | null)?.isRetryable !== false,
    usage: billedAnyway(cause),
    cause,
  })

export const extractorLayer = (engine: Engine): Layer.Layer<Extractor> =>
  Layer.succeed(Extractor, {
    extract: (text) => {
      const asking = Effect.tryPromise({ try: (signal) => engine.read(text, signal), catch: modelError })
      // What the call has used goes to the account of the step that asked, whatever becomes of the step.
      const paid = Usage.call(
        { model: engine.model, atMost: atMost(text), usage: ({ usage }) => usage, failed: ({ usage }) => usage },
        asking,
      )
      return Effect.map(paid, ({ invoice }) => invoice)
    },
  })
