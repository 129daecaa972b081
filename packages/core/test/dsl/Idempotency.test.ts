/** Keys on their way to a provider. */
import { describe, expect, it } from "vitest"
import { Idempotency } from "../../src/index.js"

describe("an idempotency key", () => {
  const long = "k".repeat(255)

  it("goes into the usual header, or the one that is named", () => {
    expect(Idempotency.headers("a#0")).toEqual({ "Idempotency-Key": "a#0" })
    expect(Idempotency.headers(long)).toEqual({ "Idempotency-Key": long })
    expect(Idempotency.headers("a#0", { name: "PayPal-Request-Id" })).toEqual({ "PayPal-Request-Id": "a#0" })
  })

  it("is hashed where it is too long: the same for the same key, another for another", () => {
    const short = Idempotency.fit(long, 45)
    expect(short).toMatch(/^[0-9a-f]{45}$/)
    expect(Idempotency.fit(long, 45)).toBe(short)
    expect(Idempotency.fit(`${long.slice(1)}x`, 45)).not.toBe(short)
    expect(Idempotency.headers(long, { maxLength: 64 })["Idempotency-Key"]).toHaveLength(64)
  })

  it("is not shortened to what could stand for two", () => {
    expect(() => Idempotency.fit(long, 31)).toThrow(RangeError)
    expect(() => Idempotency.fit("short", Number.NaN)).toThrow(RangeError)
  })
})
