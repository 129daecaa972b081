/** The window that a run carries: seen as it is stored, changed with the commit of a step, and by nothing else. */
import { describe, expect } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { z } from "zod"
import { Cairn, Faults, fromDriver, Workflow } from "../../src/index.js"
import { makeMortal, startDoomed, startWorker } from "./support/bench.js"
import { test } from "./support/adding.js"
import {
  carrying,
  done,
  ended,
  none,
  Notes,
  noting,
  number,
  outcomeOf,
  provided,
  reading,
  showing,
  start,
  states,
  text,
  texts,
} from "./support/carrying.js"
import { Charge } from "./support/operations.js"
import { payment } from "./support/paying.js"
import { makeShelf } from "./support/shelf.js"

const charging = Charge.toLayer(() => Effect.succeed({ id: "ch", at: new Date(0) })) as Layer.Layer<any>

describe("a window", () => {
  test("is seen as it is stored, on the first run as on a resume", (bench) =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const schema = Schema.Struct({
        at: Schema.DateFromNumber,
        tags: Schema.optionalWith(Schema.Array(Schema.String), { default: () => ["default"] }),
      })
      const look = ({ window }: any) => {
        seen.push(`${window.at instanceof Date} ${window.at.getTime()} ${window.tags.join("|")}`)
        // What is done to this copy is nobody else's affair.
        window.tags.push("lost")
      }
      const workflow = done(
        carrying({ schema, initial: { at: new Date(1), tags: ["a"] } })
          .step("first", none, look)
          .step("change", none, ({ changeWindow }: any) =>
            changeWindow(({ at, tags }: any) => ({ at: new Date(at.getTime() + 1), tags: [...tags, "b"] })),
          )
          .step("second", none, look)
          .step("third", none, look),
      )
      const mortal = makeMortal(bench.store, (point, { step }) =>
        Effect.sync(() => {
          if (point === "beforeCommit" && step === "second") mortal.kill()
        }),
      )
      yield* startDoomed(mortal, { workflows: [workflow], lease: "1 second", durability: "step" })
      const handle = yield* start(bench, workflow)
      yield* Effect.repeat(Effect.sleep(10), { until: () => seen.length === 2 })
      yield* startWorker(bench.store, { workflows: [workflow], lease: "1 second" })
      yield* handle.result
      expect(seen).toEqual(["true 1 a", "true 2 a|b", "true 2 a|b", "true 2 a|b"])
      expect(yield* texts(bench)).toEqual(['{"at":1,"tags":["a"]}', '{"at":2,"tags":["a","b"]}'])
    }))

  test("is changed by the attempt that is committed, and by no other", (bench) =>
    Effect.gen(function* () {
      let tries = 0
      const seen: Array<unknown> = []
      const workflow = showing(
        carrying().step(
          "think",
          { ...text, retry: { times: 1, delay: 1 }, onInvalid: { retries: 1, then: "fail" } },
          (context: any) => {
            tries += 1
            noting(`try ${tries}`)(context)
            noting("and more")(context)
            seen.push(context.window)
            expect(context.window).toBe(seen.at(-1))
            return tries === 1 ? Effect.fail("no") : tries === 2 ? 7 : "yes"
          },
        ),
      )
      expect(outcomeOf(yield* ended(bench, workflow))).toEqual(["try 3", "and more"])
      expect(seen).toEqual([{ notes: [] }, { notes: [] }, { notes: [] }])
      expect((yield* states(bench)).map(({ effect }) => effect)).toEqual(["window", "window:think"])
    }))

  test("stands in the commit of the step that changes it; one that stays the same is not written again", (bench) =>
    Effect.gen(function* () {
      const workflow = showing(
        carrying()
          .step("a", none, noting("x"))
          .step("b", none, ({ changeWindow }: any) => changeWindow((window: any) => ({ ...window })))
          .step("c", none, () => {}),
      )
      expect(outcomeOf(yield* ended(bench, workflow))).toEqual(["x"])
      const records = yield* states(bench)
      expect(records.map(({ path, scope, seq }) => [path, scope, seq])).toEqual([
        [":window[1]", ":window[", 1],
        [":window[2]", ":window[", 2],
      ])
      const { steps } = (yield* bench.driver.load("default", "r"))!
      expect(steps.map(({ path, seq }) => [path, seq])).toEqual([
        ["a", 2],
        ["b", 3],
        ["c", 4],
      ])
    }))

  test("begins as it was computed once: code that computes another one changes no run that has begun", (bench) =>
    Effect.gen(function* () {
      const of = (word: string) =>
        showing(
          (Workflow.make as any)("w", {
            version: 1,
            input: Schema.String,
            window: { schema: Notes, initial: ({ input }: any) => ({ notes: [word, input] }) },
          })
            .signal("go", { schema: Schema.Null })
            .step("a", none, noting("a")),
        )
      const handle = yield* provided(bench, Cairn.start(of("old"), "in", { runId: "r" }))
      const waits = Effect.map(bench.driver.findRun("default", "r"), (run) => run?.status === "waiting")
      yield* Effect.scoped(
        Effect.zipRight(
          startWorker(bench.store, { workflows: [of("old")] }),
          Effect.repeat(Effect.zipRight(Effect.sleep(10), waits), { until: (is) => is }),
        ),
      )
      yield* startWorker(bench.store, { workflows: [of("new")] })
      yield* provided(bench, Cairn.signal(of("new"), { runId: "r" }, "go", null))
      expect(yield* handle.result).toEqual(["old", "in", "a"])
    }))

  test("is seen by all that steers, in turns, items, cases and arms", (bench) =>
    Effect.gen(function* () {
      const workflow = done(
        carrying()
          .loop(
            "turns",
            { state: Schema.Number, initial: ({ window }: any) => window.notes.length, maxIterations: 9 },
            (flow: any) => flow.step("think", none, (context: any) => noting(`turn ${context.turn}`)(context)),
            ({ state, window }: any) => ({ done: window.notes.length === 3, state: state + 1 }),
          )
          .forEach("each", { items: ({ window }: any) => window.notes, key: (note: string) => note }, (flow: any) =>
            flow.step("shout", none, (context: any) => noting(`${context.item}!`)(context)),
          )
          .branch("go", ({ window }: any) => (window.notes.length === 6 ? "six" : "other"), {
            six: (flow: any) => flow.step("in", none, noting("six")),
            other: (flow: any) => flow,
          })
          .parallel("arms", { a: (flow: any) => flow.step("x", none, noting("a")), b: (flow: any) => flow })
          .sleep("rest", ({ window }: any) => window.notes.length)
          .output(Schema.Array(Schema.Union(Schema.Number, Schema.String)), ({ results, window }: any) => [
            results.turns,
            results.each.total,
            ...window.notes,
          ]),
      )
      const notes = ["turn 0", "turn 1", "turn 2", "turn 0!", "turn 1!", "turn 2!", "six", "a"]
      const [turns, total, ...all] = outcomeOf(yield* ended(bench, workflow))
      expect([turns, total, all.sort()]).toEqual([3, 3, [...notes].sort()])
    }))

  test("is not seen where it would be asked for again after a crash, and may be another by then", (bench) =>
    Effect.gen(function* () {
      const seen: Record<string, boolean> = {}
      const look = (name: string, context: object) => void (seen[name] = "window" in context)
      const child = done(
        (Workflow.make as any)("child", { version: 1, input: Schema.Null }).step("none", none, (context: any) =>
          look("child", context),
        ),
      )
      const workflow = done(
        carrying()
          .perform("pay", Charge, {
            payload: (context: any) => {
              look("payload", context)
              return payment
            },
          })
          .match(
            "kind",
            "t",
            (context: any) => {
              look("match", context)
              return { t: "x" }
            },
            { x: (flow: any) => flow },
          )
          .child("child", child, {
            input: (context: any) => {
              look("input", context)
              return null
            },
          })
          .step("charge", { effects: [Charge], output: Schema.String }, async (context: any) => {
            noting("charged")(context)
            await context.perform(Charge, payment)
            return context.window.notes[0]
          }),
      )
      const failed = outcomeOf(yield* ended(bench, workflow, charging))
      expect(seen).toEqual({ payload: false, match: false, input: false, child: false })
      expect([failed._tag, failed.step]).toEqual(["RunFailed", "charge"])
      expect(failed.message).toContain("a step that performs does not see the window")
    }))

  test("is changed by a step that performs, and by a promise in its time; not once its step has ended", (bench) =>
    Effect.gen(function* () {
      let late: (change: unknown) => void = () => {}
      const workflow = showing(
        carrying()
          .step("charge", { effects: [Charge], output: Schema.Void }, async (context: any) => {
            await context.perform(Charge, payment)
            noting("charged")(context)
            late = context.changeWindow
          })
          .step("after", none, ({ changeWindow }: any) => {
            expect(() => late(() => null)).toThrow("the window was changed after step 'charge' had ended")
            expect(() => changeWindow({ notes: [] })).toThrow("changeWindow takes a function")
          }),
      )
      expect(outcomeOf(yield* ended(bench, workflow, charging))).toEqual(["charged"])
    }))

  test("may be of a schema that validates later, and of one that stores nothing", (bench) =>
    Effect.gen(function* () {
      const later = z.object({ n: z.number() }).refine(async ({ n }) => Promise.resolve(n < 3), "too many")
      const workflow = done(
        carrying({ schema: later, initial: { n: 0 } })
          .parallel("arms", {
            a: (flow: any) => flow.step("x", none, counting),
            b: (flow: any) => flow.step("y", none, counting),
          })
          .output(Schema.Number, ({ window }: any) => window.n),
      )
      expect(outcomeOf(yield* ended(bench, workflow))).toBe(2)
      const nothing = done(
        carrying({ schema: Schema.UndefinedOr(Schema.Number), initial: undefined })
          .step("a", none, ({ window }: any) => void expect(window).toBeUndefined())
          .step("b", none, ({ changeWindow }: any) => changeWindow(() => 7))
          .output(Schema.Number, ({ window }: any) => window),
      )
      expect(outcomeOf(yield* ended(bench, nothing, undefined, "s"))).toBe(7)
      expect(yield* texts(bench, "s")).toEqual([null, "7"])
    }))
})

const counting = ({ changeWindow }: any) => changeWindow(({ n }: any) => ({ n: n + 1 }))

interface Arm {
  readonly path: string
  readonly hasCome: Effect.Latch
  readonly mayPass: Effect.Latch
}

describe("steps beside each other", () => {
  test("lose no change of each other, whatever they do in between", (bench) =>
    Effect.gen(function* () {
      const items = Array.from({ length: 24 }, (_, index) => `i${index}`)
      const workflow = showing(
        carrying()
          .forEach("each", { items: () => items, key: (item: string) => item, concurrency: 8 }, (flow: any) =>
            flow
              .step("read", none, (context: any) => noting(`${context.item} read`)(context))
              .step("charge", { effects: [Charge], output: Schema.Void }, async (context: any) => {
                await context.perform(Charge, payment)
                noting(`${context.item} charged`)(context)
              }),
          )
          .parallel("arms", {
            a: (flow: any) => flow.step("x", none, noting("a")),
            b: (flow: any) => flow.step("y", none, noting("b")),
          }),
      )
      const notes: Array<string> = outcomeOf(yield* ended(bench, workflow, charging))
      const expected = [...items.flatMap((item) => [`${item} read`, `${item} charged`]), "a", "b"]
      expect([...notes].sort()).toEqual(expected.sort())
      // Each state is the one before with one note more.
      const stored = (yield* texts(bench)).map((each) => (JSON.parse(each!) as typeof Notes.Type).notes)
      stored.forEach((each, index) => expect(each).toEqual(notes.slice(0, index)))
    }))

  test("change what those before have left, whatever of it is durable by then", (bench) =>
    Effect.gen(function* () {
      // Each begins when the commit of the one before has come to the store, which lets go of it once the next one is accepted.
      const [first, second, third] = ["first", "second", "third"].map((name) => ({
        path: `arms:${name}/x`,
        hasCome: Effect.unsafeMakeLatch(false),
        mayPass: Effect.unsafeMakeLatch(name === "third"),
      })) as [Arm, Arm, Arm]
      const driver: typeof bench.driver = {
        ...bench.driver,
        commit: (batch) => {
          const arms = [first, second, third].filter(({ path }) =>
            batch.some(({ steps }) => steps.some((step) => step.path === path)),
          )
          return Effect.zipRight(
            Effect.forEach(arms, ({ hasCome, mayPass }) => Effect.zipRight(hasCome.open, mayPass.await)),
            Effect.suspend(() => bench.driver.commit(batch)),
          )
        },
      }
      const soon = (latch: Effect.Latch) => Effect.sync(() => void setImmediate(() => Effect.runSync(latch.open)))
      const faults = Layer.succeed(Faults, {
        reach: (point, { step }) =>
          point !== "beforeCommit"
            ? Effect.void
            : step === second.path
              ? soon(first.mayPass)
              : step === third.path
                ? soon(second.mayPass)
                : Effect.void,
      })
      const arm = (name: string, after: Effect.Effect<void>) => (flow: any) =>
        flow.step("x", none, (context: any) => Effect.map(after, () => noting(name)(context)))
      const workflow = showing(
        carrying().parallel("arms", {
          first: arm("first", Effect.void),
          second: arm("second", first.hasCome.await),
          third: arm("third", second.hasCome.await),
        }),
      )
      yield* startWorker(fromDriver(driver), { workflows: [workflow], durability: "step" }, undefined, faults)
      expect(yield* (yield* start(bench, workflow)).result).toEqual(["first", "second", "third"])
    }))

  test("see one window for as long as they run", (bench) =>
    Effect.gen(function* () {
      const changed = Effect.unsafeMakeLatch(false)
      const seen: Array<number> = []
      const workflow = showing(
        carrying().parallel("arms", {
          slow: (flow: any) =>
            flow.step("look", none, (context: any) =>
              Effect.map(changed.await, () => {
                seen.push(context.window.notes.length)
                noting("slow")(context)
              }),
            ),
          quick: (flow: any) =>
            flow
              .step("note", none, noting("quick"))
              .step("open", none, () => Effect.zipRight(Effect.yieldNow(), changed.open)),
        }),
      )
      expect(outcomeOf(yield* ended(bench, workflow))).toEqual(["quick", "slow"])
      expect(seen).toEqual([0])
    }))
})

describe("a window that does not fit its schema", () => {
  test("is refused with the step that gave it: as its output would be, and named", (bench) =>
    Effect.gen(function* () {
      const issues: Array<string | null> = []
      const workflow = showing(
        carrying().step(
          "think",
          { ...number, onInvalid: { retries: 1, then: "fail" } },
          ({ changeWindow, rejected }: any) => {
            issues.push(rejected === null ? null : `${rejected.raw}: ${rejected.issues}`)
            changeWindow(() => ({ notes: rejected === null ? [1] : ["fits"] }))
            return 42
          },
        ),
      )
      expect(outcomeOf(yield* ended(bench, workflow))).toEqual(["fits"])
      expect(issues[1]).toMatch(/^42: window after step 'think', at \.notes\[0\]: /)
    }))

  test("fails the run that begins with it, or whose step gives no other", (bench) =>
    Effect.gen(function* () {
      const first = outcomeOf(yield* ended(bench, showing(carrying({ initial: { notes: 1 } })), undefined, "a"))
      expect([first._tag, first.step]).toEqual(["RunFailed", "(window)"])
      expect(first.message).toContain("initial window, at .notes: ")
      const threw = { initial: () => { throw new Error("no context") } } // prettier-ignore
      expect(outcomeOf(yield* ended(bench, showing(carrying(threw)), undefined, "b")).message).toContain("no context")
      const workflow = showing(
        carrying()
          .step("a", none, noting("kept"))
          .step("b", none, ({ changeWindow }: any) => changeWindow(({ notes }: any) => void notes.push("in place"))),
      )
      const then = outcomeOf(yield* ended(bench, workflow, undefined, "c"))
      expect([then._tag, then.step]).toEqual(["RunFailed", "b"])
      expect(then.message).toContain("window after step 'b': ")
      const throws = carrying().step("c", { ...none, retry: { times: 2, delay: 1 } }, ({ changeWindow }: any) =>
        changeWindow(() => {
          throw new Error("cannot change it")
        }),
      )
      expect(outcomeOf(yield* ended(bench, showing(throws), undefined, "d")).message).toContain("cannot change it")
      expect((yield* bench.driver.loadOpen("default", "d", ["c"])).attempts.map(({ kind }) => kind)).toEqual([
        "failed",
        "failed",
        "failed",
      ])
    }))

  test("because code has changed parks the run: nothing goes on from what cannot be read", (bench) =>
    Effect.gen(function* () {
      const of = (schema: Schema.Schema.Any, initial: unknown) =>
        done(
          carrying({ schema, initial })
            .signal("go", { schema: Schema.Null })
            .step("look", none, ({ window }: any) => void String(window))
            .step("change", none, ({ changeWindow }: any) => changeWindow((window: any) => window)),
        )
      for (const [runId, step] of [
        ["a", "look"],
        ["b", "change"],
      ] as const) {
        const before = of(Schema.Number, 1)
        const handle = yield* start(bench, before, runId)
        const status = Effect.map(bench.driver.findRun("default", runId), (run) => run!.status)
        yield* Effect.scoped(
          Effect.zipRight(
            startWorker(bench.store, { workflows: [before] }),
            Effect.repeat(Effect.zipRight(Effect.sleep(10), status), { until: (is) => is === "waiting" }),
          ),
        )
        const after: any = carrying({ schema: Schema.String, initial: "" })
        const now = done(
          after
            .signal("go", { schema: Schema.Null })
            .step("look", none, ({ window }: any) => (step === "look" ? String(window) : undefined))
            .step("change", none, ({ changeWindow }: any) => changeWindow((window: any) => window)),
        )
        yield* provided(bench, Cairn.signal(now, { runId }, "go", null))
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* startWorker(bench.store, { workflows: [now] })
            const error = outcomeOf(yield* Effect.exit(handle.result))
            expect([error._tag, error.reason, error.step]).toEqual([
              "RunParked",
              "IncompatibleCheckpoint",
              ":window[1]",
            ])
            expect(error.message).toContain("stored window")
          }),
        )
      }
    }))
})

describe("what a window costs", () => {
  test("nothing where there is none; else one read a resume, of the newest state", (bench) =>
    Effect.gen(function* () {
      const plain = (Workflow.make as any)("plain", { version: 1, input: Schema.Null })
      for (const [runId, flow, reads] of [
        ["plain", plain, 0],
        ["with", carrying(), 1],
      ] as const) {
        const workflow = done(
          Array.from({ length: 5 }, (_, n) => n)
            .reduce(
              (built: any, n) =>
                built.step(`s${n}`, none, (context: any) => (runId === "with" ? noting(`${n}`)(context) : undefined)),
              flow as any,
            )
            .signal("go", { schema: Schema.Null }),
        )
        const handle = yield* start(bench, workflow, runId)
        const waits = Effect.map(bench.driver.findRun("default", runId), (run) => run!.status === "waiting")
        const first = reading(bench)
        yield* Effect.scoped(
          Effect.zipRight(
            startWorker(fromDriver(first.driver), { workflows: [workflow] }),
            Effect.repeat(Effect.zipRight(Effect.sleep(10), waits), { until: (is) => is }),
          ),
        )
        expect(first.scopes).toEqual([])
        yield* provided(bench, Cairn.signal(workflow, { runId }, "go", null))
        const next = reading(bench)
        yield* Effect.scoped(
          Effect.zipRight(startWorker(fromDriver(next.driver), { workflows: [workflow] }), handle.result),
        )
        expect(next.scopes).toEqual(Array.from({ length: reads }, () => ":window[ 1"))
        expect((yield* states(bench, runId)).length).toBe(reads * 6)
      }
    }))

  test("no event: what clients follow are steps", (bench) =>
    Effect.gen(function* () {
      const workflow = showing(carrying().step("a", none, noting("x")))
      yield* ended(bench, workflow)
      const events = yield* provided(bench, Cairn.events(workflow, { runId: "r" }))
      const told: Array<string> = []
      yield* Effect.promise(async () => {
        for await (const event of events) told.push(`${event._tag} ${"path" in event ? event.path : ""} ${event.seq}`)
      })
      expect(told).toEqual(["StepCompleted a 2", "Finished  2"])
    }))
})

describe("a run that goes back because its data has moved", () => {
  test("goes back to the window as it was then", (bench) =>
    Effect.gen(function* () {
      const { shelf, Stock } = makeShelf()
      const workflow = showing(
        carrying()
          .step("before", none, noting("before"))
          .step("quote", { effects: [Stock], output: Schema.Void, onStale: "rerun" }, (context: any) =>
            Effect.map(Stock.read("a"), (stock) => noting(`quoted ${stock}`)(context)),
          )
          .step("more", none, noting("more"))
          .sleep("night", "5 seconds")
          .step("after", none, noting("after")),
      )
      yield* startWorker(bench.store, { workflows: [workflow] })
      const { result } = yield* start(bench, workflow)
      const sleeps = Effect.map(bench.driver.findRun("default", "r"), (run) => run!.status === "sleeping")
      yield* Effect.repeat(Effect.zipRight(Effect.sleep(10), sleeps), { until: (is) => is })
      expect((yield* texts(bench)).at(-1)).toBe('{"notes":["before","quoted 1","more"]}')
      shelf.put("a", 2)
      expect(yield* result).toEqual(["before", "quoted 2", "more", "after"])
    }))
})

describe("a fork", () => {
  test("begins with the window as it was then", (bench) =>
    Effect.gen(function* () {
      const workflow = showing(
        carrying().step("a", none, noting("a")).step("b", none, noting("b")).step("c", none, noting("c")),
      )
      yield* startWorker(bench.store, { workflows: [workflow] })
      expect(yield* (yield* start(bench, workflow)).result).toEqual(["a", "b", "c"])
      const fork = (step: string) =>
        Effect.flatMap(
          provided(bench, Cairn.fork(workflow, { runId: "r", newRunId: `f ${step}`, step })),
          ({ result }) => result,
        )
      for (const step of ["a", "b", "c"]) {
        expect(yield* fork(step)).toEqual(["a", "b", "c"])
        expect(yield* texts(bench, `f ${step}`)).toEqual(yield* texts(bench))
      }
    }))
})
