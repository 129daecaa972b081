/** What a step may emit, and what a reader is given. */
import { Effect, Schema, Stream } from "effect"
import { describe, expect, test } from "tstyche"
import { Cairn, Events, Live, Workflow, type LiveEvent, type LiveValue } from "../../src/index.js"
import { flow } from "./fixtures.js"

describe("emitting", () => {
  test("needs nothing, so that it changes no step's requirements", () => {
    expect(Live.emit("word")).type.toBe<Effect.Effect<void>>()
    expect(Stream.mkString(Stream.tap(Stream.make("a"), Live.emit))).type.toBe<Effect.Effect<string>>()
    async function* words() {
      yield "a"
    }
    expect(Live.text(words())).type.toBe<Effect.Effect<string, unknown>>()
    flow.step("tell", { effects: [], output: Schema.String }, ({ emit }) => {
      expect(emit).type.toBe<(chunk: LiveValue) => void>()
      return Effect.as(Live.emit({ tokens: 1 }), "told")
    })
    flow.step("text", { effects: [], output: Schema.String }, () => Live.text(words()))
  })

  test("takes text and values of JSON", () => {
    interface Delta {
      readonly text: string
    }
    const delta: Delta = { text: "a" }
    expect(Live.emit).type.toBeCallableWith(delta)
    expect(Live.emit).type.toBeCallableWith(["a", 1, null])
    expect(Live.emit).type.not.toBeCallableWith(undefined)
    expect(Live.emit).type.not.toBeCallableWith(1n)
    expect(Live.text).type.not.toBeCallableWith(["a"])
  })
})

describe("reading", () => {
  const workflow = Workflow.make("w", { version: 1, input: Schema.Null })
    .step("tell", { effects: [], output: Schema.String }, () => "")
    .compile()

  test("gives events that are told apart by their tags", () => {
    const handle = Effect.runSync(
      Cairn.attach(workflow, { runId: "r" }) as Effect.Effect<any>,
    ) as Effect.Effect.Success<ReturnType<typeof Cairn.attach<typeof workflow>>>
    expect(handle.live()).type.toBe<AsyncIterable<LiveEvent>>()
    expect<Effect.Effect.Success<ReturnType<typeof Cairn.live<typeof workflow>>>>().type.toBe<
      AsyncIterable<LiveEvent>
    >()
    expect<Extract<LiveEvent, { readonly _tag: "Committed" }>["seq"]>().type.toBe<number>()
    expect<LiveEvent["_tag"]>().type.toBe<"Began" | "Chunk" | "Skipped" | "Discarded" | "Committed">()
    expect(Events.toServerSentEvents(handle.live(), { keepAlive: "5 seconds" })).type.toBe<AsyncIterable<string>>()
  })
})
