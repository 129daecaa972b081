/** Two copies of the package in one process: a library was built with another one, or a bundler took both. */
import { Effect, Either, Layer, Logger, Schema } from "effect"
import { describe, expect, it, vi } from "vitest"
import * as first from "../../src/index.js"

vi.resetModules()
const second = await import("../../src/index.js")

const quiet = Logger.remove(Logger.defaultLogger)

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

  it("refuse text that the other one found to be no JSON, and keep it as it was", async () => {
    const workflow = first.Workflow.make("w", { version: 1, input: Schema.Null })
      .step(
        "ask",
        { effects: [], output: Schema.Struct({ cents: Schema.Int }), onInvalid: { retries: 0, then: "review" } },
        () => second.Output.json("Sure! {"),
      )
      .compile()
    const program = Effect.gen(function* () {
      const handle = yield* first.Cairn.start(workflow, null, { runId: "r" })
      const error = yield* Effect.flip(handle.result)
      const store = yield* first.CheckpointStore
      const { attempts } = yield* store.loadOpen("default", "r", ["ask"])
      return { error, kept: attempts.map(({ output }) => output) }
    })
    const live = first.Worker.layer({ workflows: [workflow] }).pipe(Layer.provideMerge(first.MemoryStore.layer))
    const { error, kept } = await Effect.runPromise(program.pipe(Effect.provide(live), Effect.provide(quiet)))
    expect(error).toMatchObject({ _tag: "RunParked", reason: "OutputInvalid" })
    expect(error.message).toContain("it is no JSON")
    expect(kept).toEqual([JSON.stringify("Sure! {")])
  })
})
