import { EffectModel } from "@cairn/ai/effect"
import { AiError, LanguageModel } from "@effect/ai"
import { Cause, Effect, Exit, Fiber, Option, Schema, Stream } from "effect"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { startProvider, type Provider } from "./support/provider.js"
import { effectModels } from "./support/effectModels.js"

let provider: Provider
beforeEach(async () => {
  provider = await startProvider()
})
afterEach(() => provider.close())

const prompt = "How much?"
const schema = Schema.Struct({ cents: Schema.Int })
const text = LanguageModel.generateText({ prompt })

describe.each(effectModels)("a model of %s", (title, connect) => {
  const run = <A, E>(program: Effect.Effect<A, E, LanguageModel.LanguageModel>): Promise<A> =>
    Effect.runPromise(Effect.provide(program, connect(provider.url)))

  /** The error itself; a defect is none. */
  const failureOf = async <A, E>(program: Effect.Effect<A, E, LanguageModel.LanguageModel>): Promise<E> => {
    const exit = await Effect.runPromiseExit(Effect.provide(program, connect(provider.url)))
    if (Exit.isSuccess(exit)) throw new Error("it has succeeded")
    return Option.getOrThrowWith(Cause.failureOption(exit.cause), () => Cause.squash(exit.cause))
  }

  it("answers as without us", async () => {
    provider.willReply({ kind: "answer", inputTokens: 100, cachedInputTokens: 40, outputTokens: 7 })
    const answer = await run(text)
    expect(answer.text).toBe("Two words.")
    expect(answer.usage).toMatchObject({ cachedInputTokens: 40, outputTokens: 7 })
  })

  it("gives an object as without us", async () => {
    provider.willReply({ kind: "answer", text: '{"cents":12}' })
    expect((await run(LanguageModel.generateObject({ prompt, schema }))).value).toEqual({ cents: 12 })
  })

  it("streams parts as without us", async () => {
    provider.willReply({ kind: "answer", text: "one two three" })
    const parts = [...(await run(Stream.runCollect(LanguageModel.streamText({ prompt }))))]
    expect(parts.filter(({ type }) => type === "text-delta").map((part) => (part as { delta: string }).delta)).toEqual([
      "one ",
      "two ",
      "three",
    ])
    expect(parts.at(-1)).toMatchObject({ type: "finish", reason: "stop" })
  })

  it("gives the whole of a streamed text", async () => {
    provider.willReply({ kind: "answer", text: "one two three" })
    expect(await run(EffectModel.streamText({ prompt }))).toBe("one two three")
  })

  it.each(["end", "reset"] as const)("does not take half a stream for a text (%s)", async (how) => {
    provider.willReply({ kind: "breaks", how })
    const error = await failureOf(EffectModel.streamText({ prompt }))
    expect(AiError.isAiError(error)).toBe(true)
    expect(error).toMatchObject({ isRetryable: true })
  })

  it("does not take a stream of which a part is missing for a text", async () => {
    provider.willReply({ kind: "malformed" })
    const error = await failureOf(EffectModel.streamText({ prompt }))
    expect(AiError.isAiError(error)).toBe(true)
    expect(error).toMatchObject({ isRetryable: true })
  })

  it.each([
    ["an object", '{"cents":12}', { cents: 12 }],
    ["an object that does not fit", '{"cents":"twelve"}', { cents: "twelve" }],
  ])("gives %s to the gate as it said it", async (_case, said, raw) => {
    provider.willReply({ kind: "answer", text: said })
    expect((await run(EffectModel.generateObject({ prompt, schema }))).raw).toEqual(raw)
  })

  it.each([
    ["prose", { text: "About twelve cents." }],
    ["an object that is cut off", { text: '{"cents":1', isCut: true }],
  ])("gives the text of an answer that is %s to the gate", async (_case, said) => {
    provider.willReply({ kind: "answer", ...said })
    const { raw } = await run(EffectModel.generateObject({ prompt, schema }))
    // Claude is to call a tool instead: its client keeps nothing of what it says beside that.
    expect(raw).toMatchObject({ text: title.includes("Anthropic") ? "" : said.text })
  })

  it.each([
    [400, { isRetryable: false, retryAfterMs: 0 }],
    [401, { isRetryable: false, retryAfterMs: 0 }],
    [409, { isRetryable: true, retryAfterMs: 7_000 }],
    [429, { isRetryable: true, retryAfterMs: 7_000 }],
    [500, { isRetryable: true, retryAfterMs: 7_000 }],
  ])("says of status %i whether and when to ask again, and does not by itself", async (status, verdict) => {
    const headers = { "retry-after": "7" }
    provider.willReply({ kind: "status", status, headers }, { kind: "status", status, headers })
    expect(await failureOf(text)).toMatchObject({ _tag: "HttpResponseError", ...verdict })
    expect(await failureOf(EffectModel.streamText({ prompt }))).toMatchObject({ _tag: "HttpResponseError", ...verdict })
    expect(provider.asked).toHaveLength(2)
  })

  it("may be asked again where an answer is no JSON, or breaks off", async () => {
    provider.willReply({ kind: "malformed" }, { kind: "breaks", how: "reset" })
    expect(await failureOf(text)).toMatchObject({ isRetryable: true })
    expect(await failureOf(text)).toMatchObject({ isRetryable: true })
  })

  it("may be asked again where nobody listens", async () => {
    await provider.close()
    expect(await failureOf(text)).toMatchObject({ _tag: "HttpRequestError", isRetryable: true })
  })

  it.each([
    ["a text", Effect.asVoid(text)],
    ["a stream", Effect.asVoid(EffectModel.streamText({ prompt }))],
  ])("lets go of the provider when %s is interrupted", async (_case, program) => {
    provider.willReply({ kind: "hangs" })
    const fiber = Effect.runFork(Effect.provide(program, connect(provider.url)))
    await provider.asksReached(1)
    await Effect.runPromise(Fiber.interrupt(fiber))
    await provider.abandoned
    expect(provider.asked).toHaveLength(1)
  })
})
