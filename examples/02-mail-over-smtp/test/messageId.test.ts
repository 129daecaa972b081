import { describe, expect, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import { maxMessageIdLength, messageIdOf } from "../src/messageId.js"

/** `"<" dot-atom-text "@" dot-atom-text ">"`, by the letters of RFC 5322, section 3.2.3. */
const atom = "[A-Za-z0-9!#$%&'*+\\-/=?^_`{|}~]+"
const messageId = new RegExp(`^<${atom}(\\.${atom})*@${atom}(\\.${atom})*>$`)

/** What Cairn makes of namespace, run id, path and generation: printable ASCII, at most 255 characters. */
const keys = fc
  .array(fc.integer({ min: 0x20, max: 0x7e }), { minLength: 1, maxLength: 255 })
  .map((codes) => String.fromCharCode(...codes))

const longDomain = `${`${"a".repeat(62)}.`.repeat(4)}b`

describe("the Message-ID of a key", () => {
  it("is the same for the same key, today and after the next release", () => {
    expect(messageIdOf("default/B-1041/mail#0", "bookshop.example")).toBe(
      "<9c6f648742b1109bbd832277de34e38e@bookshop.example>",
    )
  })

  it("is a valid msg-id of the same length whatever the key holds", () => {
    fc.assert(
      fc.property(keys, (key) => {
        const id = messageIdOf(key, "bookshop.example")
        expect(id).toMatch(messageId)
        expect(id).toHaveLength("bookshop.example".length + 35)
      }),
    )
  })

  it.each(["", "default/agent[3]/route:large/<send>@x#0", "k".repeat(255), "a\r\nBcc: everybody@reader.example"])(
    "is valid for the key %j",
    (key) => {
      expect(messageIdOf(key, "bookshop.example")).toMatch(messageId)
    },
  )

  it("differs for another key, were it only another generation, and for another domain", () => {
    const ids = ["default/a/mail#0", "default/a/mail#1", "default/b/mail#0", "Default/a/mail#0"].flatMap((key) =>
      ["one.example", "two.example"].map((domain) => messageIdOf(key, domain)),
    )
    expect(new Set(ids).size).toBe(8)
  })

  it("stays within its bound with the longest domain, and on one line of a mail with any", () => {
    expect(longDomain).toHaveLength(253)
    expect(messageIdOf("k", longDomain)).toHaveLength(maxMessageIdLength)
    expect("Message-ID: ".length + maxMessageIdLength).toBeLessThan(998)
  })

  it.each(["", "bookshop..example", ".example", "book shop", "a@b", "a>b", "a\r\nb", `b${longDomain}`])(
    "is refused for %j, which is no domain name",
    (domain) => {
      expect(() => messageIdOf("k", domain)).toThrow(RangeError)
    },
  )
})
