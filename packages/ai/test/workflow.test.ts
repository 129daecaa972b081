/** Runs whose steps ask a provider on this machine: what is recorded is what the provider has billed. */
import { EffectModel } from "@cairn/ai/effect"
import { VercelModel } from "@cairn/ai/vercel"
import { Cairn, CheckpointStore, Effects, fromDriver, MemoryDriver, Workflow } from "@cairn/core"
import type { AnyWorkflow, CairnClient, CallRow, CheckpointDriver, RejectedOutput, Unvalidated } from "@cairn/core"
import { LanguageModel } from "@effect/ai"
import { Effect, Layer, Schema } from "effect"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { effectModels } from "./support/effectModels.js"
import { startProvider, type Provider } from "./support/provider.js"
import { modelName, vercelModels } from "./support/vercelModels.js"

const Invoice = Schema.Struct({ cents: Schema.Int })
const maxOutputTokens = 50

const promptOf = (input: string, rejected: RejectedOutput | null): string =>
  rejected === null ? input : `${input}\nYour last answer was refused: ${rejected.issues}`

const options = {
  output: Invoice,
  retry: { times: 3, delay: "1 millis" },
  timeout: "10 seconds",
  onInvalid: { retries: 2, then: "review" },
} as const

/** The same step for either kind of model. */
const vercelInvoice = (timeout: "10 seconds" | "300 millis") =>
  Workflow.make("invoice", { version: 1, input: Schema.String })
    .step("extract", { ...options, timeout, effects: [Effects.read(VercelModel)] }, function* ({ input, rejected }) {
      const model = yield* VercelModel
      return yield* model.generateObject({ prompt: promptOf(input, rejected), schema: Invoice, maxOutputTokens })
    })
    .output(Schema.Int, ({ results }) => results.extract.cents)
    .compile()

const effectInvoice = (timeout: "10 seconds" | "300 millis") =>
  Workflow.make("invoice", { version: 1, input: Schema.String })
    .step(
      "extract",
      { ...options, timeout, effects: [Effects.read(LanguageModel.LanguageModel)] },
      ({ input, rejected }) => EffectModel.generateObject({ prompt: promptOf(input, rejected), schema: Invoice }),
    )
    .output(Schema.Int, ({ results }) => results.extract.cents)
    .compile()

type Invoices = ReturnType<typeof vercelInvoice> | ReturnType<typeof effectInvoice>

const kinds: ReadonlyArray<
  readonly [string, typeof vercelInvoice | typeof effectInvoice, (url: string) => Layer.Layer<any>]
> = [
  ...vercelModels.map(
    ([title, connect]) => [title, vercelInvoice, (url: string) => VercelModel.layer(connect(url))] as const,
  ),
  ...effectModels.map(([title, connect]) => [title, effectInvoice, connect] as const),
]

let provider: Provider
let driver: CheckpointDriver
let cairn: CairnClient | undefined
beforeEach(async () => {
  provider = await startProvider()
  driver = await Effect.runPromise(MemoryDriver.make())
})
afterEach(async () => {
  await cairn?.close()
  cairn = undefined
  await provider.close()
})

const open = async (workflow: AnyWorkflow, handlers: Layer.Layer<any>): Promise<CairnClient> => {
  const store = Layer.succeed(CheckpointStore, fromDriver(driver))
  cairn = (await Cairn.open({
    store,
    workflows: [workflow],
    handlers,
    prices: { "test-model": { input: 2, cachedInput: 1, output: 8 } },
  } as never)) as CairnClient
  return cairn
}

const runId = "INV-1"

const calls = (): Promise<ReadonlyArray<CallRow>> =>
  Effect.runPromise(driver.listCalls({ namespace: "default", runId, after: null, limit: 100 }))

const tokensOf = (rows: ReadonlyArray<Pick<CallRow, "inputTokens" | "outputTokens" | "cachedInputTokens">>) =>
  rows.map(({ inputTokens, cachedInputTokens, outputTokens }) => ({ inputTokens, cachedInputTokens, outputTokens }))

/** By the prices above, from the provider's own book. */
const bill = (): number =>
  provider.billed.reduce(
    (sum, { inputTokens, cachedInputTokens, outputTokens }) =>
      sum + 2 * (inputTokens - cachedInputTokens) + cachedInputTokens + 8 * outputTokens,
    0,
  )

const recorded = async (): Promise<number> =>
  (await cairn!.cost({ by: "run", runId })).reduce((sum, { microDollars }) => sum + microDollars, 0)

describe.each(kinds)("a run that asks %s", (title, make, layer) => {
  /** Effect's client for Claude has a tool called, and keeps nothing of what is said beside that. */
  const prose = (text: string): string => (title === "Effect's client for Anthropic" ? "" : text)

  const start = async (workflow: Invoices = make("10 seconds")) => {
    const client = await open(workflow, layer(provider.url))
    return client.start(workflow as ReturnType<typeof vercelInvoice>, "How much?", { runId })
  }

  it("asks again with what was wrong, and pays for each answer", async () => {
    provider.willReply(
      { kind: "answer", text: '{"cents":"twelve"}', inputTokens: 20, outputTokens: 5 },
      { kind: "answer", text: "Twelve.", inputTokens: 40, cachedInputTokens: 16, outputTokens: 3 },
      { kind: "answer", text: '{"cents":12}', inputTokens: 50, outputTokens: 4 },
    )
    expect(await (await start()).result()).toBe(12)
    const [first, second, third] = provider.asked.map(({ text }) => text)
    expect(first).not.toContain("refused")
    expect(second).toMatch(/refused: .*twelve/s)
    expect(third).toContain("no JSON")
    expect(third).toContain(prose("Twelve."))
    const rows = await calls()
    expect(rows.map(({ attempt, state, outcome }) => [attempt, state, outcome])).toEqual([
      [1, "known", "rejected"],
      [2, "known", "rejected"],
      [3, "known", "kept"],
    ])
    expect(tokensOf(rows)).toEqual(tokensOf(provider.billed))
    expect(await recorded()).toBe(bill())
  })

  it("stops asking a model that never answers as it should (field cases P095, P096, P097)", async () => {
    const answers = ['{"passed":"true"}', '{"cents":12', '{"cents":12} That is all.', '{"cents":12}']
    provider.willReply(...answers.map((text) => ({ kind: "answer", text }) as const))
    await expect((await start()).result()).rejects.toMatchObject({ _tag: "RunParked", reason: "OutputInvalid" })
    expect(provider.asked).toHaveLength(3)
    expect((await calls()).map(({ outcome }) => outcome)).toEqual(["rejected", "rejected", "rejected"])
    expect(await recorded()).toBe(bill())
    // A person sees each answer as it was given, and no step has it for an output.
    const { attempts } = await Effect.runPromise(driver.loadOpen("default", runId, ["extract"]))
    expect(attempts.map(({ output }) => JSON.parse(output ?? "null"))).toEqual([
      { passed: "true" },
      prose('{"cents":12'),
      prose('{"cents":12} That is all.'),
    ])
    expect((await Effect.runPromise(driver.load("default", runId)))?.steps).toEqual([])
  })

  it("asks again when it may, and pays once", async () => {
    provider.willReply(
      { kind: "status", status: 429, headers: { "retry-after": "1" } },
      { kind: "answer", text: '{"cents":12}' },
    )
    expect(await (await start()).result()).toBe(12)
    const [refused, answered] = provider.asked.map(({ at }) => at)
    expect(answered! - refused!).toBeGreaterThanOrEqual(1_000)
    const rows = await calls()
    expect(rows.map(({ state, microDollars }) => [state, microDollars])).toEqual([
      ["known", 0],
      ["known", bill()],
    ])
  })

  it("does not know what a call has cost that took too long, and asks again", async () => {
    provider.willReply({ kind: "hangs" }, { kind: "answer", text: '{"cents":12}' })
    expect(await (await start(make("300 millis"))).result()).toBe(12)
    await provider.abandoned
    expect(await cairn!.cost({ by: "run", runId })).toMatchObject([{ calls: 2, unknown: 1 }])
    expect((await calls()).map(({ state, microDollars }) => [state, microDollars === null])).toEqual([
      ["unknown", true],
      ["known", false],
    ])
  })

  it("does not ask again where that would be in vain", async () => {
    provider.willReply({ kind: "status", status: 401 })
    await expect((await start()).result()).rejects.toMatchObject({ _tag: "RunFailed", step: "extract" })
    expect(provider.asked).toHaveLength(1)
    expect(await recorded()).toBe(0)
  })

  it("records the model's name and price", async () => {
    provider.willReply({ kind: "answer", text: '{"cents":12}' })
    await (await start()).result()
    expect((await calls()).map(({ model, step }) => [model, step])).toEqual([[modelName, "extract"]])
    expect(await recorded()).toBe(bill())
    expect(bill()).toBeGreaterThan(0)
  })
})

describe("a step that fails after its answer", () => {
  it("has paid for it each time (field case P117)", async () => {
    let attempts = 0
    const failing = Workflow.make("failing", { version: 1, input: Schema.String })
      .step(
        "ask",
        { effects: [Effects.read(VercelModel)], output: Schema.String, retry: { times: 2, delay: "1 millis" } },
        function* ({ input }) {
          const { text } = yield* (yield* VercelModel).generateText({ prompt: input, maxOutputTokens })
          if ((attempts += 1) < 3) return yield* Effect.fail(new Error("after the answer"))
          return text
        },
      )
      .output(Schema.String, ({ results }) => results.ask)
      .compile()
    provider.willReply(
      { kind: "answer", inputTokens: 5 },
      { kind: "answer", inputTokens: 7 },
      { kind: "answer", inputTokens: 8 },
    )
    const client = await open(failing, VercelModel.layer(vercelModels[0][1](provider.url)))
    expect(await (await client.start(failing, "?", { runId })).result()).toBe("Two words.")
    expect((await calls()).map(({ attempt, inputTokens, outcome }) => [attempt, inputTokens, outcome])).toEqual([
      [1, 5, "failed"],
      [2, 7, "failed"],
      [3, 8, "kept"],
    ])
    expect(await recorded()).toBe(bill())
  })
})

describe("a step that streams", () => {
  it("shows the words while they come, and is paid for once", async () => {
    const writing = Workflow.make("writing", { version: 1, input: Schema.String })
      .step("write", { effects: [Effects.read(VercelModel)], output: Schema.String }, function* ({ input }) {
        return (yield* (yield* VercelModel).streamText({ prompt: input, maxOutputTokens })).text
      })
      .output(Schema.String, ({ results }) => results.write)
      .compile()
    provider.willReply({ kind: "answer", text: "one two three" })
    const client = await open(writing, VercelModel.layer(vercelModels[1][1](provider.url)))
    const run = await client.start(writing, "?", { runId })
    const seen: Array<unknown> = []
    for await (const event of run.live()) seen.push(event)
    expect(await run.result()).toBe("one two three")
    expect(JSON.stringify(seen)).toMatch(/one .*two .*three/)
    expect(await recorded()).toBe(bill())
  })
})

describe("a budget without room", () => {
  const prompt = "How much?"
  const asking = Workflow.make("asking", {
    version: 1,
    input: Schema.Literal("text", "object", "stream"),
    // Less than the 50 tokens of an answer cost.
    budget: { run: 399 },
  })
    .step("ask", { effects: [Effects.read(VercelModel)], output: Schema.String }, function* ({ input }) {
      const model = yield* VercelModel
      if (input === "text") return (yield* model.generateText({ prompt, maxOutputTokens })).text
      if (input === "stream") return (yield* model.streamText({ prompt, maxOutputTokens })).text
      return yield* model.generateObject({ prompt, maxOutputTokens, schema: Invoice })
    })
    .compile()
  const effectAsking = Workflow.make("asking", {
    version: 1,
    input: Schema.Literal("text", "object", "stream"),
    budget: { run: 399 },
  })
    .step(
      "ask",
      { effects: [Effects.read(LanguageModel.LanguageModel)], output: Schema.String },
      ({ input }): Effect.Effect<string | Unvalidated, unknown, LanguageModel.LanguageModel> => {
        if (input === "text") return Effect.map(LanguageModel.generateText({ prompt }), ({ text }) => text)
        return input === "stream"
          ? EffectModel.streamText({ prompt })
          : EffectModel.generateObject({ prompt, schema: Invoice })
      },
    )
    .compile()

  it.each(["text", "object", "stream"] as const)("has no %s of the AI SDK asked for", async (input) => {
    const client = await open(asking, VercelModel.layer(vercelModels[2][1](provider.url)))
    const run = await client.start(asking, input, { runId })
    await expect(run.result()).rejects.toMatchObject({ _tag: "RunParked", reason: "BudgetExceeded" })
    expect(provider.asked).toEqual([])
  })

  it.each(["text", "object", "stream"] as const)("has no %s of Effect asked for", async (input) => {
    const client = await open(effectAsking, effectModels[0][1](provider.url))
    const run = await client.start(effectAsking, input, { runId })
    await expect(run.result()).rejects.toMatchObject({ _tag: "RunParked", reason: "BudgetExceeded" })
    expect(provider.asked).toEqual([])
  })
})
