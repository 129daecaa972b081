/** A window that grows too large: compacted before it is committed, by a step of its own, or told of as a failure. */
import { describe, expect } from "@effect/vitest"
import { Context, Effect, Layer, Schema } from "effect"
import { Cairn, Effects, Output, WindowTooLarge, type ErrorDetails } from "../../src/index.js"
import { startWorker, type Bench } from "./support/bench.js"
import { test } from "./support/adding.js"
import {
  carrying,
  done,
  ended,
  none,
  Notes,
  noting,
  outcomeOf,
  provided,
  showing,
  start,
  states,
  texts,
} from "./support/carrying.js"

class Model extends Context.Tag("Model")<
  Model,
  { readonly sum: (notes: ReadonlyArray<string>) => Effect.Effect<any, any> }
>() {}

const providing = (sum: (notes: ReadonlyArray<string>) => Effect.Effect<any, any>) =>
  Layer.succeed(Model, { sum }) as Layer.Layer<any>

/** A compaction that asks the model. */
const asking = (options: object = {}) => ({
  effects: [Effects.read(Model)],
  run: function* ({ window }: any) {
    const model = yield* Model
    return yield* model.sum(window.notes)
  } as any,
  ...options,
})

const summing = (notes: ReadonlyArray<string>) => Effect.succeed({ notes: [`sum of ${notes.length}`] })
const long = "x".repeat(60)
const last = { compact: ({ notes }: typeof Notes.Type) => ({ notes: notes.slice(-1) }), maxBytes: 100 }
const attemptsAt = (bench: Bench, path: string, runId = "r") =>
  Effect.map(bench.driver.loadOpen("default", runId, [path]), ({ attempts }) =>
    attempts.map(({ attempt, error, kind }) => ({ attempt, kind, ...(JSON.parse(error) as ErrorDetails) })),
  )

describe("a plain function", () => {
  test("compacts before the window is committed: nothing larger is kept or seen", (bench) =>
    Effect.gen(function* () {
      const seen: Array<number> = []
      const workflow = showing(
        carrying(last).loop(
          "turns",
          { state: Schema.Number, initial: () => 0, maxIterations: 6, onLimit: "stop" },
          (flow: any) =>
            flow.step("think", none, (context: any) => {
              seen.push(context.window.notes.length)
              noting(`${context.turn} ${"y".repeat(30)}`)(context)
            }),
          ({ state }: any) => ({ done: false, state }),
        ),
      )
      const notes = outcomeOf(yield* ended(bench, workflow))
      expect(notes.map((note: string) => note[0])).toEqual(["4", "5"].slice(-notes.length))
      expect(seen).toEqual([0, 1, 2, 1, 2, 1].slice(0, seen.length))
      for (const each of yield* texts(bench)) expect(Buffer.byteLength(each!)).toBeLessThanOrEqual(100)
    }))

  test("counts bytes, as UTF-8 has them, not characters", (bench) =>
    Effect.gen(function* () {
      const of = (note: string, maxBytes: number) =>
        ended(
          bench,
          showing(
            carrying({ maxBytes })
              .step("a", none, noting(note))
              .step("b", none, () => {}),
          ),
          undefined,
          note + maxBytes,
        )
      const size = Buffer.byteLength('{"notes":["ééé"]}')
      expect(size).toBe(20)
      expect(outcomeOf(yield* of("ééé", size))).toEqual(["ééé"])
      expect(outcomeOf(yield* of("ééé", size - 1)).message).toContain(
        "after 'a' the window takes 20 bytes as JSON and at most 19",
      )
    }))

  test("is asked again by itself where it gave nothing that fits: the step before is kept, and the run says why it fails", (bench) =>
    Effect.gen(function* () {
      let thought = 0
      const cases: ReadonlyArray<readonly [string, object, string]> = [
        ["none", {}, "after 'think' the window takes 74 bytes as JSON and at most 50 are allowed"],
        [
          "idle",
          { compact: (window: unknown) => window },
          "after 'think' the window takes 74 bytes as JSON and at most 50",
        ],
        ["throws", { compact: () => { throw new Error("cannot") } }, "cannot"], // prettier-ignore
        ["wrong", { compact: () => 7 }, "compacted window: "],
      ]
      for (const [runId, window, message] of cases) {
        const of = (window: object) =>
          showing(
            carrying({ maxBytes: 50, ...window })
              .step("think", none, (context: any) => {
                thought += 1
                noting(long)(context)
              })
              .step("next", none, noting("next")),
          )
        thought = 0
        const failed = outcomeOf(yield* ended(bench, of(window), undefined, runId))
        expect([failed._tag, failed.step, thought]).toEqual(["RunFailed", "think", 1])
        expect(failed.message).toContain(message)
        // Other code can go on from there: with more room, or with what compacts better.
        const better = runId === "none" ? { maxBytes: 200 } : { compact: () => ({ notes: ["short"] }) }
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* startWorker(bench.store, { workflows: [of(better)] })
            yield* provided(bench, Cairn.retry(of(better), { runId }))
            const { result } = yield* start(bench, of(better), runId)
            expect(yield* result).toEqual([runId === "none" ? long : "short", "next"])
          }),
        )
        expect(thought).toBe(1)
      }
    }))

  test("makes the first window smaller, too", (bench) =>
    Effect.gen(function* () {
      const initial = { notes: [long, "short"] }
      const workflow = showing(carrying({ ...last, maxBytes: 50, initial }).step("a", none, () => {}))
      expect(outcomeOf(yield* ended(bench, workflow))).toEqual(["short"])
      const without = outcomeOf(
        yield* ended(bench, showing(carrying({ maxBytes: 50, initial }).step("a", none, () => {})), undefined, "s"),
      )
      expect([without.step, without.message]).toEqual([
        "(window)",
        expect.stringContaining("after '(window)' the window takes"),
      ])
    }))

  test("is not asked for the sake of a run that is over", (bench) =>
    Effect.gen(function* () {
      const workflow = showing(carrying({ maxBytes: 50 }).step("a", none, noting(long)))
      expect(outcomeOf(yield* ended(bench, workflow))).toEqual([long])
      const early = done(
        carrying({ maxBytes: 50 })
          .step("a", none, noting(long))
          .end("enough", () => null),
      )
      expect(outcomeOf(yield* ended(bench, early, undefined, "s"))).toBeUndefined()
      // Its end is a commit of its own here.
      const arms = showing(
        carrying({ maxBytes: 50 }).parallel("arms", {
          a: (flow: any) => flow.step("x", none, noting(long)),
          b: (flow: any) => flow.step("y", none, noting("b")),
        }),
      )
      expect([...outcomeOf(yield* ended(bench, arms, undefined, "t"))].sort()).toEqual(["b", long])
    }))
})

describe("WindowTooLarge", () => {
  test("reaches clients by its tag, where the workflow declares it", (bench) =>
    Effect.gen(function* () {
      const workflow = done(
        carrying({ maxBytes: 50 }, { failure: WindowTooLarge })
          .step("a", none, noting(long))
          .step("b", none, () => {}),
      )
      const failed = outcomeOf(yield* ended(bench, workflow))
      expect([failed._tag, failed.step, failed.bytes, failed.maxBytes]).toEqual(["WindowTooLarge", "a", 74, 50])
    }))

  test("is the run's failure, not that of the item in which it came to it", (bench) =>
    Effect.gen(function* () {
      const workflow = done(
        carrying({ maxBytes: 50 })
          .forEach("each", { items: () => ["x"], key: (item: string) => item, onFailure: "collect" }, (flow: any) =>
            flow.step("a", none, noting(long)),
          )
          .step("b", none, () => {}),
      )
      const failed = outcomeOf(yield* ended(bench, workflow))
      expect([failed._tag, failed.step]).toEqual(["RunFailed", "each[x]/a"])
    }))
})

describe("a step that compacts", () => {
  const flowOf = (window: object): any =>
    carrying({ maxBytes: 70, ...window })
      .step("think", none, noting(long))
      .step("next", none, noting("next"))
  const agent = (window: object) => showing(flowOf(window))

  test("is one of its own: what made the window too large is committed first, and what comes next sees what it gave", (bench) =>
    Effect.gen(function* () {
      const asked: Array<ReadonlyArray<string>> = []
      const needs = providing((notes) => {
        asked.push(notes)
        return summing(notes)
      })
      expect(outcomeOf(yield* ended(bench, agent({ compact: asking() }), needs))).toEqual(["sum of 1", "next"])
      expect(asked).toEqual([[long]])
      expect((yield* states(bench)).map(({ path, effect, attempts }) => [path, effect, attempts])).toEqual([
        [":window[1]", "window", 1],
        [":window[2]", "window:think", 1],
        [":window[2]/compact", "window:think", 1],
        [":window[4]", "window:next", 1],
      ])
    }))

  test("is tried again as it says, in the run and after a long delay, and each attempt is recorded", (bench) =>
    Effect.gen(function* () {
      let times = 0
      const needs = providing((notes) => (++times < 4 ? Effect.fail(new Error(`busy ${times}`)) : summing(notes)))
      const retry = { times: 5, delay: "400 millis" }
      expect(outcomeOf(yield* ended(bench, agent({ compact: asking({ retry }) }), needs))).toEqual(["sum of 1", "next"])
      const attempts = yield* attemptsAt(bench, ":window[2]/compact")
      expect(attempts.map(({ attempt, kind, message }) => [attempt, kind, message])).toEqual([
        [1, "failed", "busy 1"],
        [2, "failed", "busy 2"],
        [3, "failed", "busy 3"],
      ])
      expect((yield* states(bench))[2]!.attempts).toBe(4)
      // The third retry came more than a second later: the run slept in the store.
      expect(bench.commits.some(({ run }) => run.status === "sleeping")).toBe(true)
      const events = yield* provided(bench, Cairn.events(agent({ compact: asking() }), { runId: "r" }))
      const told: Array<string> = []
      yield* Effect.promise(async () => {
        for await (const event of events) told.push(`${event._tag} ${"path" in event ? event.path : ""}`.trim())
      })
      const failed = "AttemptEnded :window[2]/compact"
      expect(told).toEqual(["StepCompleted think", failed, failed, failed, "StepCompleted next", "Finished"])
    }))

  test("is paid for by itself: what its calls cost is told apart from what steps cost", (bench) =>
    Effect.gen(function* () {
      let times = 0
      const cents = (cents: number) => ({ model: "m", usage: () => ({ microDollars: cents * 10_000 }) })
      const compact = {
        effects: [Effects.read("model")],
        retry: { times: 1, delay: 1 },
        run: ({ paid, window }: any) =>
          paid(cents(2), async () => {
            if (++times === 1) throw new Error("busy")
            return { notes: [`sum of ${window.notes.length}`] }
          }),
      }
      const workflow = showing(
        carrying({ maxBytes: 70, compact })
          .step("think", { effects: [Effects.read("model")], output: Schema.Void }, (context: any) => {
            noting(long)(context)
            return context.paid(cents(5), async () => {})
          })
          .step("next", none, noting("next")),
      )
      expect(outcomeOf(yield* ended(bench, workflow))).toEqual(["sum of 1", "next"])
      const { calls } = yield* provided(bench, Cairn.calls({ runId: "r" }))
      expect(calls.map(({ attempt, microDollars, outcome, step }) => [step, attempt, microDollars, outcome])).toEqual([
        ["think", 1, 50_000, "kept"],
        [":window[2]/compact", 1, null, "failed"],
        [":window[2]/compact", 2, 20_000, "kept"],
      ])
    }))

  test("times out, and has its answers checked, mended and refused like any step", (bench) =>
    Effect.gen(function* () {
      let times = 0
      const needs = providing(() =>
        ++times === 1 ? Effect.never : Effect.succeed(Output.unvalidated(answers[times - 2])),
      )
      const answers = [{ notes: "no list" }, "notes: one, two"]
      const repair = ({ raw }: any) => (typeof raw === "string" ? { notes: raw.slice(7).split(", ") } : raw)
      const compact = asking({
        timeout: "1 minute",
        retry: { times: 1, delay: 1 },
        onInvalid: { retries: 1, repair, then: "fail" },
      })
      expect(outcomeOf(yield* ended(bench, agent({ compact }), needs))).toEqual(["one", "two", "next"])
      expect((yield* attemptsAt(bench, ":window[2]/compact")).map(({ kind, name }) => [kind, name])).toEqual([
        ["failed", "StepTimeout"],
        ["rejected", "InvalidValue"],
      ])
    }))

  test("that leaves the window too large has failed: it is tried again, and then the run fails with what it needs", (bench) =>
    Effect.gen(function* () {
      let times = 0
      let short = false
      const needs = providing((notes) => {
        times += 1
        return short ? summing(notes) : Effect.succeed({ notes: [long + long] })
      })
      const workflow = agent({ compact: asking({ retry: { times: 2, delay: 1 } }) })
      const failed = outcomeOf(yield* ended(bench, workflow, needs))
      expect([failed._tag, failed.step, times]).toEqual(["RunFailed", ":window[2]/compact", 3])
      expect(failed.message).toContain(
        "after 'think' the window takes 134 bytes as JSON and at most 70 are allowed; have compact make",
      )
      expect(failed.details.tag).toBe("WindowTooLarge")
      // Tried again by a person, it is asked again: from the window that the step has left.
      short = true
      yield* startWorker(bench.store, { workflows: [workflow] }, needs)
      yield* provided(bench, Cairn.retry(workflow, { runId: "r" }))
      expect(yield* (yield* start(bench, workflow)).result).toEqual(["sum of 1", "next"])
      expect(times).toBe(4)
    }))

  test("waits for a person where it says so, and takes what the person gives", (bench) =>
    Effect.gen(function* () {
      const workflow = agent({ compact: asking({ onInvalid: { retries: 0, then: "review" } }) })
      yield* startWorker(
        bench.store,
        { workflows: [workflow] },
        providing(() => Effect.succeed(7)),
      )
      const { result } = yield* start(bench, workflow)
      const parked = outcomeOf(yield* Effect.exit(result))
      expect([parked._tag, parked.reason, parked.step]).toEqual(["RunParked", "OutputInvalid", ":window[2]/compact"])
      yield* provided(bench, Cairn.accept(workflow, { runId: "r" }, { by: "ann", output: { notes: ["by ann"] } }))
      expect(yield* result).toEqual(["by ann", "next"])
    }))

  test("comes before anything else of the run begins, and after what is under way", (bench) =>
    Effect.gen(function* () {
      const order: Array<string> = []
      const slow = Effect.unsafeMakeLatch(false)
      const say = (what: string) => (context: any) => {
        order.push(what)
        noting(what)(context)
      }
      const needs = providing((notes) => {
        order.push(`compact ${notes.length}`)
        return summing(notes)
      })
      const workflow = showing(
        carrying({ maxBytes: 70, compact: asking() }).parallel("arms", {
          large: (flow: any) =>
            flow
              .step("large", none, (context: any) => {
                order.push("large")
                noting(long)(context)
                // The slow one goes on when this step is committed and the loop has decided anew.
                setImmediate(() => setImmediate(() => Effect.runSync(slow.open)))
              })
              .step("after", none, say("after")),
          slow: (flow: any) =>
            flow
              .step("slow", none, (context: any) => Effect.map(slow.await, () => say("slow")(context)))
              .step("then", none, say("then")),
        }),
      )
      const notes = outcomeOf(yield* ended(bench, workflow, needs))
      expect(order.slice(0, 3)).toEqual(["large", "slow", "compact 2"])
      expect(order.slice(3).sort()).toEqual(["after", "then"])
      expect([notes[0], ...notes.slice(1).sort()]).toEqual(["sum of 2", "after", "then"])
    }))

  test("that comes later or waits for a person holds the whole run, and nothing of the rest is lost", (bench) =>
    Effect.gen(function* () {
      let times = 0
      let held = 0
      const needs = providing((notes) => {
        times += 1
        return times === 1 ? Effect.fail(new Error("busy")) : times === 2 ? Effect.succeed(7) : summing(notes)
      })
      const workflow = showing(
        carrying({
          maxBytes: 70,
          compact: asking({ retry: { times: 1, delay: "10 seconds" }, onInvalid: { retries: 0, then: "review" } }),
        }).parallel("arms", {
          held: (flow: any) =>
            flow.step("held", { effects: [], output: Schema.String, onInvalid: { retries: 0, then: "review" } }, () =>
              held++ === 0 ? 7 : "well",
            ),
          sleeps: (flow: any) => flow.sleep("nap", "5 seconds").step("awake", none, noting("awake")),
          large: (flow: any) => flow.step("large", none, noting(long)).step("after", none, noting("after")),
        }),
      )
      yield* startWorker(bench.store, { workflows: [workflow] }, needs)
      const { result } = yield* start(bench, workflow)
      const parked: Array<unknown> = []
      for (let resumed = 0; resumed < 2; resumed++) {
        const { reason, step } = outcomeOf(yield* Effect.exit(result))
        parked.push([reason, step, times, held])
        yield* provided(bench, Cairn.resume({ runId: "r" }))
      }
      // Who waits for a person comes before what waits for its time; the other way round it would never be seen.
      expect(parked).toEqual([
        ["OutputInvalid", "arms:held/held", 1, 1],
        ["OutputInvalid", expect.stringMatching(/^:window\[\d+\]\/compact$/), 2, 1],
      ])
      const [first, ...rest] = (yield* result) as ReadonlyArray<string>
      expect([first, ...rest.sort()]).toEqual(["sum of 1", "after", "awake"])
      expect([times, held]).toEqual([3, 2])
    }))

  test("is cut off when its run is canceled", (bench) =>
    Effect.gen(function* () {
      const begun = Effect.unsafeMakeLatch(false)
      let asked = 0
      const needs = providing(() => {
        asked += 1
        return Effect.zipRight(begun.open, Effect.never)
      })
      const workflow = agent({ compact: asking() })
      yield* startWorker(bench.store, { workflows: [workflow] }, needs)
      const canceled = yield* start(bench, workflow)
      yield* begun.await
      yield* provided(bench, Cairn.cancel({ runId: "r" }))
      expect(outcomeOf(yield* Effect.exit(canceled.result))._tag).toBe("RunCanceled")
      expect(asked).toBe(1)
    }))

  test("does not begin while its run is paused", (bench) =>
    Effect.gen(function* () {
      let asked = 0
      const needs = providing((notes) => {
        asked += 1
        return summing(notes)
      })
      const workflow = showing(
        carrying({ maxBytes: 70, compact: asking() })
          .step("think", none, (context: any) => {
            noting(long)(context)
            return Effect.asVoid(provided(bench, Cairn.pause({ runId: "r" })))
          })
          .step("next", none, noting("next")),
      )
      yield* startWorker(bench.store, { workflows: [workflow] }, needs)
      const { result } = yield* start(bench, workflow)
      const run = Effect.map(bench.driver.findRun("default", "r"), (found) => found!)
      yield* Effect.repeat(Effect.zipRight(Effect.sleep(10), run), {
        until: ({ leaseOwner, seq }) => seq >= 2 && leaseOwner === null,
      })
      expect(asked).toBe(0)
      yield* provided(bench, Cairn.resume({ runId: "r" }))
      expect(yield* result).toEqual(["sum of 1", "next"])
    }))
})
