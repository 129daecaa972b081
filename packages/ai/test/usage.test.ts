/** What is recorded of a call, against the book of the provider that was called. */
import { EffectModel } from "@cairn/ai/effect"
import { VercelModel } from "@cairn/ai/vercel"
import type { UsageAmounts } from "@cairn/core"
import { LanguageModel } from "@effect/ai"
import { Effect, Fiber, Schema, Stream, type Layer } from "effect"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { effectModels } from "./support/effectModels.js"
import { recordingCalls } from "./support/paidCalls.js"
import { startProvider, type Provider, type Reply } from "./support/provider.js"
import { modelName, vercelModels } from "./support/vercelModels.js"

const prompt = "How much?"
const maxOutputTokens = 50
const schema = Schema.Struct({ cents: Schema.Int })

interface Calls {
  readonly text: Effect.Effect<unknown, unknown>
  readonly object: Effect.Effect<unknown, unknown>
  readonly stream: Effect.Effect<unknown, unknown>
}

const vercelCalls = (model: ReturnType<typeof VercelModel.make>): Calls => ({
  text: model.generateText({ prompt, maxOutputTokens }),
  object: model.generateObject({ prompt, maxOutputTokens, schema }),
  stream: model.streamText({ prompt, maxOutputTokens }),
})

const effectCalls = (model: Layer.Layer<LanguageModel.LanguageModel>): Calls => {
  const provided = <A, E>(call: Effect.Effect<A, E, LanguageModel.LanguageModel>) => Effect.provide(call, model)
  return {
    text: provided(LanguageModel.generateText({ prompt })),
    // Effect's own: it fails where the answer does not fit.
    object: provided(LanguageModel.generateObject({ prompt, schema })),
    stream: provided(EffectModel.streamText({ prompt })),
  }
}

const clients: ReadonlyArray<readonly [string, (url: string) => Calls]> = [
  ...vercelModels.map(
    ([title, connect]) => [title, (url: string) => vercelCalls(VercelModel.make(connect(url)))] as const,
  ),
  ...effectModels.map(([title, connect]) => [title, (url: string) => effectCalls(connect(url))] as const),
]

let provider: Provider
beforeEach(async () => {
  provider = await startProvider()
})
afterEach(() => provider.close())

const known = (told: UsageAmounts | null): UsageAmounts =>
  Object.fromEntries(Object.entries(told ?? {}).filter(([, amount]) => amount !== undefined))

describe.each(clients)("a call of %s", (_, connect) => {
  const make = async (call: keyof Calls, ...replies: ReadonlyArray<Reply>) => {
    const { calls, emitted, inStep } = recordingCalls()
    provider.willReply(...replies)
    for (const _reply of replies) await Effect.runPromise(inStep(Effect.exit(connect(provider.url)[call])))
    return { calls, emitted, told: calls.map(({ told }) => told) }
  }

  it.each([
    ["text", { text: "twelve" }],
    ["text", { text: "twel", isCut: true }],
    ["stream", { text: "one two three" }],
    ["stream", { text: "one two", isCut: true }],
    ["object", { text: '{"cents":12}' }],
    ["object", { text: '{"cents":"twelve"}' }],
    ["object", { text: "About twelve." }],
    ["object", { text: '{"cen', isCut: true }],
  ] as const)("records what is billed for a %s: %o", async (call, said) => {
    const { calls } = await make(call, {
      kind: "answer",
      inputTokens: 100,
      cachedInputTokens: 64,
      outputTokens: 7,
      ...said,
    })
    expect(calls.map(({ told, model }) => ({ model, ...known(told) }))).toEqual(provider.billed)
  })

  it("records the model by the name that it was given", async () => {
    const { calls } = await make("text", { kind: "answer" })
    expect(calls.map(({ model }) => model)).toEqual([modelName])
  })

  it.each([400, 401, 403, 404, 422, 429])("records that a call refused with %i has cost nothing", async (status) => {
    const refused = { kind: "status", status } as const
    expect((await make("text", refused)).told).toEqual([{ microDollars: 0 }])
    expect((await make("stream", refused)).told).toEqual([{ microDollars: 0 }])
    expect(provider.billed).toEqual([])
  })

  it.each([408, 409, 500, 503, 529])("does not know what a call answered with %i has cost", async (status) => {
    const failed = { kind: "status", status } as const
    expect((await make("text", failed)).told).toEqual([null])
    expect((await make("stream", failed)).told).toEqual([null])
  })

  it("does not know what an answer has cost that never came whole", async () => {
    const broken: ReadonlyArray<Reply> = [{ kind: "malformed" }, { kind: "breaks", how: "reset" }]
    expect((await make("text", ...broken)).told).toEqual([null, null])
    const { told } = await make("stream", ...broken, { kind: "breaks", how: "end" })
    // A client that puts the lost counts of a broken stream at nothing must not make it known.
    expect(told.map(known)).toEqual([{}, {}, {}])
    expect(provider.billed).toHaveLength(5)
  })

  it.each(["text", "stream"] as const)("does not know what a %s has cost that was given up", async (call) => {
    const { calls, inStep } = recordingCalls()
    provider.willReply({ kind: "hangs" })
    const fiber = Effect.runFork(inStep(connect(provider.url)[call]))
    await provider.asksReached(1)
    await Effect.runPromise(Fiber.interrupt(fiber))
    expect(calls.map(({ told }) => told)).toEqual([null])
  })

  it("emits a stream's words as they come", async () => {
    const { emitted } = await make("stream", { kind: "answer", text: "one two three" })
    expect(emitted).toEqual(["one ", "two ", "three"])
  })

  it("says what it can use at most, and no answer uses more", async () => {
    const { calls } = await make("object", { kind: "answer", text: '{"cents":12}' })
    const [{ atMost }] = calls as [(typeof calls)[number]]
    expect(atMost?.outputTokens).toBe(maxOutputTokens)
    // Bytes of the prompt, and a thousand for what the provider adds because of the schema.
    expect(atMost?.inputTokens).toBeGreaterThan(1_000 + prompt.length)
    expect(atMost?.inputTokens).toBeLessThan(1_500)
  })
})

describe("what a call can use at most", () => {
  const model = () => VercelModel.make(vercelModels[3][1](provider.url))

  const mostOf = async (options: Parameters<ReturnType<typeof model>["generateText"]>[0]) => {
    const { calls, inStep } = recordingCalls()
    provider.willReply({ kind: "answer" })
    await Effect.runPromise(inStep(Effect.exit(model().generateText(options))))
    return calls.map(({ atMost }) => atMost)
  }

  it("counts bytes, not characters", async () => {
    const [plain] = await mostOf({ prompt: "e".repeat(100), maxOutputTokens })
    const [accented] = await mostOf({ prompt: "é".repeat(100), maxOutputTokens })
    expect(accented!.inputTokens! - plain!.inputTokens!).toBe(100)
  })

  it("counts the system prompt and each message", async () => {
    const [one] = await mostOf({ prompt: "12345", maxOutputTokens })
    const [more] = await mostOf({
      system: "x".repeat(200),
      messages: [
        { role: "user", content: "12345" },
        { role: "assistant", content: [{ type: "text", text: "y".repeat(300) }] },
        { role: "user", content: "12345" },
      ],
      maxOutputTokens,
    })
    expect(more!.inputTokens! - one!.inputTokens!).toBeGreaterThan(500)
  })

  it("is unknown without a limit of the answer", async () => {
    expect(await mostOf({ prompt })).toEqual([undefined])
  })

  it("is unknown where the prompt holds an image", async () => {
    const content = [{ type: "image", image: new Uint8Array([137, 80, 78, 71]) }] as const
    expect(await mostOf({ messages: [{ role: "user", content: [...content] }], maxOutputTokens })).toEqual([undefined])
  })

  it("holds the tokens that Claude may think with", async () => {
    const thinking = { type: "enabled", budgetTokens: 1_024 } as const
    const [most] = await mostOf({ prompt, maxOutputTokens, providerOptions: { anthropic: { thinking } } })
    expect(most!.outputTokens).toBe(maxOutputTokens + 1_024)
    // As many as the provider was allowed to use.
    expect(provider.asked.at(-1)!.body["max_tokens"]).toBe(maxOutputTokens + 1_024)
  })
})

describe.each(effectModels)("a stream of %s that is read by hand", (_, connect) => {
  it("is one call, however it is read", async () => {
    const { calls, inStep } = recordingCalls()
    provider.willReply({ kind: "answer", inputTokens: 30, outputTokens: 3 })
    const read = Stream.runDrain(LanguageModel.streamText({ prompt }))
    await Effect.runPromise(Effect.provide(inStep(read), connect(provider.url)))
    expect(calls.map(({ told }) => told)).toMatchObject([{ inputTokens: 30, outputTokens: 3 }])
  })

  it("is given up with its reader", async () => {
    const { calls, inStep } = recordingCalls()
    provider.willReply({ kind: "hangs" })
    const read = Stream.runDrain(LanguageModel.streamText({ prompt }))
    const fiber = Effect.runFork(Effect.provide(inStep(read), connect(provider.url)))
    await provider.asksReached(1)
    await Effect.runPromise(Fiber.interrupt(fiber))
    await provider.abandoned
    expect(calls.map(({ told }) => told)).toEqual([null])
  })
})

describe.each(clients.filter(([client]) => client.includes("Anthropic")))("a call of %s", (_, connect) => {
  it("tells what was written to the cache, which is among the tokens of the input", async () => {
    const usage = { inputTokens: 100, cachedInputTokens: 64, cacheWriteTokens: 30, outputTokens: 7 }
    for (const call of ["text", "stream"] as const) {
      const { calls, inStep } = recordingCalls()
      provider.willReply({ kind: "answer", ...usage })
      await Effect.runPromise(inStep(Effect.exit(connect(provider.url)[call])))
      expect(calls.map(({ told }) => told)).toEqual([usage])
    }
  })
})
