import { describe, expect, it } from "@effect/vitest"
import { Cairn, MemoryStore, Worker } from "@cairn/core"
import { Effect, Exit, Layer } from "effect"
import { Library, Model, nothingYet, PublishPage, research, withFound, withText, type Notes } from "../src/workflow.js"

/** The agent against a model that says what it is told to. */
const runWith = (choose: (notes: Notes) => unknown) =>
  Effect.gen(function* () {
    const published: Array<string> = []
    const services = Layer.mergeAll(
      Layer.succeed(Model, {
        choose: (_, notes) => Effect.sync(() => choose(notes)),
        write: (title, { read }) => Effect.succeed({ title, text: read.map(({ text }) => text).join() }),
      }),
      Layer.succeed(Library, {
        search: (words) => Effect.succeed([`${words}-1`, `${words}-2`]),
        read: (document) => Effect.succeed(`text of ${document}`),
      }),
      PublishPage.toLayer(({ text }, { idempotencyKey }) =>
        Effect.sync(() => {
          published.push(text)
          return { page: idempotencyKey }
        }),
      ),
    )
    const exit = yield* Cairn.start(research, "why?", { runId: "r" }).pipe(
      Effect.flatMap((handle) => Effect.exit(handle.result)),
      Effect.provide(
        Worker.layer({ workflows: [research] }).pipe(Layer.provide(services), Layer.provideMerge(MemoryStore.layer)),
      ),
    )
    return { exit, published }
  })

describe("the agent", () => {
  it.live("does what the model says until it says that it is enough, and publishes once", () =>
    Effect.gen(function* () {
      const { exit, published } = yield* runWith(({ searched, toRead }) =>
        searched.length === 0
          ? { tool: "search", words: "a" }
          : toRead.length > 0
            ? { tool: "read", document: toRead[0] }
            : { tool: "finish" },
      )
      expect(exit).toEqual(Exit.succeed("default/r/publish#0"))
      expect(published).toEqual(["text of a-1,text of a-2"])
    }),
  )

  it.live("is stopped when the model never says that it is enough, and publishes nothing", () =>
    Effect.gen(function* () {
      const { exit, published } = yield* runWith(() => ({ tool: "search", words: "again" }))
      expect(exit).toMatchObject(Exit.fail({ _tag: "RunFailed", step: "agent", details: { tag: "LoopLimitReached" } }))
      expect(published).toEqual([])
    }),
  )

  it.live("does nothing that is no tool of its own", () =>
    Effect.gen(function* () {
      const { exit, published } = yield* runWith(() => ({ tool: "deleteEverything" }))
      expect(exit).toMatchObject(Exit.fail({ _tag: "RunFailed", step: "agent[0]/think" }))
      expect(published).toEqual([])
    }),
  )
})

describe("the notes", () => {
  it("name a document once, whether it is still to be read or was", () => {
    const found = withFound(nothingYet, "a", ["x", "y"])
    const read = withText(found, "x", "text")
    expect(withFound(read, "b", ["x", "y", "z"])).toEqual({
      searched: ["a", "b"],
      toRead: ["y", "z"],
      read: [{ document: "x", text: "text" }],
    })
  })
})
