import { describe, expect, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { DataVersion, Effects, OnUnknown, Operation, Workflow } from "../../src/index.js"
import { rowsFingerprint } from "../../src/dsl/internal/rowsFingerprint.js"

const bag = (...rows: ReadonlyArray<unknown>) => rowsFingerprint(rows, false)

describe("the fingerprint of rows", () => {
  it("is another one for every value, however alike two of them look", () => {
    const values = [
      ...[null, undefined, "null", "", " ", "undefined", 0, -0, "0", 0n, false, "false", true, 1, 1n, "1", 1.5, "1.5"],
      ...[Number.NaN, "NaN", new Date(0), new Date(1), "1970-01-01T00:00:00.000Z", new Date(Number.NaN)],
      ...[
        2 ** 53,
        BigInt(2 ** 53),
        BigInt(2 ** 53) + 1n,
        Buffer.from([]),
        Buffer.from([0]),
        Buffer.from([0, 255]),
        "00ff",
      ],
      ...[
        [],
        [null],
        ["a", "b"],
        ["a,b"],
        {},
        { a: 1 },
        { a: null },
        { b: 1 },
        '{"a":1}',
        "é",
        "e\u0301",
        "\ud800",
        "a\nb",
      ],
    ]
    expect(new Set(values.map((value) => bag({ column: value }))).size).toBe(values.length)
  })

  it("does not depend on how the client spells bytes, nor on the order of columns", () => {
    const bytes = new Uint8Array([9, 0, 255, 9])
    expect(bag({ a: Buffer.from([0, 255]) })).toBe(bag({ a: bytes.subarray(1, 3) }))
    expect(bag({ a: new Uint8Array([0, 255]).buffer })).toBe(bag({ a: bytes.subarray(1, 3) }))
    expect(bag({ a: 1, b: { x: 1, y: 2 } })).toBe(bag({ b: { y: 2, x: 1 }, a: 1 }))
  })

  it("has the name of each column", () => {
    expect(bag({ a: 1 })).not.toBe(bag({ b: 1 }))
    expect(bag({ a: 1, b: 2 })).not.toBe(bag({ a: 2, b: 1 }))
  })

  it("counts each row as often as it is there, in whatever order, unless the order counts", () => {
    const [a, b] = [{ n: 1 }, { n: 2 }]
    expect(bag(a, b)).toBe(bag(b, a))
    expect(bag(a, a, b)).not.toBe(bag(a, b, b))
    expect(bag(a)).not.toBe(bag(a, a))
    expect(bag()).not.toBe(bag({}))
    expect(rowsFingerprint([a, b], true)).not.toBe(rowsFingerprint([b, a], true))
    expect(rowsFingerprint([a, b], true)).toBe(rowsFingerprint([{ n: 1 }, { n: 2 }], true))
  })
})

describe("a step that declares data", () => {
  const Outside = DataVersion.make("outside", { capture: (key: string) => Effect.succeed({ value: key, token: key }) })
  const Rows = DataVersion.query("rows", () => ({ text: "select 1" }))
  const Mail = Operation.make("mail", {
    ...{ payload: Schema.Void, success: Schema.Void, onUnknown: OnUnknown.review() },
  })
  const compiled = (effects: ReadonlyArray<unknown>, options: object = {}) =>
    (Workflow.make("w", { version: 1, input: Schema.Void }) as any)
      .step("s", { effects, output: Schema.Void, ...options }, () => undefined)
      .compile()
  const said = (...of: Parameters<typeof compiled>) =>
    compiled(...of).diagnostics.map(({ message }: { readonly message: string }) => message)

  it("says so in its plan, with what is to be done where it has moved", () => {
    const [step] = compiled([Outside, Effects.read("model")]).plan.right.nodes
    expect(step).toMatchObject({
      effects: [
        { kind: "data", name: "outside" },
        { kind: "read", name: "model" },
      ],
      onStale: "review",
    })
    expect(compiled([Rows], { onStale: "rerun" }).plan.right.nodes[0].onStale).toBe("rerun")
    expect("onStale" in compiled([]).plan.right.nodes[0]).toBe(false)
  })

  it("may not perform as well, and reads in a transaction what stands in its database", () => {
    expect(said([Effects.transaction, Rows])).toEqual([])
    expect(said([Effects.transaction, Outside])[0]).toContain("CRN108: step 's' reads and performs 'transaction'")
    expect(said([Mail, Outside])[0]).toContain("CRN108: step 's' reads and performs 'mail'")
    expect(said([Mail, Rows])[0]).toContain("CRN108")
  })

  it("has a word for what is to be done that is one, and none where it declares nothing", () => {
    expect(said([Outside], { onStale: "later" })[0]).toContain("CRN110: onStale of step 's' must be \"rerun\" or")
    expect(said([], { onStale: "rerun" })[0]).toContain("CRN110: onStale of step 's' must be left out of a step")
  })

  it("tells its data apart by their names, and has all that they are read by", () => {
    const Other = DataVersion.make("outside", { capture: () => Effect.succeed({ value: 1, token: 1 }) })
    expect(said([Outside, Outside])).toEqual([])
    expect(said([Outside, Other])[0]).toContain("CRN104: data name 'outside' stands for two data versions of step 's'")
    expect(said([(DataVersion as any).make("", { capture: () => undefined })])[0]).toContain("CRN104: the name of data")
    expect(said([(DataVersion as any).make("x")])[0]).toContain("CRN107: step 's' has no capture of data 'x'")
    expect(said([(DataVersion as any).query("x")])[0]).toContain("CRN107: step 's' has no query of data 'x'")
    const wrong = { capture: () => undefined, isCurrent: 1 }
    expect(said([(DataVersion as any).make("x", wrong)])[0]).toContain("CRN107: step 's' has no function isCurrent")
  })
})
