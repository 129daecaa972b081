import { Data, Effect, Either, HashMap, Option, Schema } from "effect"
import { describe, expect, it } from "vitest"
import { codecOf, Workflow, type AnySchema } from "../../src/index.js"
import { canonicalText } from "../../src/model/internal/json.js"

const place = "output of step 'x'"

const gate = (schema: AnySchema, value: unknown, maxLength?: number) =>
  Effect.runSync(Effect.either(codecOf(schema).gate(value, { place, ...(maxLength !== undefined && { maxLength }) })))

/** Carries a value, and checks what holds for every value: what later steps see is what a resume reads. */
const carry = (schema: AnySchema, value: unknown): { readonly text: string | null; readonly value: unknown } => {
  const gated = Either.getOrThrow(gate(schema, value))
  expect(Either.getOrThrow(codecOf(schema).decode(gated.text, place))).toStrictEqual(gated.value)
  return gated
}

const refuse = (schema: AnySchema, value: unknown) => {
  const error = Either.getOrThrow(Either.flip(gate(schema, value)))
  expect(error).toMatchObject({ _tag: "InvalidValue", place, isRetryable: false })
  expect(error.message).toContain(error.field === "" ? `${place}: ` : `${place}, at ${error.field}: `)
  return error
}

class Money extends Schema.Class<Money>("Money")({ cents: Schema.Int, at: Schema.Date }) {
  get euros() {
    return this.cents / 100
  }
}
class Declined extends Schema.TaggedError<Declined>()("Declined", { code: Schema.String }) {}

const Anything = Schema.Any
const Numbers = Schema.Record({ key: Schema.String, value: Schema.Number })
interface Chain {
  readonly next: Chain | null
}
const Chain: Schema.Schema<Chain> = Schema.Struct({ next: Schema.NullOr(Schema.suspend(() => Chain)) })
const chainOf = (depth: number): Chain => {
  let chain: Chain = { next: null }
  for (let i = 0; i < depth; i++) chain = { next: chain }
  return chain
}

describe("values that a schema carries come back as they were", () => {
  it.each<readonly [string, AnySchema, unknown, string | null]>([
    ["a Date", Schema.Date, new Date(1.7e12), '"2023-11-14T22:13:20.000Z"'],
    ["a bigint", Schema.Struct({ wei: Schema.BigInt }), { wei: 10n ** 30n }, `{"wei":"1${"0".repeat(30)}"}`],
    ["bytes", Schema.Uint8Array, new Uint8Array([0, 255]), "[0,255]"],
    ["bytes as base64", Schema.Uint8ArrayFromBase64, new Uint8Array([0, 255]), '"AP8="'],
    ["a Map", Schema.Map({ key: Schema.String, value: Schema.Date }), new Map([["a", new Date(0)]]), null],
    ["a Set", Schema.Set(Schema.Number), new Set([1, 2]), "[1,2]"],
    ["an Option", Schema.Option(Schema.Date), Option.some(new Date(0)), null],
    ["an absent Option", Schema.OptionFromNullOr(Schema.String), Option.none(), "null"],
    ["a HashMap", Schema.HashMap({ key: Schema.String, value: Schema.Number }), HashMap.make(["a", 1]), '[["a",1]]'],
    ["a class", Money, new Money({ cents: 5, at: new Date(0) }), '{"cents":5,"at":"1970-01-01T00:00:00.000Z"}'],
    ["a tagged error", Declined, new Declined({ code: "c" }), '{"code":"c","_tag":"Declined"}'],
    ["a branded string", Schema.String.pipe(Schema.brand("Id")), "id", '"id"'],
    ["undefined", Schema.Undefined, undefined, null],
    ["void", Schema.Void, undefined, null],
    ["undefined or a value", Schema.UndefinedOr(Schema.String), undefined, null],
    ["null", Schema.NullOr(Schema.String), null, "null"],
    [
      "an explicit undefined under a required key",
      Schema.Struct({ a: Schema.UndefinedOr(Schema.String) }),
      { a: undefined },
      "{}",
    ],
    ["an absent key", Schema.Struct({ a: Schema.optional(Schema.String) }), {}, "{}"],
    [
      "numbers at the edges",
      Schema.Array(Schema.Number),
      [-0, 0, 1e308, 5e-324, 2 ** 53 + 2, -1.5],
      "[-0,0,1e+308,5e-324,9007199254740994,-1.5]",
    ],
    [
      "minus zero deep inside",
      Schema.Struct({ a: Schema.Array(Schema.Struct({ b: Schema.Number })) }),
      { a: [{ b: -0 }] },
      '{"a":[{"b":-0}]}',
    ],
    ["NUL and lone surrogates in values", Schema.String, "a\0b\ud800c\udfff", '"a\\u0000b\\ud800c\\udfff"'],
    ["NUL and lone surrogates in keys", Numbers, { "k\0": 1, "\ud800": 2 }, '{"k\\u0000":1,"\\ud800":2}'],
    ["text with marks of its own", Schema.String, "\ufeff\ufffd👩‍💻 \u2028 e\u0301 é", null],
    ["the empty text", Schema.String, "", '""'],
    ["an empty list", Schema.Array(Schema.Number), [], "[]"],
  ])("%s", (_, schema, value, text) => {
    const gated = carry(schema, value)
    expect(gated.value).toStrictEqual(value)
    if (text !== null) expect(gated.text).toBe(text)
    if (value === undefined) expect(gated.text).toBeNull()
  })

  it("a class keeps its prototype and its getters", () => {
    const { value } = carry(Money, new Money({ cents: 250, at: new Date(0) }))
    expect(value).toBeInstanceOf(Money)
    expect((value as Money).euros).toBe(2.5)
  })

  it("text of 5 MB", () => {
    const text = "ab\0\ud800".repeat(1_250_000)
    const gated = carry(Schema.Struct({ text: Schema.String }), { text })
    expect((gated.value as { text: string }).text === text).toBe(true)
  })

  it("user keys, whatever they are called", () => {
    const keys = ["user_id", "userId", "a.b", "", " ", "0", "10", "9", "$ref", "_tag", "type", "lc", "then", "toString",
      "hasOwnProperty", "valueOf", "constructor", "prototype", "length"] // prettier-ignore
    const value = Object.fromEntries(keys.map((key, index) => [key, index]))
    expect(carry(Numbers, value).value).toStrictEqual(value)
    expect(Object.keys(carry(Numbers, value).value as object).sort()).toEqual([...keys].sort())
  })

  it("magic envelopes stay plain data", () => {
    const Envelope = Schema.Struct({
      lc: Schema.Number,
      type: Schema.String,
      id: Schema.Array(Schema.String),
      kwargs: Schema.Record({ key: Schema.String, value: Schema.String }),
      $type: Schema.String,
      __class__: Schema.String,
    })
    const value = { lc: 1, type: "constructor", id: ["x"], kwargs: { a: "b" }, $type: "Date", __class__: "Map" }
    const carried = carry(Envelope, value).value as object
    expect(carried).toStrictEqual(value)
    expect(Object.getPrototypeOf(carried)).toBe(Object.prototype)
  })

  it("what a schema drops is dropped on the first run as well", () => {
    expect(carry(Schema.Struct({ a: Schema.Number }), { a: 1, extra: 2 }).value).toStrictEqual({ a: 1 })
    expect(carry(Schema.Struct({ a: Schema.optional(Schema.Number) }), { a: undefined }).value).toStrictEqual({})
  })

  it("the same object in two places is no cycle", () => {
    const shared = { next: null }
    expect(carry(Schema.Array(Chain), [shared, shared]).value).toStrictEqual([shared, shared])
  })

  it("a step without an output keeps nothing, whatever it returns", () => {
    const circular: Record<string, unknown> = {}
    circular.self = circular
    for (const given of [5, circular, 1n, () => 1]) {
      expect(carry(Schema.Void, given)).toEqual({ value: undefined, text: null })
    }
  })
})

const throwing = (thrown: unknown) => ({
  get a(): unknown {
    throw thrown
  },
})
const revoked = () => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

describe("a step inside a step", () => {
  it("is refused when it is returned, whatever the output's schema", () => {
    const inner = Workflow.make("w", { version: 1, input: Schema.Void }).step(
      "inner",
      { effects: [], output: Schema.Void },
      () => {},
    )
    expect(refuse(Schema.Void, inner).problem).toContain("steps do not nest")
    expect(refuse(Schema.Struct({ a: Schema.Number }), inner).field).toBe(".a")
    expect(refuse(Schema.Any, inner).reason).toBe("NotJson")
  })
})

describe("values that cannot be carried are refused, typed and with their field", () => {
  it.each<readonly [string, AnySchema, unknown, string, string]>([
    ["NaN", Schema.Struct({ a: Schema.Array(Schema.Number) }), { a: [1, NaN] }, ".a[1]", "NotJson"],
    ["Infinity", Schema.Struct({ cost: Schema.Number }), { cost: Infinity }, ".cost", "NotJson"],
    ["minus infinity", Schema.Number, -Infinity, "", "NotJson"],
    ["NaN where the schema says finite", Schema.Struct({ a: Schema.Finite }), { a: NaN }, ".a", "SchemaMismatch"],
    ["undefined in a list", Schema.Array(Schema.UndefinedOr(Schema.Number)), [1, undefined], "[1]", "NotJson"],
    [
      "a hole in a list",
      Schema.Array(Schema.UndefinedOr(Schema.Number)),
      Object.assign(Array<unknown>(3), { 0: 1, 2: 2 }),
      "[1]",
      "NotJson",
    ],
    ["undefined in a tuple", Schema.Tuple(Schema.UndefinedOr(Schema.Number)), [undefined], "[0]", "NotJson"],
    ["a bigint that nothing encodes", Anything, { wei: 10n }, ".wei", "NotJson"],
    ["a Date that nothing encodes", Anything, { due: { at: new Date(0) } }, ".due.at", "NotJson"],
    ["an invalid Date", Schema.Struct({ at: Schema.Date }), { at: new Date(NaN) }, ".at", "SchemaMismatch"],
    ["a function", Anything, { f: () => 1 }, ".f", "NotJson"],
    ["a symbol", Anything, [Symbol("s")], "[0]", "NotJson"],
    ["a symbol key", Anything, { a: { [Symbol("s")]: 1 } }, ".a", "NotJson"],
    ["an instance of a class", Anything, { a: new (class Custom {})() }, ".a", "NotJson"],
    ["a Map that nothing encodes", Anything, { m: new Map() }, ".m", "NotJson"],
    ["a Set that nothing encodes", Anything, new Set(), "", "NotJson"],
    ["bytes that nothing encodes", Anything, { bytes: new Uint8Array(2) }, ".bytes", "NotJson"],
    ["an Option that nothing encodes", Anything, { o: Option.some(1) }, ".o", "NotJson"],
    ["a boxed string", Anything, [Object("s")], "[0]", "NotJson"],
    ["an enumerable toJSON", Anything, { a: { toJSON: () => 1 } }, ".a.toJSON", "NotJson"],
    ["a getter that throws", Anything, { list: [throwing(new Error("no"))] }, "", "NotJson"],
    ["a getter that throws something odd", Anything, throwing(Object.create(null)), "", "NotJson"],
    ["a getter that throws under a struct", Schema.Struct({ a: Schema.Number }), throwing(Symbol("s")), "", "NotJson"],
    ["a proxy that refuses", Anything, new Proxy({}, { ownKeys: () => { throw new Error("no") } }), "", "NotJson"], // prettier-ignore
    ["a revoked proxy", Schema.Struct({ a: Schema.Number }), revoked(), "", "NotJson"],
    ["a list of the wrong type, with its index", Schema.Array(Schema.Number), [1, "2"], "[1]", "SchemaMismatch"],
    [
      "a wrong value under an odd key",
      Schema.Struct({ "a b": Schema.Number }),
      { "a b": "x" },
      '["a b"]',
      "SchemaMismatch",
    ],
    ["a missing key", Schema.Struct({ a: Schema.Number }), {}, ".a", "SchemaMismatch"],
    ["another type altogether", Money, { cents: 1 }, ".at", "SchemaMismatch"],
    [
      "a promise that was not awaited",
      Schema.Struct({ a: Schema.String }),
      { a: Promise.resolve("x") },
      ".a",
      "SchemaMismatch",
    ],
  ])("%s", (_, schema, value, field, reason) => {
    expect(refuse(schema, value)).toMatchObject({ field, reason })
  })

  it("an own key named __proto__, with a plain value or an object, at any depth", () => {
    const key = "__proto__"
    for (const member of ["1", '{"polluted":true}', "null", '"text"']) {
      expect(refuse(Anything, JSON.parse(`{"${key}":${member}}`))).toMatchObject({
        field: `.${key}`,
        reason: "NotJson",
      })
      expect(refuse(Numbers, JSON.parse(`{"${key}":${member}}`))).toMatchObject({ field: `.${key}` })
      const deep = JSON.parse(`{"a":[{"${key}":${member}}]}`) as object
      expect(refuse(Schema.Struct({ a: Schema.Array(Schema.Struct({})) }), deep)).toMatchObject({
        field: `.a[0].${key}`,
      })
    }
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
  })

  it("cycles, in any place, also under a recursive schema", () => {
    const self: Record<string, unknown> = {}
    self.self = self
    expect(refuse(Anything, self)).toMatchObject({ reason: "Circular", field: ".self" })
    const list: Array<unknown> = []
    list.push([list])
    expect(refuse(Schema.Array(Anything), list)).toMatchObject({ reason: "Circular", field: "[0][0]" })
    const chain: { next: unknown } = { next: null }
    chain.next = { next: chain }
    expect(refuse(Chain, chain)).toMatchObject({ reason: "Circular", field: ".next.next" })
  })

  it("a cycle through instances of a class, which only the schema walks", () => {
    interface Link {
      next: Link | null
    }
    class Node extends Schema.Class<Node>("Node")({
      next: Schema.NullOr(Schema.suspend((): Schema.Schema<any> => Node)),
    }) {}
    const node = new Node({ next: null }) as unknown as Link
    node.next = node
    expect(refuse(Node, node).reason).toMatch(/NotJson|Circular/)
  })

  it.each([1_000, 10_000, 1_000_000])(
    "nesting of %i levels: carried or refused, never an escaping overflow",
    (depth) => {
      for (const schema of [Chain, Anything]) {
        const result = gate(schema, chainOf(depth))
        if (Either.isLeft(result)) expect(result.left.problem).toContain("nested too deeply")
        else expect(result.right.text).toHaveLength('{"next":}'.length * depth + '{"next":null}'.length)
      }
    },
  )

  it("a schema that throws", () => {
    const broken = Schema.transform(Schema.String, Schema.Number, {
      strict: true,
      decode: () => 1,
      encode: () => {
        throw new Error("bug in encode")
      },
    })
    expect(refuse(broken, 1)).toMatchObject({ reason: "SchemaMismatch", problem: "its schema threw: bug in encode" })
  })

  it("text longer than allowed, with both sizes", () => {
    const refused = Either.getOrThrow(Either.flip(gate(Schema.String, "x".repeat(100), 50)))
    expect(refused).toMatchObject({ reason: "TooLarge", field: "" })
    expect(refused.problem).toMatch(/102 characters .* at most 50/)
    expect(Either.isRight(gate(Schema.String, "x".repeat(48), 50))).toBe(true)
  })

  it("text longer than any store should carry, where nobody has said how long", () => {
    expect(refuse(Schema.String, "x".repeat(64 * 1024 * 1024))).toMatchObject({ reason: "TooLarge" })
  })

  it("several issues: the first with its field, the others counted", () => {
    const refused = refuse(Schema.Struct({ a: Schema.Number, b: Schema.Number }), { a: "", b: "" })
    expect(refused.field).toBe(".a")
    expect(refused.problem).toContain("(and 1 more)")
  })

  it("in a union, the field of the member that came furthest", () => {
    expect(refuse(JsonLike, { wei: 10n }).field).toBe(".wei")
    expect(refuse(JsonLike, [1, { deep: { wei: 10n } }]).field).toBe("[1].deep.wei")
  })
})

const JsonLike: Schema.Schema<any> = Schema.suspend(() =>
  Schema.Union(
    Schema.String,
    Schema.Number,
    Schema.Null,
    Schema.Array(JsonLike),
    Schema.Record({ key: Schema.String, value: JsonLike }),
  ),
)

const Optionals = Schema.Struct({ a: Schema.optional(Schema.Number) })

const builtIns: Record<string, unknown> = {
  "a Date": new Date(5),
  "a Map": new Map([["a", 1]]),
  "a Set": new Set([1]),
  "a WeakMap": new WeakMap(),
  "a Promise": Promise.resolve({ a: 1 }),
  "an Error": new Error("x"),
  "an Error with fields": Object.assign(new Error("x"), { code: "ENOENT" }),
  "a RegExp": /x/,
  "a URL": new URL("https://example.com/y"),
  bytes: new Uint8Array([1, 2]),
  "a Buffer": Buffer.from("hi"),
  "an ArrayBuffer": new ArrayBuffer(2),
  "a boxed text": Object("hi"),
  "a function": () => 1,
  "a generator": (function* () {
    yield 1
  })(),
  "an extended Map": new (class Prices extends Map<string, number> {})([["a", 1]]),
}

describe("what holds all that it says elsewhere than in fields is not written as an object of fields", () => {
  it.each(Object.entries(builtIns))("%s", (_, value) => {
    expect(refuse(JsonLike, value).field).toBe("")
    expect(refuse(JsonLike, { lines: [1, { due: value }] })).toMatchObject({ field: ".lines[1].due" })
    expect(refuse(Schema.Struct({ some: Optionals }), { some: value }).field).toBe(".some")
    const raw = codecOf(Schema.Struct({ some: Optionals })).gateUnvalidated({ some: value }, { place })
    expect(Effect.runSync(Effect.flip(raw)).field).toBe(".some")
  })

  it("and what its schema does encode, is", () => {
    const Counts = Schema.transform(
      Schema.Record({ key: Schema.String, value: Schema.Number }),
      Schema.MapFromSelf({ key: Schema.String, value: Schema.Number }),
      {
        strict: true,
        decode: (record) => new Map(Object.entries(record)),
        encode: (counts) => Object.fromEntries(counts),
      },
    )
    expect(carry(Counts, new Map([["a", 1]])).text).toBe('{"a":1}')
    expect(carry(Counts, new Map()).text).toBe("{}")
    const Fields = Schema.Struct({ name: Schema.String, message: Schema.String })
    expect(carry(Fields, new TypeError("no")).text).toBe('{"name":"TypeError","message":"no"}')
    expect(
      carry(Schema.Struct({ code: Schema.String }), Object.assign(new Error("x"), { code: "E", errno: 2 })).text,
    ).toBe('{"code":"E"}')
    class Refused extends Data.TaggedError("Refused")<{ readonly code: string }> {}
    expect(carry(Schema.TaggedStruct("Refused", { code: Schema.String }), new Refused({ code: "x" })).text).toBe(
      '{"_tag":"Refused","code":"x"}',
    )
    class Point {
      constructor(readonly a: number) {}
    }
    expect(carry(Optionals, new Point(5)).text).toBe('{"a":5}')
  })
})

describe("values of unknown shape", () => {
  const unvalidated = (schema: AnySchema, raw: unknown) =>
    Effect.runSync(Effect.either(codecOf(schema).gateUnvalidated(raw, { place })))

  it("are decoded from the encoded side", () => {
    const gated = Either.getOrThrow(unvalidated(Schema.Struct({ at: Schema.Date }), { at: "1970-01-01T00:00:00Z" }))
    expect(gated).toEqual({ value: { at: new Date(0) }, text: '{"at":"1970-01-01T00:00:00.000Z"}' })
  })

  it("are refused with their field, also where they would pollute", () => {
    expect(Either.getOrThrow(Either.flip(unvalidated(Schema.Struct({ n: Schema.Number }), { n: "1" })))).toMatchObject({
      field: ".n",
    })
    expect(Either.getOrThrow(Either.flip(unvalidated(Numbers, JSON.parse('{"__proto__":{"x":1}}'))))).toMatchObject({
      field: ".__proto__",
    })
  })
})

describe("stored text", () => {
  it("that is no JSON is a typed error, not an absent value", () => {
    const decoded = codecOf(Schema.UndefinedOr(Schema.String)).decode("{broken", place)
    expect(Either.getOrThrow(Either.flip(decoded))).toMatchObject({ _tag: "InvalidValue", reason: "NotJson", place })
  })

  it("of another shape is a typed error with its field", () => {
    const decoded = codecOf(Schema.Struct({ a: Schema.Number })).decode('{"a":"x"}', place)
    expect(Either.getOrThrow(Either.flip(decoded))).toMatchObject({ reason: "SchemaMismatch", field: ".a" })
  })

  it("has one canonical form whatever the order of its keys", () => {
    expect(canonicalText('{"b":[{"d":1,"c":-0}],"a":"\\u0000"}')).toBe(
      canonicalText('{"a":"\\u0000","b":[{"c":-0,"d":1}]}'),
    )
    expect(canonicalText('{"a":1}')).not.toBe(canonicalText('{"a":2}'))
    expect(canonicalText('{"__proto__":1}')).toBe('{"__proto__":1}')
  })
})
