import { describe, expect, it } from "@effect/vitest"
import { Cairn, Faults, MemoryStore, Usage, Worker, type CheckpointStore, type FaultsService } from "@cairn/core"
import { Context, Deferred, Effect, Exit, Layer, Logger } from "effect"
import { inBrief, maxNotesBytes, nothingYet, withFound, withText, type Notes } from "../src/notes.js"
import { Library, Model, PublishPage, research } from "../src/workflow.js"

/** A model that says what it is told to, a library of texts that may change, and a CMS. */
const world = (choose: (notes: Notes) => unknown, textOf = (document: string) => `text of ${document}`) => {
  const published: Array<string> = []
  const asked: Array<Notes> = []
  /** What each choice costs. */
  const bill = { model: "m", atMost: { microDollars: 20_000 }, usage: () => ({ microDollars: 20_000 }) }
  const services = Layer.mergeAll(
    Layer.succeed(Model, {
      choose: (_, notes) =>
        Effect.sync(() => {
          asked.push(notes)
          return JSON.stringify(choose(notes))
        }),
      write: (title, sources) => Effect.succeed(JSON.stringify({ title, text: sources.join() })),
    }),
    Layer.succeed(Library, {
      search: (words) => Effect.succeed([`${words}-1`, `${words}-2`]),
      read: (document) => Effect.sync(() => textOf(document)),
      sources: (documents) =>
        Effect.sync(() => ({ value: documents.map(textOf), token: documents.map(textOf).join() })),
    }),
    PublishPage.toLayer(({ text }, { idempotencyKey }) =>
      Effect.sync(() => {
        published.push(text)
        return { page: idempotencyKey }
      }),
    ),
  )
  const paid = Layer.map(services, (context) => {
    const model = Context.get(context, Model)
    return Context.add(context, Model, { ...model, choose: (...of) => Usage.call(bill, model.choose(...of)) })
  })
  return { services, paid, published, asked }
}

type Services = ReturnType<typeof world>["services"]

/** A worker over a store, until the scope ends. */
const work = (store: Context.Context<CheckpointStore>, services: Services, faults?: FaultsService) =>
  Layer.build(
    Worker.layer({ workflows: [research], drain: 0 }).pipe(
      Layer.provide(services),
      Layer.provide(faults === undefined ? Layer.empty : Layer.succeed(Faults, faults)),
      Layer.provide(Layer.succeedContext(store)),
      Layer.provide(Logger.remove(Logger.defaultLogger)),
    ),
  )

const begin = (store: Context.Context<CheckpointStore>) =>
  Effect.provide(Cairn.start(research, "why?", { runId: "r" }), store)

const run = (services: Services) =>
  Effect.gen(function* () {
    const store = yield* Layer.build(MemoryStore.layer)
    yield* work(store, services)
    return yield* Effect.exit(Effect.flatMap(begin(store), (handle) => handle.result))
  })

const searchAndRead = ({ searched, toRead }: Notes) =>
  searched.length === 0
    ? { tool: "search", words: "a" }
    : toRead.length > 0
      ? { tool: "read", document: toRead[0] }
      : { tool: "finish" }

const again = () => ({ tool: "search", words: "again" })

describe("the agent", () => {
  it.scopedLive("does what the model says until it says that it is enough, and publishes once", () =>
    Effect.gen(function* () {
      const { services, published } = world(searchAndRead)
      expect(yield* run(services)).toEqual(Exit.succeed("default/r/publish#0"))
      expect(published).toEqual(["text of a-1,text of a-2"])
    }),
  )

  it.scopedLive("sends its model what is in brief once it is too much, and writes from the texts all the same", () =>
    Effect.gen(function* () {
      const long = (document: string) => `The gist of ${document}. ${"More of it. ".repeat(20)}`
      const { services, published, asked } = world(searchAndRead, long)
      expect(Exit.isSuccess(yield* run(services))).toBe(true)
      expect(asked.map(({ read }) => read.map(({ text }) => text))).toEqual([
        [],
        [],
        [long("a-1")],
        ["The gist of a-1", "The gist of a-2"],
      ])
      for (const notes of asked) expect(JSON.stringify(notes).length).toBeLessThanOrEqual(maxNotesBytes)
      expect(published).toEqual([`${long("a-1")},${long("a-2")}`])
    }),
  )

  it.scopedLive("writes anew when a source changes before its article is published", () =>
    Effect.gen(function* () {
      let edition = "first"
      const { services, published } = world(searchAndRead, (document) => `${edition} edition of ${document}`)
      const store = yield* Layer.build(MemoryStore.layer)
      const handle = yield* begin(store)
      const written = yield* Deferred.make<void>()
      // This worker is stopped when the article is committed, and its publication has not begun.
      yield* Effect.scoped(
        Effect.zipRight(
          work(store, services, {
            reach: (point, { step }) =>
              point === "beforeIntent" && step === "publish"
                ? Effect.zipRight(Deferred.succeed(written, undefined), Effect.never)
                : Effect.void,
          }),
          Deferred.await(written),
        ),
      )
      edition = "second"
      yield* work(store, services)
      yield* handle.result
      expect(published).toEqual(["second edition of a-1,second edition of a-2"])
    }),
  )

  it.scopedLive("is parked before it spends more than its budget, and publishes nothing", () =>
    Effect.gen(function* () {
      const { paid, published, asked } = world(again)
      expect(yield* run(paid)).toMatchObject(
        Exit.fail({ _tag: "RunParked", step: "agent[2]/think", reason: "BudgetExceeded" }),
      )
      expect(asked).toHaveLength(2)
      expect(published).toEqual([])
    }),
  )

  it.scopedLive("is stopped when the model never says that it is enough, and publishes nothing", () =>
    Effect.gen(function* () {
      const { services, published } = world(again)
      expect(yield* run(services)).toMatchObject(
        Exit.fail({ _tag: "RunFailed", step: "agent", details: { tag: "LoopLimitReached" } }),
      )
      expect(published).toEqual([])
    }),
  )

  it.scopedLive("does nothing that is no tool of its own", () =>
    Effect.gen(function* () {
      const { services, published } = world(() => ({ tool: "deleteEverything" }))
      expect(yield* run(services)).toMatchObject(Exit.fail({ _tag: "RunFailed", step: "agent[0]/think" }))
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

  it("in brief have of each text its first sentence, and are in brief already the second time", () => {
    const brief = inBrief(withText(nothingYet, "x", "One. Two. Three."))
    expect(brief).toEqual({ searched: [], toRead: [], read: [{ document: "x", text: "One" }] })
    expect(inBrief(brief)).toEqual(brief)
  })
})
