/** A model of the AI SDK as a service that steps read from. */
import { Live, Output as StepOutput, Usage, type Unvalidated, type UsageAmounts } from "@cairn/core"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Runtime from "effect/Runtime"
import * as Schema from "effect/Schema"
import {
  asSchema,
  generateText,
  jsonSchema,
  Output,
  streamText,
  type CallSettings,
  type FlexibleSchema,
  type GenerateTextResult,
  type OutputInterface,
  type Prompt,
  type StreamTextResult,
  type ToolChoice,
  type ToolSet,
} from "ai"
import { jsonSchemaOf } from "../internal/jsonSchema.js"
import { boundOf } from "./internal/bound.js"
import { watched, type ProvidedModel, type Watched } from "./internal/watched.js"
import { Broken, modelError, type ModelError } from "./ModelError.js"

/**
 * What a model is asked: the SDK's own options of one call.
 *
 * *Shape.* Without those that Cairn sees to: retries (the step's `retry`), timeouts (the step's `timeout`) and the `abortSignal`
 * (interruption). `tools` are offered to the model and never executed here: what a tool does is a step of its own. With
 * `maxOutputTokens` a budget knows the most that the call can use; without it, it reserves nothing.
 *
 * @category options
 * @since 0.1.0
 */
export type TextOptions<Tools extends ToolSet = {}> = Omit<CallSettings, "maxRetries" | "abortSignal" | "timeout"> &
  Prompt & {
    readonly tools?: Tools
    readonly toolChoice?: ToolChoice<NoInfer<Tools>>
    readonly providerOptions?: Parameters<typeof generateText>[0]["providerOptions"]
  }

/**
 * What a model is asked for an object.
 *
 * *Shape.* `schema`: of Effect (what it encodes to is asked for), or any that the SDK takes. `schemaName` and `schemaDescription`
 * go to providers that use them.
 *
 * @category options
 * @since 0.1.0
 */
export type ObjectOptions = TextOptions & {
  readonly schema: Schema.Schema.All | FlexibleSchema<unknown>
  readonly schemaName?: string
  readonly schemaDescription?: string
}

/** What an answer has, by the SDK's own names. */
const answerFields = [
  "text",
  "reasoningText",
  "toolCalls",
  "finishReason",
  "usage",
  "response",
  "providerMetadata",
  "warnings",
] as const

/**
 * What a model has answered: fields of the SDK's result, by its names.
 *
 * @category models
 * @since 0.1.0
 */
export type Answer<Tools extends ToolSet = {}> = Pick<
  GenerateTextResult<Tools, OutputInterface>,
  (typeof answerFields)[number]
>

/**
 * A model as a service.
 *
 * @category models
 * @since 0.1.0
 */
export interface VercelModelService {
  /** Its name, as prices have it. */
  readonly modelId: string
  /** Asks once and gives the whole answer. A `finishReason` of `length` is an answer: its text is cut off. */
  readonly generateText: <Tools extends ToolSet = {}>(
    options: TextOptions<Tools>,
  ) => Effect.Effect<Answer<Tools>, ModelError>
  /**
   * Asks once for an object, and gives what the model has said as it said it: a step returns it, and its own schema decodes it.
   * Text that is no JSON, is cut off or does not fit is therefore no failure here: the step's `onInvalid` repairs it, asks again, or
   * shows it to a person.
   */
  readonly generateObject: (options: ObjectOptions) => Effect.Effect<Unvalidated, ModelError>
  /** Asks once and emits the text as live output of the step while it comes; gives the whole answer. */
  readonly streamText: <Tools extends ToolSet = {}>(
    options: TextOptions<Tools>,
  ) => Effect.Effect<Answer<Tools>, ModelError>
}

const answerOf = async <Tools extends ToolSet>(
  result: GenerateTextResult<Tools, OutputInterface> | StreamTextResult<Tools, OutputInterface>,
): Promise<Answer<Tools>> => {
  if ((await result.finishReason) === "error") throw new Broken("Unavailable", "the provider failed amid its answer")
  const fields = answerFields.map(async (field) => [field, await result[field]])
  return Object.fromEntries(await Promise.all(fields)) as Answer<Tools>
}

/** The SDK would run a tool right here, hidden from the plan of the workflow. */
const neverExecuted = <Tools extends ToolSet>(tools: Tools): Tools =>
  Object.fromEntries(Object.entries(tools).map(([name, tool]) => [name, { ...tool, execute: undefined }])) as Tools

/** As the SDK's functions take it: they try once, for the step tries again. */
const asked = <Tools extends ToolSet>(options: TextOptions<Tools>, model: Watched["model"], signal: AbortSignal) => {
  const { tools, ...rest } = options
  return {
    ...rest,
    ...(tools === undefined ? {} : { tools: neverExecuted(tools) }),
    model,
    abortSignal: signal,
    maxRetries: 0,
  } as Parameters<typeof generateText<Tools, OutputInterface>>[0]
}

/** What the SDK calls the end of a stream that has none. */
const hasNoEnd = (finishReason: string, rawFinishReason: string | undefined): boolean =>
  finishReason === "other" && rawFinishReason === undefined

const problemOf = (error: unknown): string => {
  const message = (error as { readonly message?: unknown } | null)?.message
  return typeof message === "string" ? message : JSON.stringify(error)
}

/** The SDK keeps failures out of the text, in parts of their own. */
const readStream = async <Tools extends ToolSet>(
  result: StreamTextResult<Tools, OutputInterface>,
  emit: (text: string) => void,
): Promise<Answer<Tools>> => {
  for await (const part of result.fullStream) {
    if (part.type === "text-delta") emit(part.text)
    // What a provider reports amid its answer is a plain object.
    else if (part.type === "error")
      throw part.error instanceof Error ? part.error : new Broken("Unavailable", problemOf(part.error), part.error)
    else if (part.type === "finish" && hasNoEnd(part.finishReason, part.rawFinishReason))
      throw new Broken("BadAnswer", "the stream broke off before the answer was whole")
  }
  return answerOf(result)
}

/** One call: paid for, interruptible, and its failure told as ours. */
const call = <A>(
  model: ProvidedModel,
  atMost: Effect.Effect<UsageAmounts | undefined>,
  ask: (model: Watched["model"], signal: AbortSignal) => Promise<A>,
): Effect.Effect<A, ModelError> =>
  Effect.flatMap(atMost, (most) => {
    const watch = watched(model)
    const asking = Effect.catchAll(
      Effect.tryPromise({ try: (signal) => ask(watch.model, signal), catch: (thrown) => thrown }),
      (thrown) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) =>
          Effect.fail(modelError(model.modelId, thrown, watch, new Date(now))),
        ),
    )
    return Usage.call(
      {
        model: model.modelId,
        atMost: most,
        usage: watch.used,
        failed: ({ isFree }) => watch.used() ?? (isFree ? { microDollars: 0 } : null),
      },
      asking,
    )
  })

/** A tool or schema that has no JSON form is the SDK's to complain about. */
const bound = (options: TextOptions<any>, schema?: unknown): Effect.Effect<UsageAmounts | undefined> =>
  Effect.orElseSucceed(
    Effect.tryPromise(() => boundOf(options, schema)),
    () => undefined,
  )

const isEffectSchema = (schema: unknown): schema is Schema.Schema.All => Schema.isSchema(schema)

/** The provider gets the schema; nobody here refuses an answer by it. */
const unrefused = ({ schemaName, schemaDescription }: ObjectOptions, json: object): OutputInterface => ({
  ...Output.object({
    schema: jsonSchema(json),
    ...(schemaName === undefined ? {} : { name: schemaName }),
    ...(schemaDescription === undefined ? {} : { description: schemaDescription }),
  }),
  parseCompleteOutput: async ({ text }) => text,
})

const generateObject =
  (model: ProvidedModel): VercelModelService["generateObject"] =>
  (options) => {
    const { schema, schemaName: _name, schemaDescription: _description, ...rest } = options
    const json = async () => (isEffectSchema(schema) ? jsonSchemaOf(schema) : await asSchema(schema).jsonSchema)
    const most = Effect.flatMap(
      Effect.orElseSucceed(Effect.tryPromise(json), () => undefined),
      (told) => bound(rest as TextOptions, told),
    )
    const ask = async (watching: Watched["model"], signal: AbortSignal) => {
      const output = unrefused(options, await json())
      return (await answerOf(await generateText({ ...asked(rest as TextOptions, watching, signal), output }))).text
    }
    return Effect.map(call(model, most, ask), StepOutput.json)
  }

/**
 * A model of the AI SDK (`ai` 6) as a service that steps read from: `Effects.read(VercelModel)`. What its calls use is recorded by
 * itself, with the step's attempt, also where the call or the attempt fails (X11). For several models make a tag of your own each:
 * `class Cheap extends Context.Tag("Cheap")<Cheap, VercelModelService>() {}`.
 *
 * @example
 * ```ts
 * import { Cairn, Effects, MemoryStore, Workflow } from "@cairn/core"
 * import { VercelModel } from "@cairn/ai/vercel"
 * import { MockLanguageModelV3 } from "ai/test"
 * import { Schema } from "effect"
 *
 * const Invoice = Schema.Struct({ cents: Schema.Int })
 * const invoice = Workflow.make("invoice", { version: 1, input: Schema.String })
 *   .step(
 *     "extract",
 *     {
 *       effects: [Effects.read(VercelModel)],
 *       output: Invoice,
 *       retry: { times: 3 },
 *       timeout: "1 minute",
 *       onInvalid: { retries: 2, then: "review" },
 *     },
 *     function* ({ input, rejected }) {
 *       const prompt = rejected === null ? input : `${input}\nYour last answer was refused: ${rejected.issues}`
 *       return yield* (yield* VercelModel).generateObject({ prompt, schema: Invoice, maxOutputTokens: 500 })
 *     },
 *   )
 *   .output(Schema.Int, ({ results }) => results.extract.cents)
 *   .compile()
 *
 * // Stands for `openai("gpt-4o-mini")` of `@ai-sdk/openai`, or any other provider's model.
 * const model = new MockLanguageModelV3({
 *   modelId: "gpt-4o-mini",
 *   doGenerate: {
 *     content: [{ type: "text", text: '{"cents":1200}' }],
 *     finishReason: { unified: "stop", raw: "stop" },
 *     usage: {
 *       inputTokens: { total: 20, noCache: 20, cacheRead: 0, cacheWrite: 0 },
 *       outputTokens: { total: 5, text: 5, reasoning: 0 },
 *     },
 *     warnings: [],
 *   },
 * })
 *
 * const cairn = await Cairn.open({
 *   store: MemoryStore.layer,
 *   workflows: [invoice],
 *   handlers: VercelModel.layer(model),
 * })
 * await (await cairn.start(invoice, "Twelve dollars, please.")).result()
 * // => 1200
 * await cairn.close()
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export class VercelModel extends Context.Tag("@cairn/ai/VercelModel")<VercelModel, VercelModelService>() {
  /** The service over a model: `openai("gpt-4o-mini")`, `anthropic("claude-haiku-4-5")`, `gateway("openai/gpt-5")`. */
  static make(model: ProvidedModel): VercelModelService {
    return {
      modelId: model.modelId,
      generateText: (options) =>
        call(model, bound(options), async (watching, signal) =>
          answerOf(await generateText(asked(options, watching, signal))),
        ),
      generateObject: generateObject(model),
      streamText: (options) =>
        Effect.flatMap(Effect.runtime<never>(), (runtime) =>
          call(model, bound(options), (watching, signal) =>
            readStream(
              // It would print what it also hands on.
              streamText({ ...asked(options, watching, signal), onError: () => {} }),
              (text) => Runtime.runSync(runtime, Live.emit(text)),
            ),
          ),
        ),
    }
  }

  /** The same as a layer. */
  static layer(model: ProvidedModel): Layer.Layer<VercelModel> {
    return Layer.succeed(VercelModel, VercelModel.make(model))
  }
}
