/** Law X3 as properties: the value handed on is the one that a resume reads, for every schema and every value. */
import { Arbitrary, Effect, Either, Schema } from "effect"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { z } from "zod"
import { codecOf, type AnySchema } from "../../src/index.js"
import { canonicalText } from "../../src/model/internal/json.js"

const place = "output of step 'x'"
const gate = (schema: AnySchema, value: unknown) =>
  Effect.runSync(Effect.either(codecOf(schema).gate(value, { place })))

class Line extends Schema.Class<Line>("Line")({ text: Schema.String, cents: Schema.Int }) {}
interface Tree {
  readonly name: string
  readonly kids: ReadonlyArray<Tree>
}
const Tree: Schema.Schema<Tree> = Schema.Struct({
  name: Schema.String,
  kids: Schema.Array(Schema.suspend((): Schema.Schema<Tree> => Tree)),
})

const schemas: ReadonlyArray<readonly [string, Schema.Schema<any, any>]> = [
  ["text", Schema.String],
  ["finite numbers", Schema.Array(Schema.Finite)],
  ["dates and bigints", Schema.Struct({ at: Schema.Date, wei: Schema.BigInt })],
  ["optional and nullable members", Schema.Struct({ a: Schema.optional(Schema.String), b: Schema.NullOr(Schema.Int) })],
  ["members that may be undefined", Schema.Struct({ a: Schema.UndefinedOr(Schema.String), b: Schema.Boolean })],
  ["records", Schema.Record({ key: Schema.String, value: Schema.Struct({ n: Schema.Finite }) })],
  [
    "maps and sets",
    Schema.Struct({ m: Schema.Map({ key: Schema.String, value: Schema.Int }), s: Schema.Set(Schema.String) }),
  ],
  [
    "options and eithers",
    Schema.Struct({ o: Schema.Option(Schema.Date), e: Schema.Either({ left: Schema.String, right: Schema.Int }) }),
  ],
  ["bytes", Schema.Uint8Array],
  ["classes", Schema.Array(Line)],
  [
    "tagged unions",
    Schema.Union(Schema.TaggedStruct("A", { x: Schema.String }), Schema.TaggedStruct("B", { y: Schema.Date })),
  ],
  ["recursive trees", Tree],
  ["branded and refined text", Schema.NonEmptyString.pipe(Schema.maxLength(20), Schema.brand("Id"))],
]

/** Full Unicode and beyond: any UTF-16 units. */
const text = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string({ unit: "grapheme" }),
  fc.constantFrom("\ud800", "\0", ""),
)

describe("gate and decode agree", () => {
  it.each(schemas)("on %s", (_, schema) => {
    fc.assert(
      fc.property(Arbitrary.make(schema), (value) => {
        const gated = gate(schema, value)
        if (Either.isLeft(gated)) {
          // An own key named __proto__ is the one thing that these schemas accept and JSON records cannot carry.
          expect(gated.left.field).toMatch(/__proto__/)
          return
        }
        expect(Either.getOrThrow(codecOf(schema).decode(gated.right.text, place))).toStrictEqual(gated.right.value)
        expect(gated.right.value).toStrictEqual(withoutAbsentKeys(value))
        const again = Either.getOrThrow(gate(schema, gated.right.value))
        expect(again.text).toBe(gated.right.text)
      }),
      { numRuns: 200 },
    )
  })

  it("on text of any units, in keys and values", () => {
    const schema = Schema.Record({ key: Schema.String, value: Schema.Array(Schema.String) })
    fc.assert(
      fc.property(
        fc.dictionary(
          text.filter((key) => key !== "__proto__"),
          fc.array(text),
          { noNullPrototype: true },
        ),
        (value) => {
          const gated = Either.getOrThrow(gate(schema, value))
          expect(gated.value).toStrictEqual(value)
          expect(Either.getOrThrow(codecOf(schema).decode(gated.text, place))).toStrictEqual(value)
        },
      ),
      { numRuns: 500 },
    )
  })

  it("on Zod objects", () => {
    const schema = z.object({ name: z.string(), tags: z.array(z.string()), n: z.number() })
    const value = fc.record({
      name: text,
      tags: fc.array(text),
      n: fc.double({ noNaN: true, noDefaultInfinity: true }),
    })
    fc.assert(
      fc.property(value, (given) => {
        const gated = Either.getOrThrow(gate(schema, given))
        expect(gated.value).toStrictEqual(given)
        expect(Either.getOrThrow(codecOf(schema).decode(gated.text, place))).toStrictEqual(gated.value)
      }),
      { numRuns: 300 },
    )
  })
})

describe("any value at all", () => {
  const anything = fc.anything({
    withBigInt: true,
    withBoxedValues: true,
    withDate: true,
    withMap: true,
    withSet: true,
    withNullPrototype: true,
    withObjectString: true,
    withSparseArray: true,
    withTypedArray: true,
    withUnicodeString: true,
    maxDepth: 4,
  })

  it.each<readonly [string, AnySchema]>([
    ["a schema that takes everything", Schema.Any],
    ["a struct", Schema.Struct({ a: Schema.optional(Schema.Any) })],
    ["a Zod schema that takes everything", z.any()],
  ])("is carried or refused by %s, and never thrown", (_, schema) => {
    fc.assert(
      fc.property(anything, (value) => {
        const gated = gate(schema, value)
        if (Either.isLeft(gated)) {
          expect(gated.left._tag).toBe("InvalidValue")
          return
        }
        const read = Either.getOrThrow(codecOf(schema).decode(gated.right.text, place))
        expect(read).toStrictEqual(gated.right.value)
      }),
      { numRuns: 1_000 },
    )
  })

  it("that is JSON is carried exactly, and its fingerprint does not depend on the order of keys", () => {
    const shuffle = (value: unknown): unknown =>
      Array.isArray(value)
        ? value.map(shuffle)
        : typeof value === "object" && value !== null
          ? Object.fromEntries(
              Object.entries(value)
                .reverse()
                .map(([key, member]) => [key, shuffle(member)]),
            )
          : value
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "binary" }), (value) => {
        const gated = gate(Schema.Any, value)
        if (Either.isLeft(gated)) {
          expect(gated.left.field).toMatch(/__proto__/)
          return
        }
        expect(gated.right.value).toStrictEqual(value)
        const other = Either.getOrThrow(gate(Schema.Any, shuffle(value)))
        expect(canonicalText(other.text)).toBe(canonicalText(gated.right.text))
      }),
      { numRuns: 1_000 },
    )
  })
})

/** A key that may be absent and holds undefined becomes an absent key; a required one keeps its undefined. */
const withoutAbsentKeys = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null || !("a" in value) || !("b" in value)) return value
  return value.a === undefined && typeof value.b !== "boolean" ? { b: value.b } : value
}
