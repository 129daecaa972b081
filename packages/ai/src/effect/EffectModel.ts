/** Models of `@effect/ai` whose usage is recorded by itself, and answers of theirs for the gate. */
import { Live, Output, Usage, type Unvalidated } from "@cairn/core"
import * as AiError from "@effect/ai/AiError"
import * as LanguageModel from "@effect/ai/LanguageModel"
import type * as Prompt from "@effect/ai/Prompt"
import type * as Response from "@effect/ai/Response"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Mailbox from "effect/Mailbox"
import type * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { boundOf } from "./internal/bound.js"
import { amountsOf, hear, textOf, type Heard } from "./internal/heard.js"
import { isFree, judging } from "./internal/judged.js"

/**
 * What the service itself does not tell.
 *
 * *Shape.* `model`: its name as prices have it. `maxOutputTokens`: what the provider's own configuration limits an answer to
 * (`max_output_tokens`, `max_tokens`): with it a budget knows the most that a call can use; without it, it reserves nothing.
 *
 * @category options
 * @since 0.1.0
 */
export interface UsageOptions {
  readonly model: string
  readonly maxOutputTokens?: number
}

type Asked = Parameters<typeof boundOf>[0]

/** One call, paid for. `heard` is filled while it goes on. */
const paid = <A, E, R>(
  { model, maxOutputTokens }: UsageOptions,
  asked: Asked,
  heard: Heard,
  call: Effect.Effect<A, E, R>,
): Effect.Effect<A, E, R> => {
  const usage = () => amountsOf(heard.parts)
  const failed = (error: E) => usage() ?? (isFree(error) ? { microDollars: 0 } : null)
  return Effect.suspend(() =>
    Usage.call({ model, atMost: boundOf(asked, maxOutputTokens), usage, failed }, judging(call)),
  )
}

/** Parts read ahead of whoever reads the stream. */
const capacity = 16

const paidStream = (
  options: UsageOptions,
  asked: Asked,
  stream: Stream.Stream<Response.AnyPart, unknown>,
): Stream.Stream<Response.AnyPart, unknown> =>
  Stream.unwrapScoped(
    Effect.gen(function* () {
      const mailbox = yield* Mailbox.make<Response.AnyPart, unknown>(capacity)
      const heard: Heard = { parts: [] }
      const read = Stream.runForEachChunk(stream, (chunk) => {
        const parts = [...chunk]
        if (amountsOf(parts) !== undefined) heard.parts = parts
        return mailbox.offerAll(parts)
      })
      // The call ends when its stream does, or is let go of.
      yield* Effect.forkScoped(Mailbox.into(paid(options, asked, heard, read), mailbox))
      return Mailbox.toStream(mailbox)
    }),
  )

/** The service's signatures carry types of tools and schemas that nothing here looks at. */
interface Untyped {
  readonly generateText: (asked: Asked) => Effect.Effect<{ readonly content: Heard["parts"] }, unknown>
  readonly generateObject: (asked: Asked) => Effect.Effect<{ readonly content: Heard["parts"] }, unknown>
  readonly streamText: (asked: Asked) => Stream.Stream<Response.AnyPart, unknown>
}

const recording = (service: LanguageModel.Service, options: UsageOptions): LanguageModel.Service => {
  const model = service as unknown as Untyped
  const once = (ask: Untyped["generateText"]) => (asked: Asked) =>
    Effect.suspend(() => {
      const heard: Heard = { parts: [] }
      // A model that was not made by `LanguageModel.make` tells nobody but in its answer.
      const answer = Effect.tap(hear(heard, ask(asked)), ({ content }) => Effect.sync(() => (heard.parts = content)))
      return paid(options, asked, heard, answer)
    })
  const untyped: Untyped = {
    generateText: once(model.generateText),
    generateObject: once(model.generateObject),
    streamText: (asked) => paidStream(options, asked, model.streamText(asked)),
  }
  return untyped as unknown as LanguageModel.Service
}

/** What the service hands on as if it were part of an answer, or as the end of one. */
const broken = (description: string, cause?: unknown): Effect.Effect<never, AiError.AiError> =>
  judging(Effect.fail(new AiError.UnknownError({ module: "EffectModel", method: "streamText", description, cause })))

/**
 * Models of `@effect/ai` in steps.
 *
 * @category constructors
 * @since 0.1.0
 */
export const EffectModel = {
  /**
   * A layer of Effect's `LanguageModel` whose calls record what they use, with the attempt of the step that makes them, also where
   * the call or the attempt fails (X11). Steps declare `Effects.read(LanguageModel.LanguageModel)` and use the service as ever.
   *
   * *Errors.* Those of the service, which say `isRetryable` and `retryAfterMs` besides: a step's `retry` reads them. Leave retries
   * of the HTTP client (`HttpClient.retryTransient`) off: they are calls that nobody counts.
   *
   * @example
   * ```ts
   * import { EffectModel } from "@cairn/ai/effect"
   * import { OpenAiClient, OpenAiLanguageModel } from "@effect/ai-openai"
   * import { FetchHttpClient } from "@effect/platform"
   * import { Config, Layer } from "effect"
   *
   * const model = "gpt-4o-mini"
   * export const Model = OpenAiLanguageModel.layer({ model, config: { max_output_tokens: 500 } }).pipe(
   *   EffectModel.withUsage({ model, maxOutputTokens: 500 }),
   *   Layer.provide(OpenAiClient.layerConfig({ apiKey: Config.redacted("OPENAI_API_KEY") })),
   *   Layer.provide(FetchHttpClient.layer),
   * )
   * ```
   */
  withUsage:
    (options: UsageOptions) =>
    <A, E, R>(
      layer: Layer.Layer<A | LanguageModel.LanguageModel, E, R>,
    ): Layer.Layer<A | LanguageModel.LanguageModel, E, R> =>
      Layer.map(layer, (context) => {
        const service = Context.get(
          context as Context.Context<LanguageModel.LanguageModel>,
          LanguageModel.LanguageModel,
        )
        return Context.add(context, LanguageModel.LanguageModel, recording(service, options))
      }),

  /**
   * Asks for an object, and gives what the model has said as it said it: a step returns it, and its own schema decodes it. Text that
   * is no JSON, is cut off or does not fit is therefore no failure here, as it is one of `LanguageModel.generateObject`: the step's
   * `onInvalid` repairs it, asks again, or shows it to a person.
   *
   * *Shape.* Empty text where the provider's client keeps none: Claude's is asked to call a tool, and drops what Claude says instead.
   *
   * *Errors.* `AiError`, where there is no answer.
   */
  generateObject: <A, I extends Record<string, unknown>, R>(options: {
    readonly prompt: Prompt.RawInput
    readonly schema: Schema.Schema<A, I, R>
    readonly objectName?: string
  }): Effect.Effect<Unvalidated, AiError.AiError, LanguageModel.LanguageModel | R> =>
    Effect.suspend(() => {
      const heard: Heard = { parts: [] }
      const said = Effect.map(hear(heard, LanguageModel.generateObject(options)), ({ text }) => text)
      const unfit = Effect.catchTag(
        said as Effect.Effect<string, AiError.AiError, LanguageModel.LanguageModel | R>,
        "MalformedOutput",
        (error) => {
          const text = textOf(heard)
          return text === undefined ? Effect.fail(error) : Effect.succeed(text)
        },
      )
      return Effect.map(unfit, Output.json)
    }),

  /**
   * Asks for text, emits it as live output of the step while it comes, and gives the whole.
   *
   * *Errors.* `AiError`; a stream that ends before the answer has is one: half an answer is none.
   */
  streamText: (options: {
    readonly prompt: Prompt.RawInput
  }): Effect.Effect<string, AiError.AiError, LanguageModel.LanguageModel> =>
    Effect.suspend(() => {
      let text = ""
      let hasEnded = false
      const read = Stream.runForEach(LanguageModel.streamText(options), (part) => {
        if (part.type === "error") return broken("the provider reports an error amid its answer", part.error)
        if (part.type === "finish") hasEnded = true
        if (part.type !== "text-delta") return Effect.void
        text += part.delta
        return Live.emit(part.delta)
      })
      return Effect.flatMap(read, () =>
        hasEnded ? Effect.succeed(text) : broken("the stream broke off before the answer was whole"),
      )
    }),
} as const
