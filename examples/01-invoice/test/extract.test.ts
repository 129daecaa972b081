import { afterEach, beforeEach, describe, expect, it } from "@effect/vitest"
import { Effect, Either, ParseResult, Schema } from "effect"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { createServer, type IncomingMessage, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Extractor, extractorLayer } from "../src/extract.js"
import { engineFrom, rules } from "../src/extractors/choose.js"
import { atMost, logged, maxOutputTokens, type Engine, type ModelEntry } from "../src/extractors/engine.js"
import { readByRules } from "../src/extractors/rules.js"
import { invoiceFolder, readInbox } from "../src/inbox.js"
import { Invoice } from "../src/invoice.js"
import { openJournal, readJournal } from "../src/providers/journal.js"

const textOf = (file: string): string => readFileSync(`${invoiceFolder}${file}`, "utf8")

const read = (text: string): Invoice => Schema.decodeUnknownSync(Invoice)(readByRules(text))

const problemWith = (raw: unknown): string =>
  Either.match(Schema.decodeUnknownEither(Invoice)(raw), {
    onLeft: (error) => ParseResult.ArrayFormatter.formatErrorSync(error)[0]?.message ?? "",
    onRight: () => "none",
  })

const expected: Record<string, Invoice> = {
  "RE-2026-0815.txt": {
    number: "RE-2026-0815",
    seller: "Kessler Werkzeugbau GmbH",
    customer: "Möbelwerke Ostalb AG",
    issuedOn: "2026-11-03",
    dueOn: "2026-11-17",
    currency: "EUR",
    lines: [
      { description: "Schaftfräser HSS-E, 12 mm", quantity: 8, unitCents: 2490, totalCents: 19920 },
      { description: "Wartung CNC-Fräse, Pauschale", quantity: 1, unitCents: 118000, totalCents: 118000 },
      { description: "Anfahrt, je km", quantity: 164, unitCents: 55, totalCents: 9020 },
    ],
    netCents: 146940,
    vatPercent: 19,
    vatCents: 27919,
    totalCents: 174859,
  },
  "INV-20417.txt": {
    number: "INV-20417",
    seller: "Northwind Hosting Ltd",
    customer: "Harrow & Finch LLP",
    issuedOn: "2026-11-05",
    dueOn: "2026-12-05",
    currency: "GBP",
    lines: [
      { description: "Managed server, monthly", quantity: 12, unitCents: 12900, totalCents: 154800 },
      { description: "TLS certificate, wildcard, 1 year", quantity: 3, unitCents: 8450, totalCents: 25350 },
      { description: "Support hours", quantity: 6.5, unitCents: 9500, totalCents: 61750 },
    ],
    netCents: 241900,
    vatPercent: 20,
    vatCents: 48380,
    totalCents: 290280,
  },
  "CH-2291.txt": {
    number: "CH-2291",
    seller: "Alpenblick Beratung",
    customer: "Seilbahnen Piz Mundaun AG",
    issuedOn: "2026-11-09",
    dueOn: "2026-12-09",
    currency: "CHF",
    lines: [
      { description: "Sicherheitskonzept Bergstation", quantity: 14, unitCents: 19000, totalCents: 266000 },
      { description: "Fachbericht Lawinenlage (pauschal)", quantity: 1, unitCents: 135000, totalCents: 135000 },
      { description: "Bahnspesen Chur – Ilanz", quantity: 4, unitCents: 1235, totalCents: 4940 },
    ],
    netCents: 405940,
    vatPercent: 8.1,
    vatCents: 32881,
    totalCents: 438821,
  },
}

describe("the rules", () => {
  it("are tried on every text in the folder", () => {
    expect(
      readInbox()
        .map(({ file }) => file)
        .sort(),
    ).toEqual(Object.keys(expected).sort())
  })

  it.each(Object.keys(expected))("read %s", (file) => {
    expect(read(textOf(file))).toEqual(expected[file])
  })

  it("follow the text: another amount, another day, another number", () => {
    const changed = textOf("INV-20417.txt")
      .replace("6.5 x Support hours @ £95.00 = £617.50", "2 x Support hours @ £1,095.25 = £2,190.50")
      .replace("£2,419.00", "£3,992.00")
      .replace("£483.80", "£798.40")
      .replace("£2,902.80", "£4,790.40")
      .replace("Due:         5 December 2026", "Due:         2027-01-31")
      .replace("INV-20417", "INV-20418")
    expect(read(changed)).toMatchObject({
      number: "INV-20418",
      dueOn: "2027-01-31",
      netCents: 399200,
      totalCents: 479040,
    })
    expect(read(changed).lines[2]).toEqual({
      description: "Support hours",
      quantity: 2,
      unitCents: 109525,
      totalCents: 219050,
    })
  })

  it("leave what they do not find to the schema, which names it", () => {
    expect(problemWith(readByRules("Dear Sir or Madam, please find our invoice attached."))).toContain("null")
    expect(problemWith(readByRules(textOf("CH-2291.txt").replace("Zahlbar bis", "Gern bis")))).toContain("null")
  })
})

describe("the gate", () => {
  const good = expected["RE-2026-0815.txt"]!

  it.each<[string, unknown, string]>([
    ["a line that does not multiply", { ...good, lines: [{ ...good.lines[0], quantity: 9 }] }, "9 times 2490"],
    ["lines that do not add up", { ...good, lines: good.lines.slice(1) }, "add up to 127020"],
    ["VAT that is not the rate's", { ...good, vatPercent: 7 }, "7 % of 146940"],
    ["a total that is not net and VAT", { ...good, totalCents: 17485900 }, "are not 17485900"],
    ["a due day before the day of issue", { ...good, dueOn: "2026-11-02" }, "before it was issued"],
    ["a day in another notation", { ...good, dueOn: "17.11.2026" }, "2026-11-17"],
    ["no lines", { ...good, lines: [] }, "at least 1"],
    ["an unknown currency", { ...good, currency: "XAU" }, "XAU"],
  ])("refuses %s", (_, raw, words) => {
    expect(problemWith(raw)).toContain(words)
  })
})

describe("the extractor", () => {
  const extract = (engine: Engine, text: string) =>
    Effect.flatMap(Extractor, (extractor) => extractor.extract(text)).pipe(Effect.provide(extractorLayer(engine)))

  it.scoped("logs each call before it is made, also one that fails", () =>
    Effect.gen(function* () {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "cairn-extract-"))),
        (made) => Effect.sync(() => rmSync(made, { recursive: true, force: true })),
      )
      const logFile = join(folder, "model.log.jsonl")
      const log = openJournal<ModelEntry>(logFile)
      yield* extract(logged(rules, log), textOf("CH-2291.txt"))
      const broken: Engine = {
        ...{ name: "broken", model: "none", isEstimate: false },
        read: () => {
          expect(readJournal<ModelEntry>(logFile)).toHaveLength(3)
          return Promise.reject(new Error("overloaded"))
        },
      }
      const error = yield* Effect.flip(extract(logged(broken, log), "abc"))
      expect(error).toMatchObject({ _tag: "ModelError", isRetryable: true, problem: "overloaded" })
      const refused = Object.assign(new Error("no key"), { statusCode: 401 })
      const refusing: Engine = { ...broken, read: () => Promise.reject(refused) }
      yield* Effect.flip(extract(logged(refusing, log), "abc"))
      expect(readJournal<ModelEntry>(logFile)).toMatchObject([
        { entry: "asked", engine: "rules", process: process.pid },
        { entry: "billed", model: "gpt-4.1-mini", isEstimate: true, microDollars: expect.any(Number) },
        { entry: "asked", engine: "broken" },
        { entry: "asked", engine: "broken" },
        { entry: "billed", microDollars: 0 },
      ])
    }),
  )

  it("of rules estimates what a model would have billed, from the text and the answer", async () => {
    const text = textOf("CH-2291.txt")
    const { invoice, usage } = await rules.read(text)
    expect(usage).toEqual({
      inputTokens: Math.ceil(text.length / 4),
      outputTokens: Math.ceil(JSON.stringify(invoice).length / 4),
    })
    expect(usage.inputTokens).toBeLessThan(atMost(text).inputTokens!)
  })

  it("takes the rules where no key is in the environment", async () => {
    expect((await engineFrom({})).name).toBe("rules")
  })
})

describe("the language model", () => {
  let server: Server
  let url: string
  let asked: Array<string>
  let reply: () => { readonly status: number; readonly body: unknown }

  const readAll = async (request: IncomingMessage): Promise<string> => {
    let text = ""
    for await (const chunk of request) text += String(chunk)
    return text
  }

  beforeEach(async () => {
    asked = []
    server = createServer((request, response) => {
      void readAll(request).then((body) => {
        asked.push(body)
        const { status, body: answer } = reply()
        response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(answer))
      })
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  })

  afterEach(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })

  const answer = expected["INV-20417.txt"]!

  const openAiReply = (text: string) => ({
    id: "resp_1",
    created_at: 1,
    model: "gpt-4.1-mini",
    output: [
      { type: "message", role: "assistant", id: "msg_1", content: [{ type: "output_text", text, annotations: [] }] },
    ],
    usage: { input_tokens: 310, output_tokens: 120 },
  })

  const anthropicReply = (input: unknown) => ({
    type: "message",
    id: "msg_1",
    model: "claude-haiku-4-5",
    role: "assistant",
    content: [{ type: "text", text: JSON.stringify(input) }],
    stop_reason: "end_turn",
    usage: { input_tokens: 310, output_tokens: 120 },
  })

  const openAi = () => engineFrom({ OPENAI_API_KEY: "key-of-a-test", OPENAI_BASE_URL: url })

  it("of OpenAI is asked with the schema and the text", async () => {
    reply = () => ({ status: 200, body: openAiReply(JSON.stringify(answer)) })
    const engine = await openAi()
    expect(engine.name).toBe("openai:gpt-4.1-mini")
    const reading = await engine.read(textOf("INV-20417.txt"))
    expect(reading).toMatchObject({ invoice: answer, usage: { inputTokens: 310, outputTokens: 120 } })
    expect(asked).toHaveLength(1)
    expect(asked[0]).toContain("Harrow & Finch LLP")
    expect(asked[0]).toContain("vatPercent")
    // What the budget is told of it before the call holds.
    expect(asked[0]).toContain(`tokens":${maxOutputTokens}`)
    expect(asked[0]!.length).toBeLessThan(atMost(textOf("INV-20417.txt")).inputTokens!)
  })

  it("of Anthropic is asked with the schema and the text", async () => {
    reply = () => ({ status: 200, body: anthropicReply(answer) })
    const engine = await engineFrom({
      ANTHROPIC_API_KEY: "key-of-a-test",
      ANTHROPIC_BASE_URL: url,
      CAIRN_DEMO_MODEL: "claude-sonnet-4-5",
    })
    expect(engine.name).toBe("anthropic:claude-sonnet-4-5")
    const reading = await engine.read(textOf("INV-20417.txt"))
    expect(reading).toMatchObject({ invoice: answer, usage: { inputTokens: 310, outputTokens: 120 } })
    expect(asked[0]).toContain("Harrow & Finch LLP")
    expect(asked[0]).toContain("vatPercent")
    // What the budget is told of it before the call holds.
    expect(asked[0]).toContain(`tokens":${maxOutputTokens}`)
    expect(asked[0]!.length).toBeLessThan(atMost(textOf("INV-20417.txt")).inputTokens!)
  })

  const failureOf = (engine: Engine) =>
    Effect.flatMap(Extractor, (extractor) => Effect.flip(extractor.extract("text"))).pipe(
      Effect.provide(extractorLayer(engine)),
      Effect.runPromise,
    )

  it.each([
    { status: 503, isRetryable: true, usage: null },
    { status: 429, isRetryable: true, usage: { microDollars: 0 } },
    { status: 401, isRetryable: false, usage: { microDollars: 0 } },
  ])(
    "that answers $status is asked once, and the error says whether to ask again and what it cost",
    async (expected) => {
      const { status, ...told } = expected
      reply = () => ({ status, body: { error: { message: "no", type: "error", code: "no" } } })
      expect(await failureOf(await openAi())).toMatchObject({ _tag: "ModelError", ...told })
      expect(asked).toHaveLength(1)
    },
  )

  it("that answers with no JSON is an error, not a value, and is paid for", async () => {
    reply = () => ({ status: 200, body: openAiReply("I could not find an invoice.") })
    expect(await failureOf(await openAi())).toMatchObject({
      ...{ _tag: "ModelError", isRetryable: true },
      usage: { inputTokens: 310, outputTokens: 120 },
    })
  })
})
