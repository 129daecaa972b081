/** Arbitrary texts that the contract lets through, and pairs that a careless database holds for equal. */
import * as FastCheck from "effect/FastCheck"

/** An id: 1 to 255 UTF-16 units of any Unicode, without NUL and without halves of surrogate pairs. */
export const anyId: FastCheck.Arbitrary<string> = FastCheck.oneof(
  { weight: 3, arbitrary: FastCheck.string({ unit: "binary", minLength: 1, maxLength: 40 }) },
  { weight: 1, arbitrary: FastCheck.string({ unit: "grapheme", minLength: 1, maxLength: 127 }) },
  {
    weight: 1,
    arbitrary: FastCheck.constantFrom("'", '"', "''; drop table run; --", "%", "_", "\\", "\u{10ffff}", "\ufeff"),
  },
).filter((id) => id.length >= 1 && id.length <= 255 && !id.includes("\0"))

const escaped = FastCheck.constantFrom("\\u0000", "\\ud800", "\\udfff\\ud800", "\\/", "\\u00e9", '\\"', "\\n")

const jsonString = FastCheck.oneof(
  FastCheck.string({ unit: "binary" }).map((text) => JSON.stringify(text)),
  FastCheck.array(FastCheck.oneof(escaped, FastCheck.constantFrom("a", "é", "e\u0301", "😀")), { maxLength: 6 }).map(
    (parts) => `"${parts.join("")}"`,
  ),
)

const jsonNumber = FastCheck.constantFrom(
  "0",
  "-0",
  "1.0",
  "1e400",
  "12345678901234567890",
  "0.1e-7",
  "9007199254740993",
)

/** JSON text in any spelling: repeated and odd keys, spaces, numbers that no double holds. Each unit of it counts. */
export const anyJson: FastCheck.Arbitrary<string> = FastCheck.letrec<{ readonly value: string }>((tie) => ({
  value: FastCheck.oneof(
    { maxDepth: 3, depthSize: "small" },
    jsonString,
    jsonNumber,
    FastCheck.constantFrom(
      "null",
      "true",
      "false",
      "{}",
      "[]",
      ' { "b" : 1,\n\t"a":2, "b":3 } ',
      '{"__proto__":{"x":1}}',
    ),
    FastCheck.array(tie("value"), { maxLength: 3 }).map((items) => `[${items.join(", ")}]`),
    FastCheck.array(FastCheck.tuple(jsonString, tie("value")), { maxLength: 3 }).map(
      (fields) => `{${fields.map(([key, value]) => `${key}:${value}`).join(",")}}`,
    ),
  ),
})).value

/** Tried on every run, whatever chance draws. */
export const idExamples: ReadonlyArray<Array<string>> = ["😀\u{10ffff}", " é ", "''\"%_\\", "\ufeff\u200d\r\n"].map(
  (id) => Array.from({ length: 9 }, (_, n) => `${id}${n}`),
)

/** Tried on every run, whatever chance draws. */
export const jsonExamples: ReadonlyArray<string> = [
  ' \t\r\n{ "b" : 1, "a" : 2, "b" : 3 } ',
  '"\\u0000"',
  '"\\ud800"',
  '{"\\u0000\\udfff":"\\u00e9é\\/"}',
  "[1.0,1e400,12345678901234567890,-0,9007199254740993]",
  '{"__proto__":{"x":1},"constructor":null}',
]

/** No two of these are equal, though some database, locale, collation or type affinity says that they are. */
export const lookalikes: ReadonlyArray<string> = [
  ...["a", "A", "a ", " a", "a\t", "a\n", "\ufeffa", "a\u200d", "a\u00ad", "ａ", "á", "a\u0301", "à"],
  ...[
    "é",
    "e\u0301",
    "É",
    "Å",
    "\u212b",
    "A\u030a",
    "ß",
    "ss",
    "ẞ",
    "i",
    "I",
    "ı",
    "İ",
    "ﬁ",
    "fi",
    "σ",
    "ς",
    "K",
    "\u212a",
  ],
  ...["1", "01", "1.0", "1e0", "+1", "１", "0x1", "true", "null", "NULL", "undefined"],
  ...["%", "_", "%%", "a%", "a_", "*", "?", "[a]", "\\", "\\\\", "'", "''", '"', "`", ";", "--", "$1", ":a", "?1"],
  ...["/", "a/", "/a", "a/b", "a:b", "a#b", ".", "..", "~", "~002f", " ", "  ", "\t", "\u0001", "\u007f", "\u2028"],
  ...[
    "__proto__",
    "constructor",
    "prototype",
    "toString",
    "😀",
    "😁",
    "\u{10ffff}",
    "\ue000",
    "x".repeat(254),
    "x".repeat(255),
  ],
]
