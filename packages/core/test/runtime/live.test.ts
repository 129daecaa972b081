/** Live output: what running steps emit, as readers in the same process see it, whenever they come (field case P149). */
import { describe, expect, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer, Schema, Stream } from "effect"
import {
  Cairn,
  Live,
  MemoryStore,
  Workflow,
  type AnyWorkflow,
  type CheckpointStoreService,
  type LiveEvent,
} from "../../src/index.js"
import { liveRuns } from "../../src/runtime/internal/liveOutput.js"
import { intercepted, makeMortal, startDoomed, startWorker, storeLayer, type Bench } from "./support/bench.js"
import { test } from "./support/adding.js"

const flow = (name = "w"): any => (Workflow.make as any)(name, { version: 1, input: Schema.Null })
const done = (built: any): any => {
  const workflow = built.compile()
  expect(workflow.diagnostics).toEqual([])
  return workflow
}
const text: any = { effects: [], output: Schema.String }

const start = (store: CheckpointStoreService, workflow: AnyWorkflow) =>
  Effect.provide(Cairn.start(workflow as any, null as never, { runId: "r" }), storeLayer(store))

/** Starts the run under a worker of its own. */
const begin = (bench: Pick<Bench, "store">, workflow: AnyWorkflow, options: object = {}) =>
  Effect.zipRight(startWorker(bench.store, { workflows: [workflow], ...options }), start(bench.store, workflow))

const all = (events: AsyncIterable<LiveEvent>) =>
  Effect.promise(async () => {
    const seen: Array<LiveEvent> = []
    for await (const event of events) seen.push(event)
    return seen
  })

const next = (iterator: AsyncIterator<LiveEvent>, count = 1) =>
  Effect.promise(async () => {
    const seen: Array<LiveEvent> = []
    while (seen.length < count) seen.push((await iterator.next()).value as LiveEvent)
    return seen
  })

/** The rest of what an iterator gives. */
const rest = (iterator: AsyncIterator<LiveEvent>) => all({ [Symbol.asyncIterator]: () => iterator })

const shown = (event: LiveEvent): string => {
  switch (event._tag) {
    case "Chunk":
      return `${event.path} ${event.attempt}.${event.index} ${typeof event.chunk === "string" ? event.chunk : JSON.stringify(event.chunk)}`
    case "Skipped":
      return `Skipped ${event.count}`
    default:
      return `${event._tag} ${event.path} ${event.attempt}`
  }
}

/** What a client makes of it: the text of each step, as it stands. */
const rebuilt = (events: ReadonlyArray<LiveEvent>): Record<string, string> => {
  const texts: Record<string, string> = {}
  for (const event of events) {
    if (event._tag === "Began") texts[event.path] = ""
    if (event._tag === "Chunk") texts[event.path] += event.chunk as string
    if (event._tag === "Discarded") delete texts[event.path]
  }
  return texts
}

const words = ["Once ", "upon ", "a ", "time ", "there "]

/** A gate that the test opens, for the step of each attempt. */
const gates = (count: number) => Array.from({ length: count }, () => Effect.runSync(Deferred.make<void>()))
const open = (gate: Deferred.Deferred<void>) => Deferred.succeed(gate, undefined)

describe("a step that emits five chunks, fails, and is retried (P149)", () => {
  test("reads the same to everybody, whenever they come: the text of the attempt that is committed", (bench) =>
    Effect.gen(function* () {
      const [inFirst, inSecond] = gates(2)
      let attempts = 0
      const workflow = done(
        flow()
          .step("tell", { ...text, retry: { times: 1, delay: "10 millis" } }, () =>
            Effect.gen(function* () {
              const attempt = ++attempts
              let told = ""
              for (const [index, word] of words.entries()) {
                yield* Live.emit(`${attempt}:${word}`)
                told += `${attempt}:${word}`
                if (index === 2) yield* Deferred.await(attempt === 1 ? inFirst! : inSecond!)
              }
              if (attempt === 1) return yield* Effect.fail(new Error("the stream broke off"))
              return told
            }),
          )
          .output(Schema.String, ({ results }: any) => results.tell),
      )
      const handle = yield* begin(bench, workflow)
      const first = handle.live()[Symbol.asyncIterator]()
      expect((yield* next(first, 4)).map(shown)).toEqual([
        "Began tell 1",
        "tell 1.0 1:Once ",
        "tell 1.1 1:upon ",
        "tell 1.2 1:a ",
      ])
      // In the middle of the first attempt: what it has emitted so far comes first.
      const second = handle.live()[Symbol.asyncIterator]()
      expect((yield* next(second, 2)).map(shown)).toEqual(["Began tell 1", "tell 1.0 1:Once "])
      yield* open(inFirst!)
      const restarted = yield* next(first, 7)
      expect(restarted.map(shown)).toEqual([
        "tell 1.3 1:time ",
        "tell 1.4 1:there ",
        "Discarded tell 1",
        "Began tell 2",
        "tell 2.0 2:Once ",
        "tell 2.1 2:upon ",
        "tell 2.2 2:a ",
      ])
      // In the middle of the second: nothing of the first any more.
      const third = handle.live()[Symbol.asyncIterator]()
      const beginning = yield* next(third, 1)
      expect(beginning.map(shown)).toEqual(["Began tell 2"])
      yield* open(inSecond!)
      const output = yield* handle.result
      const ends = yield* Effect.all([rest(first), rest(second), rest(third)])
      expect(ends[0].map(shown)).toEqual(["tell 2.3 2:time ", "tell 2.4 2:there ", "Committed tell 2"])
      const texts = [[...restarted, ...ends[0]], ends[1], [...beginning, ...ends[2]]].map(rebuilt)
      expect(texts).toEqual([{ tell: output }, { tell: output }, { tell: output }])
      expect(ends[0].at(-1)).toMatchObject({ _tag: "Committed", seq: yield* handle.durableSeq })
      // Who comes after the end hears nothing: nothing is replayed.
      expect(yield* all(handle.live())).toEqual([])
    }))

  test("is told of as begun anew when its worker is killed, and what it had committed before is not repeated", (bench) =>
    Effect.gen(function* () {
      const [hangs] = gates(1)
      const calls: Array<string> = []
      const emitting = (name: string, last: Effect.Effect<void>) => () =>
        Effect.gen(function* () {
          calls.push(name)
          for (const word of words) yield* Live.emit(word)
          yield* last
          return words.join("")
        })
      const of = (last: Effect.Effect<void>) =>
        done(
          flow()
            .step("before", text, emitting("before", Effect.void))
            .step("tell", text, emitting("tell", last))
            .output(Schema.String, ({ results }: any) => results.tell),
        )
      const mortal = makeMortal(bench.store)
      yield* startDoomed(mortal, { workflows: [of(Deferred.await(hangs!))] })
      const workflow = of(Effect.void)
      const handle = yield* start(bench.store, workflow)
      const iterator = handle.live()[Symbol.asyncIterator]()
      const heard = yield* next(iterator, 13)
      mortal.kill()
      yield* startWorker(bench.store, { workflows: [workflow] })
      const output = yield* handle.result
      const later = yield* rest(iterator)
      expect(later.map(shown)).toEqual([
        "Discarded tell 1",
        "Began tell 1",
        ...words.map((word, index) => `tell 1.${index} ${word}`),
        "Committed tell 1",
      ])
      expect(rebuilt([...heard, ...later])).toEqual({ before: output, tell: output })
      expect(calls).toEqual(["before", "tell", "tell"])
      // The killed worker still stands in its step: nothing of that is heard.
      expect(liveRuns(bench.store.signals)).toBe(0)
    }))
})

describe("live output", () => {
  test("of steps side by side comes between each other, each path by itself", (bench) =>
    Effect.gen(function* () {
      const turns = gates(4)
      const arm = (mine: number, words: ReadonlyArray<string>) => () =>
        Effect.gen(function* () {
          for (const [index, word] of words.entries()) {
            yield* Deferred.await(turns[mine + index * 2]!)
            yield* Live.emit(word)
            const after = turns[mine + index * 2 + 1]
            if (after !== undefined) yield* open(after)
          }
          return words.join("")
        })
      const workflow = done(
        flow().parallel("both", {
          left: (arms: any) => arms.step("a", text, arm(0, ["a1", "a2"])),
          right: (arms: any) => arms.step("b", text, arm(1, ["b1", "b2"])),
        }),
      )
      const handle = yield* begin(bench, workflow)
      const reading = yield* Effect.fork(all(handle.live()))
      yield* open(turns[0]!)
      const events = yield* Fiber.join(reading)
      expect(events.filter(({ _tag }) => _tag === "Chunk").map(shown)).toEqual([
        "both:left/a 1.0 a1",
        "both:right/b 1.0 b1",
        "both:left/a 1.1 a2",
        "both:right/b 1.1 b2",
      ])
      expect(rebuilt(events)).toEqual({ "both:left/a": "a1a2", "both:right/b": "b1b2" })
    }))

  test("is told as committed only when it is durable, under the seq of the durable event (W2)", (bench) =>
    Effect.gen(function* () {
      const mayCommit = yield* Effect.makeLatch(false)
      const asked = yield* Deferred.make<void>()
      const store = intercepted(bench.store, (method) =>
        method === "commit" ? Effect.zipRight(Deferred.succeed(asked, undefined), mayCommit.await) : Effect.void,
      )
      const workflow = done(
        flow()
          .step("tell", text, ({ emit }: any) => {
            emit("now")
            return "now"
          })
          .step("then", text, () => "later"),
      )
      const handle = yield* begin({ store }, workflow)
      const iterator = handle.live()[Symbol.asyncIterator]()
      yield* next(iterator, 2)
      yield* Deferred.await(asked)
      const third = yield* Effect.fork(next(iterator))
      yield* Effect.sleep("1 second")
      expect(third.unsafePoll()).toBeNull()
      yield* mayCommit.open
      const [event] = yield* Fiber.join(third)
      const durable: Array<any> = []
      yield* Effect.promise(async () => {
        for await (const each of handle.events()) durable.push(each)
      })
      expect(event).toEqual({ _tag: "Committed", path: "tell", attempt: 1, seq: durable[0].seq })
      expect(yield* rest(iterator)).toEqual([])
    }))

  test("of an output that its schema refuses, of a timeout and of a cancel is discarded", (bench) =>
    Effect.gen(function* () {
      let attempts = 0
      const workflow = done(
        flow()
          .step(
            "tell",
            {
              ...{ effects: [], output: Schema.Int, timeout: "1 second" },
              ...{ onInvalid: { retries: 1, then: "fail" }, retry: { times: 1 } },
            },
            ({ emit }: any) => {
              emit("x")
              attempts += 1
              return attempts === 1 ? "no number" : attempts === 2 ? Effect.never : 3
            },
          )
          .step("hang", text, ({ emit }: any) => {
            emit("y")
            return Effect.never
          }),
      )
      const handle = yield* begin(bench, workflow)
      const iterator = handle.live()[Symbol.asyncIterator]()
      const heard = yield* next(iterator, 11)
      yield* Effect.provide(Cairn.cancel({ runId: "r" }), storeLayer(bench.store))
      expect([...heard, ...(yield* rest(iterator))].map(shown)).toEqual([
        ...["Began tell 1", "tell 1.0 x", "Discarded tell 1"],
        ...["Began tell 2", "tell 2.0 x", "Discarded tell 2"],
        ...["Began tell 3", "tell 3.0 x", "Committed tell 3"],
        ...["Began hang 1", "hang 1.0 y", "Discarded hang 1"],
      ])
      expect((yield* handle.poll).status).toBe("canceled")
    }))

  test("ends with the run also where nothing was emitted here, and where the run is not there it says so", (bench) =>
    Effect.gen(function* () {
      const handle = yield* begin(bench, done(flow().step("quiet", text, () => "")))
      expect(yield* all(handle.live())).toEqual([])
      const gone = { ...bench.store, findRuns: () => Effect.succeed([{ _tag: "Right", right: null } as any]) }
      const other = yield* start(gone, done(flow().step("quiet", text, () => "")))
      const exit = yield* Effect.exit(
        Effect.tryPromise({ try: () => other.live()[Symbol.asyncIterator]().next(), catch: (thrown) => thrown }),
      )
      expect(exit).toMatchObject({ _tag: "Failure", cause: { error: { _tag: "RunNotFound" } } })
    }))
})

describe("a reader", () => {
  test("who is slow never holds the step up, and is told how much it has missed", (bench) =>
    Effect.gen(function* () {
      const [joined] = gates(1)
      const count = 100_000
      const workflow = done(
        flow().step("tell", text, () =>
          Effect.gen(function* () {
            yield* Live.emit("first")
            yield* Deferred.await(joined!)
            for (let n = 1; n < count; n++) yield* Live.emit(String(n))
            return ""
          }),
        ),
      )
      const handle = yield* begin(bench, workflow)
      const iterator = handle.live()[Symbol.asyncIterator]()
      yield* next(iterator, 2)
      yield* open(joined!)
      yield* handle.result
      const events = yield* rest(iterator)
      const [skipped, ...kept] = events as [Extract<LiveEvent, { _tag: "Skipped" }>, ...Array<any>]
      expect(skipped._tag).toBe("Skipped")
      expect(kept.length).toBeLessThanOrEqual(65_536)
      expect(skipped.count + kept.length).toBe(count)
      expect(kept[0].index).toBe(skipped.count + 1)
      expect(kept.at(-1)).toMatchObject({ _tag: "Committed" })
    }))

  test("who comes to a long output is told that its beginning is missing", (bench) =>
    Effect.gen(function* () {
      const [emitted, joined] = gates(2)
      const page = "x".repeat(100_000)
      const workflow = done(
        flow().step("tell", text, () =>
          Effect.gen(function* () {
            for (let n = 0; n < 15; n++) yield* Live.emit(page)
            yield* open(emitted!)
            yield* Deferred.await(joined!)
            return ""
          }),
        ),
      )
      const handle = yield* begin(bench, workflow)
      yield* Deferred.await(emitted!)
      const iterator = handle.live()[Symbol.asyncIterator]()
      const seen = yield* next(iterator, 12)
      expect(seen.slice(0, 2).map(shown)).toEqual(["Began tell 1", "Skipped 5"])
      expect(seen.slice(2).map((event: any) => event.index)).toEqual([5, 6, 7, 8, 9, 10, 11, 12, 13, 14])
      yield* open(joined!)
      expect((yield* rest(iterator)).map(shown)).toEqual(["Committed tell 1"])
    }))

  test("who leaves, or never comes back, and a run without one leave nothing behind", (bench) =>
    Effect.gen(function* () {
      const { signals } = bench.store
      const [inStep, mayEnd] = gates(2)
      const held: Array<number> = []
      const workflow = done(
        flow()
          .step("quiet", text, () => {
            held.push(liveRuns(signals))
            return ""
          })
          .step("tell", text, ({ emit }: any) => {
            emit("x")
            held.push(liveRuns(signals))
            return Effect.zipRight(open(inStep!), Effect.as(Deferred.await(mayEnd!), ""))
          }),
      )
      const handle = yield* begin(bench, workflow)
      yield* Deferred.await(inStep!)
      // A step that emits nothing makes nothing.
      expect(held).toEqual([0, 1])
      const leaves = handle.live()[Symbol.asyncIterator]()
      const waiting = leaves
        .next()
        .then(() => leaves.next())
        .then(() => leaves.next())
      const abandoned = handle.live()[Symbol.asyncIterator]()
      yield* next(abandoned)
      yield* Effect.promise(() => leaves.return!())
      expect((yield* Effect.promise(() => waiting)).done).toBe(true)
      expect(liveRuns(signals)).toBe(1)
      yield* open(mayEnd!)
      yield* handle.result
      // Of the one that never came back only what it has not taken is left, in its own hands.
      expect((yield* rest(abandoned)).map(shown)).toEqual(["tell 1.0 x", "Committed tell 1"])
      expect(liveRuns(signals)).toBe(0)
    }))
})

describe("emitting", () => {
  test("values of JSON gives them as they were, and anything else fails the attempt", (bench) =>
    Effect.gen(function* () {
      const workflow = done(
        flow().step("tell", text, ({ emit }: any) => {
          const tool = { name: "search", tokens: [1, 2] }
          emit(tool)
          tool.tokens.push(3)
          emit(null)
          emit({ cost: Number.NaN })
          return ""
        }),
      )
      const handle = yield* begin(bench, workflow)
      const events = yield* all(handle.live())
      expect(events.map(shown)).toEqual([
        "Began tell 1",
        'tell 1.0 {"name":"search","tokens":[1,2]}',
        "tell 1.1 null",
        "Discarded tell 1",
      ])
      const failed = yield* Effect.flip(handle.result as Effect.Effect<unknown, any>)
      expect(failed.message).toContain("chunk of live output")
    }))

  test("by a service that is used in a step is heard, and outside of one nothing happens", (bench) =>
    Effect.gen(function* () {
      class Model extends Context.Tag("Model")<Model, { readonly answer: Effect.Effect<string> }>() {}
      const answer = Stream.mkString(Stream.tap(Stream.make(...words), Live.emit))
      expect(yield* answer).toBe(words.join(""))
      expect(yield* Live.text(Stream.toAsyncIterable(Stream.make(...words)))).toBe(words.join(""))
      const workflow = done(
        flow().step("tell", text, () =>
          Effect.forkDaemon(Effect.flatMap(Model, (model) => model.answer)).pipe(Effect.flatMap(Fiber.join)),
        ),
      )
      yield* startWorker(bench.store, { workflows: [workflow] }, Layer.succeed(Model, { answer }))
      const handle = yield* start(bench.store, workflow)
      expect(rebuilt(yield* all(handle.live()))).toEqual({ tell: words.join("") })
    }))

  test("the text of an iterable ends the iteration when the step is cut off, and what comes late is not heard", (bench) =>
    Effect.gen(function* () {
      const left: Array<string> = []
      let late: (chunk: string) => void = () => {}
      const chunks = (): AsyncIterable<string> => {
        let given = false
        return {
          [Symbol.asyncIterator]: () => ({
            next: () => {
              if (given) return new Promise(() => {})
              given = true
              return Promise.resolve({ done: false, value: "begun" })
            },
            return: async () => {
              left.push("returned")
              throw new Error("already closed")
            },
          }),
        }
      }
      const workflow = done(
        flow().step("tell", { ...text, timeout: "1 second" }, ({ emit }: any) => {
          late = emit
          return Live.text(chunks())
        }),
      )
      const handle = yield* begin(bench, workflow)
      const iterator = handle.live()[Symbol.asyncIterator]()
      yield* next(iterator, 2)
      yield* Effect.exit(handle.result)
      late("too late")
      expect((yield* rest(iterator)).map(shown)).toEqual(["Discarded tell 1"])
      expect(left).toEqual(["returned"])
      expect(liveRuns(bench.store.signals)).toBe(0)
    }))

  test("in a text that fails fails the step with what the iteration throws", (bench) =>
    Effect.gen(function* () {
      async function* broken() {
        yield "a"
        throw new Error("the provider hung up")
      }
      const handle = yield* begin(bench, done(flow().step("tell", text, () => Live.text(broken()))))
      const failed = yield* Effect.flip(handle.result as Effect.Effect<unknown, any>)
      expect(failed.message).toContain("the provider hung up")
    }))
})

describe("in promise style", () => {
  it("a client reads what an async step emits, by its handle or by the run's id", async () => {
    const workflow = done(
      flow().step("tell", text, async ({ emit }: any) => {
        for (const word of words) {
          await new Promise((resolve) => setImmediate(resolve))
          emit(word)
        }
        return words.join("")
      }),
    )
    const cairn = await Cairn.open({ store: MemoryStore.layer, workflows: [workflow] } as any)
    const handle = await cairn.start(workflow, null as never, { runId: "r" })
    const seen = await Promise.all(
      [handle.live(), cairn.live(workflow, { runId: "r" })].map(async (events) => {
        const seen: Array<LiveEvent> = []
        for await (const event of events) seen.push(event)
        return rebuilt(seen)
      }),
    )
    expect(seen).toEqual([{ tell: words.join("") }, { tell: words.join("") }])
    await expect(cairn.live(workflow, { runId: "none" })[Symbol.asyncIterator]().next()).rejects.toMatchObject({
      _tag: "RunNotFound",
    })
    await cairn.close()
  })
})
