import { describe, expect, it } from "vitest"
import { classify } from "../src/internal/sqlStates.js"

const meanings = {
  "40001": "Busy",
  "40P01": "Busy",
  "55P03": "Busy",
  "26000": "Busy",
  "42P05": "Busy",
  "57014": "Unavailable",
  "25P03": "Unavailable",
  "25P04": "Unavailable",
  "57P01": "Unavailable",
  "57P02": "Unavailable",
  "57P03": "Unavailable",
  "57P05": "Unavailable",
  "08000": "Unavailable",
  "08001": "Unavailable",
  "08003": "Unavailable",
  "08004": "Unavailable",
  "08006": "Unavailable",
  "08P01": "Unavailable",
  "3D000": "Unavailable",
  "58030": "Unavailable",
  "53200": "Unavailable",
  "53300": "Unavailable",
  "53400": "Unavailable",
  "53100": "Full",
  "28000": "Permission",
  "28P01": "Permission",
  "25006": "Permission",
  "42501": "Permission",
  "3F000": "SchemaVersion",
  "42P01": "SchemaVersion",
  "42703": "SchemaVersion",
  "22003": "Constraint",
  "22021": "Constraint",
  "22P02": "Constraint",
  "23502": "Constraint",
  "23503": "Constraint",
  "23505": "Constraint",
  "23514": "Constraint",
  "54000": "Constraint",
  XX001: "Corrupt",
  XX002: "Corrupt",
  XX000: "Unknown",
  "42601": "Unknown",
  "0A000": "Unknown",
  ECONNREFUSED: "Unavailable",
  ECONNRESET: "Unavailable",
  ECONNABORTED: "Unavailable",
  EPIPE: "Unavailable",
  ETIMEDOUT: "Unavailable",
  EHOSTUNREACH: "Unavailable",
  ENETUNREACH: "Unavailable",
  ENETDOWN: "Unavailable",
  ENOTFOUND: "Unavailable",
  EAI_AGAIN: "Unavailable",
  ENOENT: "Unavailable",
  EACCES: "Permission",
  ERR_INVALID_ARG_TYPE: "Unknown",
  DEPTH_ZERO_SELF_SIGNED_CERT: "Unknown",
} as const

describe("what a code means", () => {
  it.each(Object.entries(meanings))("%s is %s", (code, reason) => {
    expect(classify(Object.assign(new Error("any text"), { code }))).toBe(reason)
  })

  it("is found inside the errors that hold it", () => {
    expect(classify({ _tag: "SqlError", cause: { cause: { code: "40P01" } } })).toBe("Busy")
  })

  it("is never read from a message", () => {
    expect(classify(new TypeError("deadlock detected (40P01)"))).toBe("Unknown")
  })

  it("is a lost connection where pg says nothing but what it found out by itself", () => {
    expect(classify(new Error("any text"))).toBe("Unavailable")
    expect(classify({ _tag: "SqlError", cause: new Error("any text") })).toBe("Unavailable")
    expect(classify(new RangeError("any text"))).toBe("Unknown")
  })

  it("is unknown for what is no error, and for causes that hold themselves", () => {
    const circular: { cause?: unknown } = {}
    circular.cause = circular
    for (const odd of [undefined, null, "40001", 5, circular]) expect(classify(odd)).toBe("Unknown")
  })
})
