import { Either } from "effect"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { checkId, escapeSegment, idempotencyKey } from "../../src/index.js"
import { maxIdLength, maxKeyLength } from "../../src/model/Ids.js"

const runs = { numRuns: 2_000 }

/** Text of any UTF-16 units, delimiters, escapes, control characters and lone surrogates more often than by chance. */
const odd = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string({ unit: "grapheme" }),
  fc
    .array(
      fc.oneof(
        fc.constantFrom("~", "/", "[", "]", ":", "#", "~002f", "~~", "\0", "\ud800", "\udc00", "\u007f", " ", "%", "é"),
        fc.string({ maxLength: 3 }),
        fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)),
      ),
      { maxLength: 12 },
    )
    .map((parts) => parts.join("")),
)

const long = fc.tuple(odd, fc.integer({ min: 1, max: 60 })).map(([text, times]) => text.repeat(times))

describe("escapeSegment", () => {
  it("gives different segments different names", () => {
    fc.assert(
      fc.property(odd, odd, (a, b) => a === b || escapeSegment(a) !== escapeSegment(b)),
      runs,
    )
  })

  it("can be undone, so nothing is lost", () => {
    const undo = (text: string) =>
      text.replaceAll(/~([0-9a-f]{4})/g, (_, unit: string) => String.fromCharCode(Number.parseInt(unit, 16)))
    fc.assert(
      fc.property(odd, (segment) => undo(escapeSegment(segment)) === segment),
      runs,
    )
  })

  it("leaves no delimiter, control character or lone surrogate", () => {
    fc.assert(
      fc.property(odd, (segment) => {
        const escaped = escapeSegment(segment)
        expect(escaped).not.toMatch(/[/[\]:#\u0000-\u001f\u007f]/)
        expect(escaped.isWellFormed?.() ?? true).toBe(true)
      }),
      runs,
    )
  })

  it("keeps a joined path apart from every other", () => {
    const path = fc.array(odd, { minLength: 1, maxLength: 4 })
    const join = (segments: ReadonlyArray<string>) => segments.map(escapeSegment).join("/")
    fc.assert(
      fc.property(path, path, (a, b) => JSON.stringify(a) === JSON.stringify(b) || join(a) !== join(b)),
      runs,
    )
    expect(join(["a", "b"])).not.toBe(join(["a/b"]))
    expect(join(["a", ""])).not.toBe(join(["a"]))
  })

  it("leaves ordinary names as they are", () => {
    for (const name of ["charge", "inv_42", "a.b", "größe", "日本", "👩‍💻", "a b", "..", "'; drop", "%_"]) {
      expect(escapeSegment(name)).toBe(name)
    }
  })
})

describe("idempotencyKey", () => {
  const keyOf = fc.record({
    namespace: long,
    runId: long,
    path: long.map(escapeSegment),
    generation: fc.nat({ max: 1_000 }),
  })
  const asText = (key: object) => JSON.stringify(key)

  it("is printable ASCII and at most 255 characters", () => {
    fc.assert(
      fc.property(keyOf, (key) => {
        expect(idempotencyKey(key)).toMatch(/^[\x21-\x7e]{1,255}$/)
      }),
      runs,
    )
  })

  it("gives different occurrences different keys", () => {
    fc.assert(
      fc.property(keyOf, keyOf, (a, b) => asText(a) === asText(b) || idempotencyKey(a) !== idempotencyKey(b)),
      runs,
    )
  })

  it("differs wherever one part differs by one unit, however long", () => {
    fc.assert(
      fc.property(
        keyOf,
        fc.constantFrom("namespace" as const, "runId" as const, "path" as const, "generation" as const),
        (key, part) => {
          const other =
            part === "generation" ? { ...key, generation: key.generation + 1 } : { ...key, [part]: `${key[part]}x` }
          return idempotencyKey(key) !== idempotencyKey(other)
        },
      ),
      runs,
    )
  })

  it("keeps NFC and NFD, and moved delimiters, apart", () => {
    const base = { namespace: "n", runId: "r", path: "p", generation: 0 }
    const keys = [
      idempotencyKey({ ...base, runId: "é" }),
      idempotencyKey({ ...base, runId: "e\u0301" }),
      idempotencyKey({ ...base, namespace: "n/r", runId: "" }),
      idempotencyKey({ ...base, namespace: "n", runId: "r/p", path: "" }),
      idempotencyKey({ ...base, runId: "r#0" }),
      idempotencyKey({ ...base, runId: "~00e9" }),
      idempotencyKey(base),
    ]
    expect(new Set(keys).size).toBe(keys.length)
  })

  it("is the same for the same occurrence, and grows only with the generation", () => {
    const key = { namespace: "default", runId: "order-1", path: "charge", generation: 0 }
    expect(idempotencyKey(key)).toBe("default/order-1/charge#0")
    expect(idempotencyKey({ ...key })).toBe(idempotencyKey(key))
    expect(idempotencyKey({ ...key, generation: 1 })).toBe("default/order-1/charge#1")
  })

  it("ends in a hash past the limit, and not before", () => {
    const key = (length: number) =>
      idempotencyKey({ namespace: "n", runId: "r".repeat(length - "n//p#0".length), path: "p", generation: 0 })
    expect(key(maxKeyLength)).toHaveLength(maxKeyLength)
    expect(key(maxKeyLength)).not.toContain("~~")
    expect(key(maxKeyLength + 1)).toHaveLength(maxKeyLength)
    expect(key(maxKeyLength + 1)).toMatch(/~~[0-9a-f]{64}$/)
  })
})

describe("checkId", () => {
  const accepted = [" ", "a", "x".repeat(maxIdLength), "👩‍💻", "é", "e\u0301", "..", "a/b", "'; drop", "%_", "\ufeff", "\ufffd",
    "__proto__", "constructor", "prototype", "\t\n"] // prettier-ignore

  it.each(accepted)("keeps %j as it is", (id) => {
    expect(Either.getOrThrow(checkId("run id", id))).toBe(id)
  })

  const refused: ReadonlyArray<readonly [string, unknown, RegExp]> = [
    ["the empty id", "", /it is empty/],
    ["an id of 256 units", "x".repeat(maxIdLength + 1), /256 characters, at most 255/],
    ["an id of 10 kB", "x".repeat(10_240), /10240 characters/],
    ["NUL", "a\0b", /NUL character at 1/],
    ["a lone high surrogate", "a\ud800", /half of a surrogate pair at 1/],
    ["a lone low surrogate", "\udc00a", /half of a surrogate pair at 0/],
    ["undefined", undefined, /expected a string, got undefined/],
    ["null", null, /expected a string, got null/],
    ["a number", 5, /expected a string, got number/],
    ["a symbol", Symbol("x"), /expected a string, got symbol/],
    ["an object without a prototype", Object.create(null), /expected a string, got object/],
  ]

  it.each(refused)("refuses %s, typed and with a bounded message", (_, id, problem) => {
    const error = Either.getOrThrow(Either.flip(checkId("run id", id)))
    expect(error).toMatchObject({ _tag: "InvalidId", kind: "run id", isRetryable: false })
    expect(error.problem).toMatch(problem)
    expect(error.message.length).toBeLessThan(2_000)
  })

  it("changes nothing in any text that it accepts, and no two accepted ids meet in one key", () => {
    fc.assert(
      fc.property(odd, odd, (a, b) => {
        const [left, right] = [checkId("run id", a), checkId("run id", b)]
        if (Either.isRight(left)) expect(left.right).toBe(a)
        if (Either.isLeft(left) || Either.isLeft(right) || a === b) return
        const key = (runId: string) => idempotencyKey({ namespace: "n", runId, path: "p", generation: 0 })
        expect(key(a)).not.toBe(key(b))
      }),
      runs,
    )
  })
})
