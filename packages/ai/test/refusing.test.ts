/** What the SDK refuses, before it asks a model or after it was answered. */
import { createAnthropic } from "@ai-sdk/anthropic"
import { createOpenAI } from "@ai-sdk/openai"
import { VercelModel } from "@cairn/ai/vercel"
import { APICallError, simulateReadableStream, tool } from "ai"
import { MockLanguageModelV3 } from "ai/test"
import { Effect, Schema } from "effect"
import { describe, expect, it, vi } from "vitest"
import { z } from "zod"
import { recordingCalls } from "./support/paidCalls.js"
import { modelName } from "./support/vercelModels.js"

type Generated = Awaited<ReturnType<MockLanguageModelV3["doGenerate"]>>
type StreamPart =
  Awaited<ReturnType<MockLanguageModelV3["doStream"]>>["stream"] extends ReadableStream<infer P> ? P : never

const usage = {
  inputTokens: { total: 20, noCache: 20, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
}
const billed = { inputTokens: 20, cachedInputTokens: 0, outputTokens: 5 }

const saying = (content: Generated["content"]): MockLanguageModelV3 =>
  new MockLanguageModelV3({
    modelId: modelName,
    doGenerate: { content, finishReason: { unified: "stop", raw: "stop" }, usage, warnings: [] },
  })

const streaming = (chunks: Array<StreamPart>): MockLanguageModelV3 =>
  new MockLanguageModelV3({ modelId: modelName, doStream: { stream: simulateReadableStream({ chunks }) } })

const failure = async (call: Effect.Effect<unknown, unknown>) => {
  const { calls, inStep } = recordingCalls()
  const error = await Effect.runPromise(Effect.flip(inStep(call)))
  return { error, told: calls.map(({ told }) => told) }
}

const notSent = { _tag: "ModelError", reason: "NotSent", isRetryable: false, isFree: true, status: null }
const costNothing = [{ microDollars: 0 }]

const searching = (execute: () => Promise<string>) => ({
  search: tool({ description: "Searches.", inputSchema: z.object({ words: z.string() }), execute }),
})

describe("what the SDK does not send", () => {
  it("is a prompt that is none", async () => {
    const model = saying([{ type: "text", text: "12" }])
    const { error, told } = await failure(VercelModel.make(model).generateText({ messages: [] }))
    expect(error).toMatchObject(notSent)
    expect(told).toEqual(costNothing)
    expect(model.doGenerateCalls).toHaveLength(0)
  })

  it("is a request without a key", async () => {
    vi.stubEnv("ANTHROPIC_API_KEY", undefined)
    vi.stubEnv("ANTHROPIC_AUTH_TOKEN", undefined)
    const model = createAnthropic({ baseURL: "http://127.0.0.1:9" })(modelName)
    const { error, told } = await failure(VercelModel.make(model).generateText({ prompt: "?", maxOutputTokens: 1 }))
    vi.unstubAllEnvs()
    expect(error).toMatchObject(notSent)
    expect(told).toEqual(costNothing)
  })

  it("is a schema that JSON cannot say", async () => {
    const model = saying([{ type: "text", text: "12" }])
    const schema = Schema.Struct({ at: Schema.BigIntFromSelf })
    const { error, told } = await failure(VercelModel.make(model).generateObject({ prompt: "?", schema }))
    expect(error).toMatchObject(notSent)
    expect(told).toEqual(costNothing)
  })

  it("is a prompt whose image cannot be fetched; it may be another time", async () => {
    const model = createOpenAI({ apiKey: "sk-test", baseURL: "http://127.0.0.1:9" }).chat(modelName)
    // A provider that takes no urls: the SDK fetches them itself.
    const fetching = new MockLanguageModelV3({ modelId: modelName, doGenerate: (options) => model.doGenerate(options) })
    const image = new URL("http://127.0.0.1:9/picture.png")
    const { error, told } = await failure(
      VercelModel.make(fetching).generateText({ messages: [{ role: "user", content: [{ type: "image", image }] }] }),
    )
    expect(error).toMatchObject({ reason: "Unreachable", isRetryable: true, isFree: true })
    expect(told).toEqual(costNothing)
    expect(fetching.doGenerateCalls).toHaveLength(0)
  })
})

describe("what the SDK refuses of an answer", () => {
  it("is billed all the same", async () => {
    const model = saying([{ type: "text", text: "I would rather talk." }])
    const { error, told } = await failure(
      VercelModel.make(model).generateText({
        prompt: "?",
        tools: searching(async () => "found"),
        toolChoice: "required",
      }),
    )
    expect(error).toMatchObject({ reason: "BadAnswer", isRetryable: true, isFree: false })
    expect(told).toEqual([billed])
  })

  it("is told by a provider amid a stream", async () => {
    const overloaded = { type: "overloaded_error", message: "Overloaded" }
    const model = streaming([
      { type: "stream-start", warnings: [] },
      { type: "text-start", id: "1" },
      { type: "text-delta", id: "1", delta: "Two " },
      { type: "error", error: overloaded },
      {
        type: "finish",
        finishReason: { unified: "error", raw: undefined },
        usage: {
          inputTokens: { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
          outputTokens: { total: undefined, text: undefined, reasoning: undefined },
        },
      },
    ])
    const { error } = await failure(VercelModel.make(model).streamText({ prompt: "?" }))
    expect(error).toMatchObject({
      reason: "Unavailable",
      isRetryable: true,
      problem: "Overloaded",
      cause: { cause: overloaded },
    })
  })
})

describe("an answer that its provider breaks off", () => {
  const begun: ReadonlyArray<StreamPart> = [
    { type: "stream-start", warnings: [] },
    { type: "text-start", id: "1" },
    { type: "text-delta", id: "1", delta: "Two " },
  ]

  it("has cost what it has cost, whatever status it is broken off with", async () => {
    const error = new APICallError({ message: "slow down", url: "", requestBodyValues: {}, statusCode: 429 })
    const model = streaming([...begun, { type: "error", error }])
    const failed = await failure(VercelModel.make(model).streamText({ prompt: "?" }))
    expect(failed.error).toMatchObject({ reason: "RateLimited", isRetryable: true, isFree: false })
    expect(failed.told).toEqual([null])
  })

  it("is none, and billed", async () => {
    const finishReason = { unified: "error", raw: "error" } as const
    const model = new MockLanguageModelV3({
      doGenerate: { content: [{ type: "text", text: "Two " }], finishReason, usage, warnings: [] },
      doStream: { stream: simulateReadableStream({ chunks: [...begun, { type: "finish", finishReason, usage }] }) },
    })
    const { generateObject, generateText, streamText } = VercelModel.make(model)
    const schema = Schema.Struct({ cents: Schema.Int })
    for (const call of [
      generateText({ prompt: "?" }),
      streamText({ prompt: "?" }),
      generateObject({ prompt: "?", schema }),
    ]) {
      const { error, told } = await failure(call)
      expect(error).toMatchObject({ reason: "Unavailable", isRetryable: true, isFree: false })
      expect(told).toEqual([billed])
    }
  })
})

describe("a tool", () => {
  const call = { type: "tool-call", toolCallId: "1", toolName: "search", input: '{"words":"cairns"}' } as const

  it("is offered, called for, and never executed in the call", async () => {
    const execute = vi.fn<() => Promise<string>>(async () => "found")
    const model = saying([call])
    const answer = await Effect.runPromise(
      VercelModel.make(model).generateText({ prompt: "?", tools: searching(execute) }),
    )
    expect(answer.toolCalls).toMatchObject([{ toolName: "search", input: { words: "cairns" } }])
    expect(model.doGenerateCalls).toHaveLength(1)
    expect(model.doGenerateCalls[0]!.tools).toMatchObject([{ name: "search", description: "Searches." }])
    expect(execute).not.toHaveBeenCalled()
  })

  it("counts in what the call can use at most", async () => {
    const { calls, inStep } = recordingCalls()
    const asking = { prompt: "?", maxOutputTokens: 10 }
    const model = VercelModel.make(saying([call]))
    await Effect.runPromise(inStep(model.generateText(asking)))
    await Effect.runPromise(inStep(model.generateText({ ...asking, tools: searching(async () => "found") })))
    const [without, having] = calls.map(({ atMost }) => atMost?.inputTokens)
    expect(having! - without!).toBeGreaterThan(1_000 + "searchSearches.words".length)
  })
})

describe("schemas of others", () => {
  it("are asked for, and left to the gate", async () => {
    const model = saying([{ type: "text", text: '{"cents":"twelve"}' }])
    const schema = z.object({ cents: z.number().int() })
    const output = await Effect.runPromise(VercelModel.make(model).generateObject({ prompt: "?", schema }))
    expect(output.raw).toEqual({ cents: "twelve" })
    expect(model.doGenerateCalls[0]!.responseFormat).toMatchObject({
      type: "json",
      schema: { properties: { cents: { type: "integer" } } },
    })
  })

  it("of Effect stand as an object at the top, with their name and description", async () => {
    class Invoice extends Schema.Class<Invoice>("Invoice")({ at: Schema.Date, cents: Schema.Int }) {}
    const model = saying([{ type: "text", text: "{}" }])
    const naming = { schemaName: "invoice", schemaDescription: "What is owed." }
    await Effect.runPromise(VercelModel.make(model).generateObject({ prompt: "?", schema: Invoice, ...naming }))
    expect(model.doGenerateCalls[0]!.responseFormat).toMatchObject({
      name: "invoice",
      description: "What is owed.",
      schema: { type: "object", required: ["at", "cents"], additionalProperties: false },
    })
  })
})
