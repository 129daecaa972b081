/** What `compile` says of a workflow's window, to callers without types, and what it makes of it. */
import { Either, Schema } from "effect"
import { describe, expect, it } from "vitest"
import { Effects, Workflow, type Plan } from "../../src/index.js"
import { Charge } from "../runtime/support/operations.js"

const compiled = (window: unknown): any =>
  (Workflow.make as any)("w", { version: 1, input: Schema.Null, window })
    .step("a", { effects: [], output: Schema.Void }, () => {})
    .compile()
const messages = (window: unknown): ReadonlyArray<string> =>
  compiled(window).diagnostics.map(({ message }: { readonly message: string }) => message)
const planOf = (window: unknown): Plan => Either.getOrThrow(compiled(window).plan) as Plan
const base = { schema: Schema.String, initial: "" }

describe("compile", () => {
  it.each<readonly [string, unknown, ReadonlyArray<string>]>([
    ["nothing wrong", base, []],
    ["no schema", { initial: "" }, ["CRN105: window of workflow 'w' has no schema"]],
    ["something else", 7, ["CRN105: window of workflow 'w' has no schema"]],
    [
      "a schema that is not JSON",
      { ...base, schema: Schema.DateFromSelf },
      ["CRN105: window of workflow 'w' does not encode to JSON"],
    ],
    [
      "no room",
      { ...base, maxBytes: 0 },
      ["CRN110: window.maxBytes of workflow 'w' must be a whole number from 1; got 0"],
    ],
    ["a part of a byte", { ...base, maxBytes: 1.5 }, ["CRN110: window.maxBytes of workflow 'w'"]],
    [
      "no function to run",
      { ...base, compact: { effects: [] } },
      ["CRN107: step 'window/compact' has no function to run"],
    ],
    [
      "no effects",
      { ...base, compact: { run: () => "" } },
      ["CRN101: effects of step 'window/compact' must be written out"],
    ],
    [
      "an operation",
      { ...base, compact: { effects: [Charge], run: () => "" } },
      ["CRN101: compact of the window may only read"],
    ],
    [
      "a transaction",
      { ...base, compact: { effects: [Effects.transaction], run: () => "" } },
      ["CRN101: compact of the window may only read"],
    ],
    [
      "something that is no effect",
      { ...base, compact: { effects: [7], run: () => "" } },
      ["CRN103: step 'window/compact' lists something"],
    ],
    [
      "options out of range",
      { ...base, compact: { effects: [], run: () => "", retry: { times: -1 }, timeout: 0 } },
      ["CRN110: timeout of compact of the window must be", "CRN110: retry.times of compact of the window must be"],
    ],
  ])("names what is wrong with a window: %s", (_, window, expected) => {
    const found = messages(window)
    expect(found).toHaveLength(expected.length)
    expected.forEach((text, index) => expect(found[index]).toContain(text))
  })

  it("makes the window a part of the plan, with the step that compacts it; plans without one are as they were", () => {
    expect(planOf(undefined)).not.toHaveProperty("window")
    expect(planOf(null)).not.toHaveProperty("window")
    expect(planOf(base).window).toEqual({
      schema: expect.objectContaining({ type: "string" }),
      maxBytes: 262_144,
      compact: null,
    })
    expect(planOf({ ...base, compact: () => "" }).window!.compact).toBeNull()
    const compact = { effects: [Effects.read("openai")], run: () => "", retry: { times: 2 }, timeout: "1 minute" }
    expect(planOf({ ...base, maxBytes: 10, compact }).window).toMatchObject({
      maxBytes: 10,
      compact: {
        kind: "step",
        name: "window/compact",
        path: ":window[]/compact",
        effects: [{ kind: "read", name: "openai" }],
        operations: [],
        timeoutMs: 60_000,
        retry: { times: 2, delayMs: 1_000, maxDelayMs: 300_000 },
      },
    })
  })

  it("makes another plan of another limit or schema: runs that wait are looked at anew", () => {
    const hashes = [undefined, base, { ...base, maxBytes: 10 }, { ...base, schema: Schema.Number, initial: 1 }].map(
      (window) => planOf(window).hash,
    )
    expect(new Set(hashes).size).toBe(4)
  })
})
