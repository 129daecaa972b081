/** Two copies of the package in one process: a library was built with another one, or a bundler took both. */
import { Effect, Either, Schema } from "effect"
import { describe, expect, it, vi } from "vitest"
import * as first from "../../src/index.js"

vi.resetModules()
const second = await import("../../src/index.js")

describe("two copies of the package", () => {
  it("are two", () => {
    expect(second.Operation).not.toBe(first.Operation)
  })

  it("take each other's operations, fragments and workflows", () => {
    const onUnknown = first.OnUnknown.retryWithKey({ keyWindow: "24 hours" })
    const Send = first.Operation.make("mail.send", { payload: Schema.String, success: Schema.Void, onUnknown })
    const greeting = first.Workflow.fragment<{ input: string; results: {} }>()((flow) =>
      flow.perform("send", Send, { payload: ({ input }) => input }),
    )
    const flow = (second.Workflow as any)
      .make("w", { version: 1, input: Schema.String })
      .use(greeting)
      .step("again", { effects: [Send], output: Schema.Void }, () => {})
      .perform("choice", second.Operation.oneOf({ mail: Send as never }), { payload: () => null })
      .compile()
    expect(flow.diagnostics).toEqual([])
    expect(Either.isRight(first.compile(flow.definition))).toBe(true)
  })

  it("understand each other's errors and unvalidated outputs by their tags", () => {
    const refused = Effect.runSync(Effect.flip(first.codecOf(Schema.String).gate(5, { place: "x" })))
    const caught = Effect.runSync(
      Effect.catchTag(Effect.fail(refused), "InvalidValue", (error) => Effect.succeed(error.field)),
    )
    expect(caught).toBe("")
    expect(new second.NotPerformed({ problem: "busy" })._tag).toBe(new first.NotPerformed({ problem: "busy" })._tag)
  })
})
