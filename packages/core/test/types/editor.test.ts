/** What an editor shows: hovers that can be read, messages that fit. */
import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { errorsOf, hoverOf } from "./typescript.js"

const head = `import { Effect, Schema } from "effect"
import { Effects, OnUnknown, Operation, Workflow } from "../../src/index.js"
const onUnknown = OnUnknown.retryWithKey({ keyWindow: "24 hours" })
const Charge = Operation.make("payments.charge", {
  payload: Schema.Struct({ cents: Schema.Int }), success: Schema.Struct({ id: Schema.String }), onUnknown })
const Email = Operation.make("mail.send", {
  payload: Schema.Struct({ to: Schema.String }), success: Schema.Void, onUnknown })
const flow = Workflow.make("orders", { version: 1, input: Schema.Struct({ email: Schema.String }) })
`

const oneSpace = (text: string): string => text.replaceAll(/\s+/g, " ")

describe("hovers", () => {
  it("results in a later step are one object type, a property a step", () => {
    const hover = hoverOf(`${head}flow
      .step("extract", { effects: [], output: Schema.Struct({ cents: Schema.Int, due: Schema.Date }) }, () => ({ cents: 1, due: new Date() }))
      .perform("charge", Charge, { payload: ({ results }) => ({ cents: results.extract.cents }) })
      .perform("note", Email, { optional: true, payload: () => null })
      .step("last", { effects: [], output: Schema.Void }, ({ results/*^*/ }) => {})`)
    expect(oneSpace(hover)).toBe(
      "(parameter) results: { readonly extract: { readonly cents: number; readonly due: Date; }; readonly charge: { readonly id: string; }; readonly note: void | null; }",
    )
  })

  it("input is the schema's type", () => {
    const hover = hoverOf(`${head}flow.step("a", { effects: [], output: Schema.Void }, ({ input/*^*/ }) => {})`)
    expect(oneSpace(hover)).toBe("(parameter) input: { readonly email: string; }")
  })

  it("results after a fragment are still one object type", () => {
    const hover = hoverOf(`${head}
      const greeting = Workflow.fragment<{ input: { email: string }; results: {} }>()((f) =>
        f.step("greet", { effects: [], output: Schema.String }, ({ input }) => input.email))
      flow.use(greeting).step("last", { effects: [], output: Schema.Void }, ({ results/*^*/ }) => {})`)
    expect(oneSpace(hover)).toBe("(parameter) results: { readonly greet: string; }")
  })
})

describe("messages", () => {
  const typeTests = readFileSync(new URL("rejected.tst.ts", import.meta.url), "utf8")
  const expected = [...typeTests.matchAll(/"(CRN\d{3}: [^"\n]+)"/g)].map((match) => match[1]!)

  it("the type tests hold many of them", () => {
    expect(expected.length).toBeGreaterThan(50)
  })

  it("are under 200 characters", () => {
    expect(expected.filter((message) => message.length >= 200)).toEqual([])
  })

  it("are not cut off where a build prints them", () => {
    const errors =
      errorsOf(`${head}flow.step("a-step-with-a-rather-long-name", { effects: [Effects.read("model"), Email],
      output: Schema.Void }, () => Effect.void)`)
    expect(errors).toHaveLength(1)
    expect(errors[0]).toContain(
      "CRN108: step 'a-step-with-a-rather-long-name' reads and performs 'mail.send'; after a crash the read would run again and disagree with what was sent; read in the step before",
    )
  })

  it("stand at the wrong value: an error a mistake, also in a chain that goes on", () => {
    const errors = errorsOf(`${head}flow
      .step("one", { effects: [Charge, Email], output: Schema.Void }, () => Effect.void)
      .step("two", { effects: [], output: Schema.Void }, () => Email.perform({ to: "" }))
      .step("three", { effects: [], output: Schema.DateFromSelf }, () => new Date())
      .step("one", { effects: [], output: Schema.Void }, () => {})`)
    expect(errors.map((error) => /CRN\d{3}/.exec(error)?.[0])).toEqual(["CRN101", "CRN102", "CRN105", "CRN104"])
  })
})
