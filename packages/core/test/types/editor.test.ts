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

describe("hovers of what steers a run", () => {
  const made = "{ effects: [], output: Schema.String }"
  const shown = (added: string): string =>
    oneSpace(
      hoverOf(`${head}flow.${added}.step("last", { effects: [], output: Schema.Void }, ({ results/*^*/ }) => {})`),
    ).replace("(parameter) results: ", "")

  it.each<readonly [string, string, string]>([
    [
      "a branch is a union told apart by case",
      `branch("route", ({ input }) => (input.email === "" ? "none" : "some"), {
        none: (f) => f, some: (f) => f.step("read", ${made}, () => "") })`,
      `{ readonly route: { readonly case: "some"; readonly results: { readonly read: string; }; } | { readonly case: "none"; readonly results: {}; }; }`,
    ],
    [
      "a match is a union told apart by case",
      `match("act", "tool", () => ({ tool: "stop" }) as { tool: "stop" } | { tool: "go" }, {
        stop: (f) => f, go: (f) => f.step("read", ${made}, () => "") })`,
      `{ readonly act: { readonly case: "stop"; readonly results: {}; } | { readonly case: "go"; readonly results: { readonly read: string; }; }; }`,
    ],
    [
      "a loop is its state",
      `loop("agent", { state: Schema.Struct({ notes: Schema.Array(Schema.String) }), initial: () => ({ notes: [] }), maxIterations: 3 },
        (f) => f, ({ state }) => ({ done: true, state }))`,
      "{ readonly agent: { readonly notes: readonly string[]; }; }",
    ],
    [
      "a list is a reader of its items",
      `forEach("each", { items: () => ["a"], key: (id) => id, onFailure: "collect" }, (f) => f.step("read", ${made}, () => ""))`,
      `{ readonly each: Items<{ readonly read: string; }, ItemError<never>>; }`,
    ],
    [
      "a parallel is an object of its arms",
      `parallel("both", { one: (f) => f.step("read", ${made}, () => ""), two: (f) => f.sleep("pause", "1 day") })`,
      "{ readonly both: { readonly one: { readonly read: string; }; readonly two: {}; }; }",
    ],
    [
      "a signal is its payload, or an outcome",
      `signal("paid", { schema: Schema.Struct({ cents: Schema.Int }) })
        .signal("late", { schema: Schema.String, timeout: "1 day", onTimeout: "continue" })`,
      `{ readonly paid: { readonly cents: number; }; readonly late: Outcome<string, "timeout">; }`,
    ],
    [
      "a review is how it ended",
      `review("ok", { decision: Schema.String, show: () => 1, deadline: "1 day", onReject: "continue", onTimeout: "reject" })`,
      "{ readonly ok: Rejected | Expired | Approved<string>; }",
    ],
    [
      "a child is its output, or an outcome",
      `child("one", flow.output(Schema.String, () => "").compile(), { input: ({ input }) => input })
        .child("two", flow.compile(), { input: ({ input }) => input, settle: true })`,
      "{ readonly one: string; readonly two: Outcome<void, RunFailed | RunCanceled>; }",
    ],
    ["a sleep is nothing", `sleep("pause", "1 day").sleepUntil("day", new Date())`, "{}"],
  ])("%s", (_, added, results) => {
    expect(shown(added)).toBe(results)
  })

  it("item and outer inside a list inside a loop", () => {
    const inside = (
      what: string,
    ): string => `${head}flow.loop("agent", { state: Schema.Number, initial: () => 1, maxIterations: 3 },
      (f) => f.forEach("each", { items: () => [{ id: "a" }], key: (item) => item.id },
        (g) => g.step("x", { effects: [], output: Schema.Void }, ({ ${what}/*^*/ }) => {})),
      ({ state }) => ({ done: true, state }))`
    expect(oneSpace(hoverOf(inside("item")))).toBe("(parameter) item: { id: string; }")
    expect(oneSpace(hoverOf(inside("outer")))).toBe("(parameter) outer: TurnScope<number, {}>")
  })
})

describe("messages", () => {
  const typeTests = ["rejected.tst.ts", "controlRejected.tst.ts"]
    .map((name) => readFileSync(new URL(name, import.meta.url), "utf8"))
    .join("\n")
  const expected = [...typeTests.matchAll(/"(CRN\d{3}: [^"\n]+)"/g)].map((match) => match[1]!)

  it("the type tests hold many of them", () => {
    expect(expected.length).toBeGreaterThan(90)
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

  it("name the case, whatever it is called: one like a method of strings, or of lists", () => {
    for (const name of ["small", "at", "error", "length"]) {
      const cases = (given: string): string =>
        `${head}flow.branch("route", ({ input }) => (input.email === "" ? "${name}" : "other"), { ${given} })`
      expect(errorsOf(cases("other: (f) => f")).join()).toContain(`CRN107: branch 'route' has no case '${name}'`)
      expect(errorsOf(cases(`other: (f) => f, ${name}: (f) => f, x: (f: any) => f`)).join()).toContain(
        "CRN107: branch 'route' never takes case 'x'",
      )
    }
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
