import { Effect, Either, Schema } from "effect"
import * as v from "valibot"
import { describe, expect, it } from "vitest"
import { z } from "zod"
import { codecOf, OnUnknown, Operation, Workflow, type AnySchema } from "../../src/index.js"

const onUnknown = OnUnknown.retryWithKey({ keyWindow: "24 hours" })
const options = { place: "output of step 'lead'" }
const gateEither = (schema: AnySchema, value: unknown) => Effect.either(codecOf(schema).gate(value, options))
const gate = (schema: AnySchema, value: unknown) => Effect.runSync(gateEither(schema, value))
const gateLater = (schema: AnySchema, value: unknown) => Effect.runPromise(gateEither(schema, value))
const refusal = (result: Either.Either<unknown, unknown>) => Either.getOrThrow(Either.flip(result))

const libraries = [
  {
    name: "Zod",
    lead: z.object({ company: z.string(), score: z.number().default(7), tags: z.array(z.string()).default([]) }),
    trimmed: z.object({ name: z.string().transform((text) => text.trim().length) }),
    taken: z.object({ name: z.string().refine(async (name) => Promise.resolve(name !== "taken"), "is taken") }),
    lines: z.object({ lines: z.array(z.object({ cents: z.number() })) }),
    dated: z.object({ at: z.date() }),
    record: z.record(z.string(), z.number()),
  },
  {
    name: "Valibot",
    lead: v.object({
      company: v.string(),
      score: v.optional(v.number(), 7),
      tags: v.optional(v.array(v.string()), []),
    }),
    trimmed: v.object({
      name: v.pipe(
        v.string(),
        v.transform((text) => text.trim().length),
      ),
    }),
    taken: v.objectAsync({
      name: v.pipeAsync(
        v.string(),
        v.checkAsync(async (name) => Promise.resolve(name !== "taken"), "is taken"),
      ),
    }),
    lines: v.object({ lines: v.array(v.object({ cents: v.number() })) }),
    dated: v.object({ at: v.date() }),
    record: v.record(v.string(), v.number()),
  },
] as const

describe.each(libraries)("$name", ({ lead, trimmed, taken, lines, dated, record }) => {
  it("refuses a Map where it takes a record: it would be written as an empty one", () => {
    expect(refusal(gate(record, new Map([["a", 1]])))).toMatchObject({ _tag: "InvalidValue", field: "" })
  })

  it("fills in defaults before the commit, and a resume reads them as stored", () => {
    const gated = Either.getOrThrow(gate(lead, { company: "a" }))
    expect(gated).toEqual({ value: { company: "a", score: 7, tags: [] }, text: '{"company":"a","score":7,"tags":[]}' })
    expect(Either.getOrThrow(codecOf(lead).decode(gated.text, "x"))).toStrictEqual(gated.value)
  })

  it("transforms once: a resume parses the output and does not validate it again", () => {
    const gated = Either.getOrThrow(gate(trimmed, { name: "  abc " }))
    expect(gated).toEqual({ value: { name: 3 }, text: '{"name":3}' })
    expect(Either.getOrThrow(codecOf(trimmed).decode(gated.text, "x"))).toStrictEqual({ name: 3 })
  })

  it("validates asynchronously", async () => {
    expect(Either.getOrThrow(await gateLater(taken, { name: "free" }))).toMatchObject({ text: '{"name":"free"}' })
    expect(refusal(await gateLater(taken, { name: "taken" }))).toMatchObject({
      _tag: "InvalidValue",
      reason: "SchemaMismatch",
      field: ".name",
      problem: "is taken",
    })
  })

  it("names the field and counts the other issues", () => {
    const refused = refusal(gate(lines, { lines: [{ cents: 1 }, { cents: "2" }, { cents: null }] }))
    expect(refused).toMatchObject({ reason: "SchemaMismatch", field: ".lines[1].cents" })
    expect((refused as Error).message).toMatch(/^output of step 'lead', at \.lines\[1\]\.cents: .*\(and 1 more\)$/)
  })

  it("refuses an output that is no JSON, with its field", () => {
    expect(refusal(gate(dated, { at: new Date(0) }))).toMatchObject({ reason: "NotJson", field: ".at" })
  })

  it("refuses cycles and __proto__ keys before the schema sees them", () => {
    const circular: { lines: Array<unknown> } = { lines: [] }
    circular.lines.push(circular)
    expect(refusal(gate(lines, circular))).toMatchObject({ reason: "Circular", field: ".lines[0]" })
    expect(refusal(gate(record, JSON.parse('{"__proto__":1}')))).toMatchObject({
      reason: "NotJson",
      field: ".__proto__",
    })
    expect(({} as { x?: unknown }).x).toBeUndefined()
  })

  it("is taken as input, output, payload and success of a compiled workflow", () => {
    // Two libraries in one table have no common type that the builder could check: the type tests do that.
    const Post = (Operation as any).make("slack.post", { payload: lead, success: lines, failure: trimmed, onUnknown })
    const flow = (Workflow as any)
      .make("leads", { version: 1, input: lead })
      .step("lead", { effects: [], output: lead }, () => ({ company: "a" }))
      .perform("post", Post, { payload: () => ({ company: "a" }) })
      .output(lines, () => ({ lines: [] }))
      .compile()
    expect(flow.diagnostics).toEqual([])
  })
})

describe("JSON Schema of Standard Schemas", () => {
  it("is the library's own where it offers one", () => {
    expect(codecOf(z.object({ a: z.string().default("x") })).jsonSchema()).toMatchObject({
      type: "object",
      properties: { a: { type: "string" } },
      required: ["a"],
    })
  })

  it("is empty where the library offers none", () => {
    expect(codecOf(v.object({ a: v.string() })).jsonSchema()).toEqual({})
  })

  it.each([
    ["a date", z.object({ at: z.date() }), "date at properties/at"],
    ["a bigint in a list", z.array(z.bigint()), "bigint at items"],
    ["a map", z.map(z.string(), z.string()), "map at the top"],
    ["any", z.object({ a: z.any() }), "any at properties/a"],
    ["unknown", z.unknown(), "unknown at the top"],
    ["a pipe that ends in a date", z.string().pipe(z.coerce.date()), "date at the top"],
  ])("tells compile() that Zod's %s is no JSON", (_, input, problem) => {
    const flow = Workflow.make("w", { version: 1, input: input as never }).compile()
    expect(flow.diagnostics).toEqual([
      {
        code: "CRN105",
        step: null,
        message: `CRN105: input of workflow 'w' does not encode to JSON; use a schema whose encoded side is JSON, e.g. Schema.Date for Schema.DateFromSelf (${problem})`,
      },
    ])
  })

  it.each([
    ["a transform", z.string().transform((text) => text.length)],
    ["a codec to JSON", z.codec(z.string(), z.number(), { decode: Number, encode: String })],
    ["a date that is read and not kept", z.date().transform((date) => date.getTime())],
    ["a custom check", z.custom<string>((value) => value === "x")],
  ])("does not hold Zod's %s against it", (_, input) => {
    expect(Workflow.make("w", { version: 1, input: input as never }).compile().diagnostics).toEqual([])
  })

  it("of an Effect schema that also is a Standard Schema keeps its encode side", () => {
    const both = Schema.standardSchemaV1(Schema.Struct({ at: Schema.Date }))
    expect(Either.getOrThrow(gate(both, { at: new Date(0) })).text).toBe('{"at":"1970-01-01T00:00:00.000Z"}')
  })
})

describe("Standard Schemas that misbehave", () => {
  const standard = (validate: (value: unknown) => unknown): AnySchema =>
    ({ "~standard": { version: 1, vendor: "test", validate } }) as never
  const unprintable = Object.create(null) as object

  it.each([
    ["throws", standard(() => { throw new Error("no") })], // prettier-ignore
    ["throws what is no Error", standard(() => { throw unprintable })], // prettier-ignore
    ["gives nothing", standard(() => undefined)],
    ["rejects", standard(async () => Promise.reject(new Error("no")))],
    ["rejects with what cannot be printed", standard(async () => Promise.reject(unprintable))],
    ["resolves to nothing", standard(async () => undefined)],
    ["gives a value whose getter throws", standard(() => ({ value: { get a() { throw unprintable } } }))], // prettier-ignore
    ["resolves to a value whose getter throws", standard(async () => ({ value: { get a() { throw unprintable } } }))], // prettier-ignore
    ["gives issues of another shape", standard(() => ({ issues: [null] }))],
    ["gives no issues in its list", standard(() => ({ issues: [] }))],
  ])("one that %s is a typed refusal, never a defect", async (_, schema) => {
    expect(refusal(await gateLater(schema, { a: 1 }))).toMatchObject({ _tag: "InvalidValue", place: options.place })
  })

  it("one that answers with a promise of another realm is awaited", async () => {
    const thenable = { then: (resolve: (result: unknown) => void) => resolve({ value: { ok: true } }) }
    expect(
      Either.getOrThrow(
        await gateLater(
          standard(() => thenable),
          1,
        ),
      ),
    ).toMatchObject({ text: '{"ok":true}' })
  })
})
