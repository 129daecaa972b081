import { Schema } from "effect"
import { describe, expect, it } from "vitest"
import { compile, RetryLater, Workflow } from "../../src/index.js"

const now = new Date("2026-03-01T12:00:00.250Z")

describe("RetryLater.fromHeader", () => {
  it.each([
    ["120", 120_000],
    [" 3 ", 3_000],
    ["0", 0],
    ["Sun, 01 Mar 2026 12:00:05 GMT", 4_750],
    ["Sunday, 01-Mar-26 12:00:05 GMT", 4_750],
    ["Sun Mar  1 12:00:05 2026 GMT", 4_750],
    ["Sun, 01 Mar 2026 11:00:00 GMT", 0],
    ["Sun, whenever", 0],
    ["-5", 0],
    ["1.5", 0],
    ["1e9", 0],
    ["soon", 0],
    ["", 0],
    [null, 0],
    [undefined, 0],
  ])("reads %j as %d ms", (value, ms) => {
    const error = RetryLater.fromHeader(value, now)
    expect(error.retryAfterMs).toBe(ms)
    expect([error._tag, error.isRetryable]).toEqual(["RetryLater", true])
  })
})

describe("RetryLater", () => {
  it("takes durations, in whole milliseconds that round up; what is no duration asks for nothing", () => {
    const of = (after: any) => new RetryLater({ problem: "busy", after }).retryAfterMs
    expect([of("3 seconds"), of(1.2), of("1 hour")]).toEqual([3_000, 2, 3_600_000])
    for (const after of [-1, NaN, "soon", "-1 seconds", undefined]) expect(of(after)).toBe(0)
  })

  it("says what is to be tried again", () => {
    expect(new RetryLater({ problem: "429", after: 5 }).message).toBe("To be tried again later: 429")
  })
})

const diagnosticsOf = (options: object) =>
  Workflow.make("w", { version: 1, input: Schema.Struct({ of: Schema.String }), ...(options as {}) }).compile()
    .diagnostics

describe("limits and priorities", () => {
  it("compile, and are no part of the plan: a deploy may change them under runs that are there", () => {
    const key = ({ input }: { readonly input: { readonly of: string } }) => input.of
    const limits = {
      concurrency: 4,
      perKey: { key, concurrency: 1 },
      rate: { count: 9, per: "1 minute", perKey: true },
    }
    const limited = Workflow.make("w", {
      version: 1,
      input: Schema.Struct({ of: Schema.String }),
      limits: limits as never,
    })
    const plain = Workflow.make("w", { version: 1, input: Schema.Struct({ of: Schema.String }) })
    expect(limited.compile().plan).toEqual(plain.compile().plan)
    expect(diagnosticsOf({ limits, priority: () => 3 })).toEqual([])
    expect(diagnosticsOf({ priority: -3 })).toEqual([])
  })

  it.each<readonly [option: string, options: object]>([
    ["limits", { limits: null }],
    ["limits", { limits: 3 }],
    ["limits.concurrency", { limits: { concurrency: 0 } }],
    ["limits.concurrency", { limits: { concurrency: 1.5 } }],
    ["limits.concurrency", { limits: { concurrency: Infinity } }],
    ["limits.perKey.key", { limits: { perKey: { concurrency: 1 } } }],
    ["limits.perKey.key", { limits: { perKey: null } }],
    ["limits.perKey.concurrency", { limits: { perKey: { key: () => "k", concurrency: -1 } } }],
    ["limits.rate.count", { limits: { rate: { count: 0, per: 1_000 } } }],
    ["limits.rate.count", { limits: { rate: { count: NaN, per: 1_000 } } }],
    ["limits.rate.per", { limits: { rate: { count: 1, per: 0 } } }],
    ["limits.rate.per", { limits: { rate: { count: 1, per: "soon" } } }],
    ["limits.rate.per", { limits: { rate: { count: 1, per: "60 days" } } }],
    ["limits.rate.perKey", { limits: { rate: { count: 1, per: 1_000, perKey: true } } }],
    ["priority", { priority: 1.5 }],
    ["priority", { priority: "high" }],
  ])("%s is refused in %j", (option, options) => {
    const diagnostics = diagnosticsOf(options)
    expect(diagnostics.map(({ code, step }) => [code, step])).toContainEqual(["CRN110", null])
    expect(diagnostics[0]!.message.startsWith(`CRN110: ${option} of workflow 'w' must be `)).toBe(true)
  })

  it("are checked for callers without types as well", () => {
    const definition = { ...(Workflow.make("w", { version: 1, input: Schema.String }).compile().definition as object) }
    expect(compile({ ...definition, limits: { concurrency: "4" } } as never)._tag).toBe("Left")
  })
})
