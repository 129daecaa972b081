/** The agent: it asks a model what to do next, does it, and asks again; then it writes, and publishes what it has written. */
import { DataVersion, Effects, OnUnknown, Operation, Output, Usage, Workflow, type Captured } from "@cairn/core"
import { Context, Data, Effect, Schema } from "effect"
import { inBrief, maxNotesBytes, namesOfRead, Notes, nothingYet, withFound, withText } from "./notes.js"

/** A worker that is killed keeps its runs for this long. Short, so that the demo is. */
export const leaseMs = 2_000

/** How long the CMS may take: an outcome that nobody knows is looked into after this. */
const publishTimeoutMs = 2_000

// ---- what the model says ---------------------------------------------------------------------------------------

const Search = Schema.Struct({ tool: Schema.Literal("search"), words: Schema.String })
const Read = Schema.Struct({ tool: Schema.Literal("read"), document: Schema.String })
const Finish = Schema.Struct({ tool: Schema.Literal("finish") })
export const Choice = Schema.Union(Search, Read, Finish)

export const Article = Schema.Struct({ title: Schema.String, text: Schema.String })

// ---- what the agent reads from ---------------------------------------------------------------------------------

export class Unreachable extends Data.TaggedError("Unreachable")<{ readonly problem: string }> {
  override get message() {
    return this.problem
  }
}

/** The model costs money, and yet it is read from: asking it again changes nothing outside. It answers in JSON, as text. */
export class Model extends Context.Tag("Model")<
  Model,
  {
    readonly choose: (question: string, notes: Notes) => Effect.Effect<string, Unreachable>
    readonly write: (question: string, sources: ReadonlyArray<string>) => Effect.Effect<string, Unreachable>
  }
>() {}

export class Library extends Context.Tag("Library")<
  Library,
  {
    readonly search: (words: string) => Effect.Effect<ReadonlyArray<string>, Unreachable>
    readonly read: (document: string) => Effect.Effect<string, Unreachable>
    /** The texts of several documents, and a token that is another one when one of them has changed. */
    readonly sources: (
      documents: ReadonlyArray<string>,
    ) => Effect.Effect<Captured<ReadonlyArray<string>, string>, Unreachable>
  }
>() {}

/** What an article is written from. It is not published when that has changed meanwhile: then it is written anew. */
export const Sources = DataVersion.make("sources", {
  capture: (documents: ReadonlyArray<string>) => Effect.flatMap(Library, (library) => library.sources(documents)),
})

// ---- what it does to the world ---------------------------------------------------------------------------------

export const PublishPage = Operation.make("cms.publish", {
  payload: Article,
  success: Schema.Struct({ page: Schema.String }),
  // The CMS honours keys: the same key is the same page.
  onUnknown: OnUnknown.retryWithKey({ keyWindow: "24 hours" }),
  timeout: publishTimeoutMs,
})

// ---- the agent -------------------------------------------------------------------------------------------------

export const research = Workflow.make("research", {
  version: 1,
  input: Schema.String,
  // Each answer of the model is paid for: the next step begins when it is in the database, not only on its way there.
  durability: "step",
  // Before a call that has no room in it, the run is parked for a person.
  budget: { run: Usage.dollars(0.05) },
  window: { schema: Notes, initial: nothingYet, maxBytes: maxNotesBytes, compact: inBrief },
})
  .loop(
    "agent",
    { state: Schema.Null, initial: () => null, maxIterations: 20 },
    (turn) =>
      turn
        .step(
          "think",
          { effects: [Effects.read(Model)], output: Choice, retry: { times: 3 } },
          function* ({ input, window }) {
            return Output.json(yield* (yield* Model).choose(input, window))
          },
        )
        .match("act", "tool", ({ results }) => results.think, {
          search: (flow) =>
            flow.step(
              "found",
              { effects: [Effects.read(Library)], output: Schema.Array(Schema.String), retry: { times: 3 } },
              function* ({ value, changeWindow }) {
                const found = yield* (yield* Library).search(value.words)
                changeWindow((notes) => withFound(notes, value.words, found))
                return found
              },
            ),
          read: (flow) =>
            flow.step(
              "text",
              { effects: [Effects.read(Library)], output: Schema.String, retry: { times: 3 } },
              function* ({ value, changeWindow }) {
                const text = yield* (yield* Library).read(value.document)
                changeWindow((notes) => withText(notes, value.document, text))
                return text
              },
            ),
          finish: (flow) => flow,
        }),
    ({ results }) => ({ done: results.think.tool === "finish", state: null }),
  )
  .step(
    "article",
    { effects: [Effects.read(Model), Sources], output: Article, retry: { times: 3 }, onStale: "rerun" },
    function* ({ input, window }) {
      const sources = yield* Sources.read(namesOfRead(window))
      return Output.json(yield* (yield* Model).write(input, sources))
    },
  )
  .perform("publish", PublishPage, { payload: ({ results }) => results.article, retry: { times: 5 } })
  .output(Schema.String, ({ results }) => results.publish.page)
  .compile()
