import { VercelModel, type ModelError } from "@cairn/ai/vercel"
import { Effect, Fiber, Schema } from "effect"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { startProvider, type Provider } from "./support/provider.js"
import { modelName, vercelModels } from "./support/vercelModels.js"

let provider: Provider
beforeEach(async () => {
  provider = await startProvider()
})
afterEach(() => provider.close())

const prompt = "How much?"
const asking = { prompt, maxOutputTokens: 50 }
const failureOf = <A>(call: Effect.Effect<A, ModelError>): Promise<ModelError> => Effect.runPromise(Effect.flip(call))

describe.each(vercelModels)("a model of %s", (_, connect) => {
  const model = () => VercelModel.make(connect(provider.url))

  it("is asked once, and answers with text and usage", async () => {
    provider.willReply({ kind: "answer", inputTokens: 100, cachedInputTokens: 40, outputTokens: 7 })
    const answer = await Effect.runPromise(model().generateText(asking))
    expect(answer).toMatchObject({ text: "Two words.", finishReason: "stop" })
    expect(answer.usage).toMatchObject({
      inputTokens: 100,
      outputTokens: 7,
      inputTokenDetails: { cacheReadTokens: 40 },
    })
    expect(provider.asked).toHaveLength(1)
    expect(provider.asked[0]!.text).toContain(prompt)
  })

  it("streams, and gives the whole answer", async () => {
    provider.willReply({ kind: "answer", text: "one two three", inputTokens: 30, outputTokens: 3 })
    const answer = await Effect.runPromise(model().streamText(asking))
    expect(answer).toMatchObject({ text: "one two three", finishReason: "stop" })
    expect(answer.usage).toMatchObject({ inputTokens: 30, outputTokens: 3 })
  })

  it("says where its answer was cut off", async () => {
    provider.willReply(
      { kind: "answer", text: "half an", isCut: true },
      { kind: "answer", text: "half an", isCut: true },
    )
    const cut = { text: "half an", finishReason: "length" }
    expect(await Effect.runPromise(model().generateText(asking))).toMatchObject(cut)
    expect(await Effect.runPromise(model().streamText(asking))).toMatchObject(cut)
  })

  it.each([
    ["an object", '{"cents":12}', { cents: 12 }],
    ["an object that does not fit", '{"cents":"twelve"}', { cents: "twelve" }],
  ])("gives %s to the gate as it said it", async (_case, text, raw) => {
    provider.willReply({ kind: "answer", text })
    const schema = Schema.Struct({ cents: Schema.Int })
    expect((await Effect.runPromise(model().generateObject({ ...asking, schema }))).raw).toEqual(raw)
    // The provider was told what is wanted.
    expect(JSON.stringify(provider.asked[0]!.body)).toContain('"cents":{"type":"integer"')
  })

  it.each([
    ["prose", { text: "About twelve cents." }],
    ["an object that is cut off", { text: '{"cents":1', isCut: true }],
    ["nothing", { text: "" }],
  ])("gives the text of an answer that is %s to the gate", async (_case, said) => {
    provider.willReply({ kind: "answer", ...said })
    const output = await Effect.runPromise(
      model().generateObject({ ...asking, schema: Schema.Struct({ cents: Schema.Int }) }),
    )
    expect(output.raw).toMatchObject({ text: said.text })
  })

  const statuses = [
    [400, { reason: "Refused", isRetryable: false, isFree: true }],
    [401, { reason: "Refused", isRetryable: false, isFree: true }],
    [404, { reason: "Refused", isRetryable: false, isFree: true }],
    [408, { reason: "Unavailable", isRetryable: true, isFree: false }],
    [409, { reason: "Unavailable", isRetryable: true, isFree: false }],
    [429, { reason: "RateLimited", isRetryable: true, isFree: true }],
    [500, { reason: "Unavailable", isRetryable: true, isFree: false }],
    [529, { reason: "Unavailable", isRetryable: true, isFree: false }],
  ] as const

  it.each(statuses)("is refused with status %i, and not asked again", async (status, verdict) => {
    provider.willReply({ kind: "status", status, problem: "not like this" })
    const error = await failureOf(model().generateText(asking))
    expect(error).toMatchObject({ _tag: "ModelError", model: modelName, status, retryAfterMs: 0, ...verdict })
    expect(error.message).toContain("not like this")
    expect(provider.asked).toHaveLength(1)
  })

  it("is refused a stream with its status, too", async () => {
    provider.willReply({ kind: "status", status: 429, headers: { "retry-after": "7" } })
    const error = await failureOf(model().streamText(asking))
    expect(error).toMatchObject({ reason: "RateLimited", status: 429, isFree: true, retryAfterMs: 7_000 })
  })

  it.each([
    ["seconds", { "retry-after": "7" }, 7_000, 7_000],
    ["milliseconds, which are finer", { "retry-after": "7", "retry-after-ms": "6400.5" }, 6_401, 6_401],
    ["a date", { "retry-after": new Date(Date.now() + 600_000).toUTCString() }, 590_000, 600_000],
    ["what is neither", { "retry-after": "soon", "retry-after-ms": "later" }, 0, 0],
  ])("says when to ask again, in %s", async (_case, headers, from, to) => {
    provider.willReply({ kind: "status", status: 429, headers })
    const { retryAfterMs } = await failureOf(model().generateText(asking))
    expect(retryAfterMs).toBeGreaterThanOrEqual(from)
    expect(retryAfterMs).toBeLessThanOrEqual(to)
  })

  it("fails where the answer is no JSON", async () => {
    provider.willReply({ kind: "malformed" })
    const error = await failureOf(model().generateText(asking))
    expect(error).toMatchObject({ reason: "BadAnswer", isRetryable: true, isFree: false })
  })

  it("fails where the connection breaks", async () => {
    provider.willReply({ kind: "breaks", how: "reset" }, { kind: "breaks", how: "reset" })
    const broken = { reason: "Unreachable", isRetryable: true, isFree: false }
    expect(await failureOf(model().generateText(asking))).toMatchObject(broken)
    expect(await failureOf(model().streamText(asking))).toMatchObject(broken)
  })

  it.each(["end", "malformed"] as const)("does not take half a stream for an answer (%s)", async (how) => {
    provider.willReply(how === "end" ? { kind: "breaks", how } : { kind: "malformed" })
    const error = await failureOf(model().streamText(asking))
    expect(error).toMatchObject({ isRetryable: true, isFree: false })
    expect(["BadAnswer", "Unavailable"]).toContain(error.reason)
  })

  it.each(["generateText", "streamText"] as const)("lets go of the provider when %s is interrupted", async (method) => {
    provider.willReply({ kind: "hangs" })
    const fiber = Effect.runFork(model()[method](asking))
    await provider.asksReached(1)
    await Effect.runPromise(Fiber.interrupt(fiber))
    await provider.abandoned
    expect(provider.asked).toHaveLength(1)
  })

  it("costs nothing where nobody listens", async () => {
    const gone = model()
    await provider.close()
    expect(await failureOf(gone.generateText(asking))).toMatchObject({ reason: "Unreachable", isFree: true })
  })
})
