import * as Legacy from "@effect/schema/Schema"
import { Effect, Either, Schema } from "effect"
import { describe, expect, it } from "vitest"
import { codecOf, fromLegacySchema, isSchema, Workflow } from "../../src/index.js"

const Invoice = Legacy.Struct({
  cents: Legacy.Int,
  due: Legacy.Date,
  wei: Legacy.BigInt,
  note: Legacy.optional(Legacy.String),
  lines: Legacy.Array(Legacy.Struct({ text: Legacy.String, at: Legacy.OptionFromNullOr(Legacy.Date) })),
})
const adapted = fromLegacySchema(Invoice, Legacy)
type Given = typeof adapted.Type

const gate = (value: unknown) => Effect.runSync(Effect.either(codecOf(adapted).gate(value, { place: "output" })))

const value = {
  cents: 1,
  due: new Date(0),
  wei: 10n ** 30n,
  lines: [{ text: "a", at: Legacy.decodeSync(Legacy.OptionFromNullOr(Legacy.Date))("1970-01-01T00:00:00.000Z") }],
} satisfies Given

describe("schemas of the old @effect/schema package", () => {
  it("are no effect/Schema as they are, so they are refused where a schema is asked for", () => {
    expect(Schema.isSchema(Invoice)).toBe(false)
    expect(isSchema(Invoice)).toBe(false)
    expect(isSchema(adapted)).toBe(true)
    const flow = Workflow.make("old", { version: 1, input: Invoice as never }).compile()
    expect(flow.diagnostics.map((d) => d.message)).toEqual([
      "CRN105: input of workflow 'old' has no schema; give an effect/Schema or any Standard Schema (Zod, Valibot, ArkType)",
    ])
  })

  it("carry values in both directions once adapted", () => {
    const gated = Either.getOrThrow(gate(value))
    expect(gated.text).toBe(
      '{"cents":1,"due":"1970-01-01T00:00:00.000Z","wei":"1000000000000000000000000000000","lines":[{"text":"a","at":"1970-01-01T00:00:00.000Z"}]}',
    )
    expect(gated.value).toStrictEqual(value)
    expect(Either.getOrThrow(codecOf(adapted).decode(gated.text, "output"))).toStrictEqual(gated.value)
  })

  it("carry an explicit undefined as an absent key", () => {
    expect(Either.getOrThrow(gate({ ...value, note: undefined })).text).not.toContain("note")
  })

  it("refuse with the field's path", () => {
    const refused = Either.getOrThrow(Either.flip(gate({ ...value, lines: [{ text: 5, at: value.lines[0]!.at }] })))
    expect(refused).toMatchObject({ _tag: "InvalidValue", reason: "SchemaMismatch", field: ".lines[0].text" })
    expect(refused.problem).toContain("string")
  })

  it("refuse an encoded side that is no JSON", () => {
    const codec = codecOf(fromLegacySchema(Legacy.Struct({ at: Legacy.DateFromSelf }), Legacy))
    const refused = Effect.runSync(Effect.flip(codec.gate({ at: new Date(0) }, { place: "output" })))
    expect(refused).toMatchObject({ _tag: "InvalidValue", reason: "NotJson", field: ".at" })
  })

  it("take no part in the types but A and I, and compile as input, payload and output", () => {
    const flow = Workflow.make("old", { version: 1, input: adapted })
      .step("same", { effects: [], output: adapted }, ({ input }) => {
        const due: Date = input.due
        return { ...input, due }
      })
      .output(Schema.Date, ({ results }) => results.same.due)
      .compile()
    expect(flow.diagnostics).toEqual([])
  })
})
