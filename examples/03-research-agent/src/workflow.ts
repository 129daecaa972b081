/** The agent: it asks a model what to do next, does it, and asks again; then it writes, and publishes what it has written. */
import { Effects, OnUnknown, Operation, Output, Workflow } from "@cairn/core"
import { Context, Data, Schema, type Effect } from "effect"

/** A worker that is killed keeps its runs for this long. Short, so that the demo is. */
export const leaseMs = 2_000

/** How long the CMS may take: an outcome that nobody knows is looked into after this. */
const publishTimeoutMs = 2_000

// ---- what the model says ---------------------------------------------------------------------------------------

const Search = Schema.Struct({ tool: Schema.Literal("search"), words: Schema.String })
const Read = Schema.Struct({ tool: Schema.Literal("read"), document: Schema.String })
const Finish = Schema.Struct({ tool: Schema.Literal("finish") })
export const Choice = Schema.Union(Search, Read, Finish)

/** Names of documents. */
export const Found = Schema.Array(Schema.String)

export const Article = Schema.Struct({ title: Schema.String, text: Schema.String })

/** What the agent knows after a turn. It is stored after each, so keep it small: texts that grow belong elsewhere. */
export const Notes = Schema.Struct({
  searched: Schema.Array(Schema.String),
  toRead: Schema.Array(Schema.String),
  read: Schema.Array(Schema.Struct({ document: Schema.String, text: Schema.String })),
})
export type Notes = typeof Notes.Type

export const nothingYet: Notes = { searched: [], toRead: [], read: [] }

export const withFound = ({ searched, toRead, read }: Notes, words: string, found: ReadonlyArray<string>): Notes => {
  const known = [...toRead, ...read.map(({ document }) => document)]
  return { searched: [...searched, words], toRead: [...toRead, ...found.filter((each) => !known.includes(each))], read }
}

export const withText = ({ searched, toRead, read }: Notes, document: string, text: string): Notes => ({
  searched,
  toRead: toRead.filter((other) => other !== document),
  read: [...read, { document, text }],
})

// ---- what the agent reads from ---------------------------------------------------------------------------------

export class Unreachable extends Data.TaggedError("Unreachable")<{ readonly problem: string }> {
  override get message() {
    return this.problem
  }
}

/** The model costs money, and yet it is read from: asking it again changes nothing outside. */
export class Model extends Context.Tag("Model")<
  Model,
  {
    readonly choose: (question: string, notes: Notes) => Effect.Effect<unknown, Unreachable>
    readonly write: (question: string, notes: Notes) => Effect.Effect<unknown, Unreachable>
  }
>() {}

export class Library extends Context.Tag("Library")<
  Library,
  {
    readonly search: (words: string) => Effect.Effect<unknown, Unreachable>
    readonly read: (document: string) => Effect.Effect<unknown, Unreachable>
  }
>() {}

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
})
  .loop(
    "agent",
    { state: Notes, initial: () => nothingYet, maxIterations: 20 },
    (turn) =>
      turn
        .step(
          "think",
          { effects: [Effects.read(Model)], output: Choice, retry: { times: 3 } },
          function* ({ input, state }) {
            return Output.unvalidated(yield* (yield* Model).choose(input, state))
          },
        )
        .match("act", "tool", ({ results }) => results.think, {
          search: (flow) =>
            flow.step(
              "found",
              { effects: [Effects.read(Library)], output: Found, retry: { times: 3 } },
              function* ({ value }) {
                return Output.unvalidated(yield* (yield* Library).search(value.words))
              },
            ),
          read: (flow) =>
            flow.step(
              "text",
              { effects: [Effects.read(Library)], output: Schema.String, retry: { times: 3 } },
              function* ({ value }) {
                return Output.unvalidated(yield* (yield* Library).read(value.document))
              },
            ),
          finish: (flow) => flow,
        }),
    ({ state, results: { think, act } }) => {
      if (think.tool === "search" && act.case === "search")
        return { done: false, state: withFound(state, think.words, act.results.found) }
      if (think.tool === "read" && act.case === "read")
        return { done: false, state: withText(state, think.document, act.results.text) }
      return { done: true, state }
    },
  )
  .step(
    "article",
    { effects: [Effects.read(Model)], output: Article, retry: { times: 3 } },
    function* ({ input, results }) {
      return Output.unvalidated(yield* (yield* Model).write(input, results.agent))
    },
  )
  .perform("publish", PublishPage, { payload: ({ results }) => results.article, retry: { times: 5 } })
  .output(Schema.String, ({ results }) => results.publish.page)
  .compile()
