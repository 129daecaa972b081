import { Effect, Either, Schema } from "effect"
import { describe, expect, it } from "vitest"
import { codecOf, InvalidValue } from "../../src/index.js"
import { casesCodec, firstOf, nullableCodec, outcomeCodec, type Codec } from "../../src/model/Codec.js"

const place = "output of step 'pay'"
class Declined extends Schema.TaggedError<Declined>()("Declined", { code: Schema.String }) {}
class Expired extends Schema.TaggedError<Expired>()("Expired", { at: Schema.Date }) {}

const receipt = codecOf(Schema.Struct({ id: Schema.String, at: Schema.Date }))
const outcome = outcomeCodec(receipt, codecOf(Declined))
const choice = casesCodec("result", [
  ["page", receipt],
  ["mail", codecOf(Schema.Void)],
])

const gate = (codec: Codec<any>, value: unknown) => Effect.runSync(Effect.either(codec.gate(value, { place })))
const carry = (codec: Codec<any>, value: unknown) => {
  const gated = Either.getOrThrow(gate(codec, value))
  expect(Either.getOrThrow(codec.decode(gated.text, place))).toStrictEqual(gated.value)
  return gated
}

describe("settled outcomes, choices and optional results", () => {
  it.each<readonly [string, Codec<any>, unknown, string]>([
    [
      "a success",
      outcome,
      { ok: true, value: { id: "a", at: new Date(0) } },
      '{"ok":true,"value":{"id":"a","at":"1970-01-01T00:00:00.000Z"}}',
    ],
    [
      "a declared failure",
      outcome,
      { ok: false, error: new Declined({ code: "c" }) },
      '{"ok":false,"error":{"code":"c","_tag":"Declined"}}',
    ],
    [
      "a chosen case",
      choice,
      { case: "page", result: { id: "a", at: new Date(0) } },
      '{"case":"page","result":{"id":"a","at":"1970-01-01T00:00:00.000Z"}}',
    ],
    ["a chosen case without a result", choice, { case: "mail", result: undefined }, '{"case":"mail"}'],
    ["one that was left out", nullableCodec(outcome), null, "null"],
    ["one that was not left out", nullableCodec(choice), { case: "mail", result: undefined }, '{"case":"mail"}'],
  ])("%s comes back as it was", (_, codec, value, text) => {
    const gated = carry(codec, value)
    expect(gated.value).toStrictEqual(value)
    expect(gated.text).toBe(text)
  })

  it("an optional operation without a result tells 'left out' from 'done'", () => {
    const optional = nullableCodec(codecOf(Schema.Void))
    expect(carry(optional, null)).toEqual({ value: null, text: "null" })
    expect(carry(optional, undefined)).toEqual({ value: undefined, text: null })
  })

  it("a declared failure keeps its class, so that catchTag picks the same branch", () => {
    const { value } = carry(outcome, { ok: false, error: new Declined({ code: "c" }) })
    expect((value as { error: unknown }).error).toBeInstanceOf(Declined)
  })

  it("minus zero and odd keys survive inside", () => {
    const numbers = outcomeCodec(codecOf(Schema.Record({ key: Schema.String, value: Schema.Number })), null)
    expect(carry(numbers, { ok: true, value: { constructor: -0, "": 1 } }).text).toBe(
      '{"ok":true,"value":{"constructor":-0,"":1}}',
    )
  })

  const circular: Record<string, unknown> = {}
  circular.ok = circular
  it.each<readonly [string, Codec<any>, unknown, string]>([
    ["a value in the wrong shape", outcome, { ok: true, value: { id: 5, at: new Date(0) } }, ".id"],
    ["a case that does not exist", choice, { case: "fax" }, ".case"],
    ["a case named like a member of every object", choice, { case: "constructor" }, ".case"],
    ["null", choice, null, ".case"],
    ["undefined", outcome, undefined, ".ok"],
    ["a bigint for the case", choice, { case: 1n }, ".case"],
    ["a cycle for the case", outcome, circular, ".ok"],
    ["a failure where none is declared", outcomeCodec(receipt, null), { ok: false, error: 1 }, ".ok"],
  ])("%s is refused with its field", (_, codec, value, field) => {
    const refused = Either.getOrThrow(Either.flip(gate(codec, value)))
    expect(refused).toBeInstanceOf(InvalidValue)
    expect(refused.field).toBe(field)
  })

  it("a getter that throws is refused, not thrown", () => {
    for (const member of ["ok", "value"]) {
      const value = Object.defineProperty({ ok: true }, member, { get: () => { throw new Error("no") } }) // prettier-ignore
      expect(Either.isLeft(gate(outcome, value))).toBe(true)
    }
  })

  it("a choice of no case refuses everything and does not throw", () => {
    expect(Either.isLeft(gate(casesCodec("payload", []), { case: "a" }))).toBe(true)
  })

  it("the first schema that takes a failure carries it", () => {
    const failures = firstOf([codecOf(Declined), codecOf(Expired)])!
    expect(carry(failures, new Expired({ at: new Date(0) })).value).toBeInstanceOf(Expired)
    expect(carry(failures, new Declined({ code: "c" })).value).toBeInstanceOf(Declined)
    expect(Either.isLeft(gate(failures, "other"))).toBe(true)
    expect(firstOf([])).toBeNull()
  })

  it("say their JSON Schema and their problems", () => {
    expect(outcome.jsonSchema()).toMatchObject({ anyOf: [{ required: ["ok"] }, { required: ["ok"] }] })
    expect(nullableCodec(receipt).jsonSchema()).toMatchObject({ anyOf: [{}, { type: "null" }] })
    expect(outcome.problem()).toBeNull()
    expect(outcomeCodec(codecOf(Schema.DateFromSelf), null).problem()).toContain("no JSON form")
  })
})
