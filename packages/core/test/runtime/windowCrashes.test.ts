/**
 * Workers that die wherever they can while their run carries a window, also while it is compacted: what a model is sent after a
 * resume is byte for byte what it was sent before, and no change is lost or made twice (field cases P027, P100).
 */
import { describe, expect } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Schema } from "effect"
import { Effects, type AnyWorkflow } from "../../src/index.js"
import { makeBench, makeMortal, startDoomed, startWorker, type Bench } from "./support/bench.js"
import { test } from "./support/adding.js"
import { carrying, done, none, Notes, noting, outcomeOf, start, texts } from "./support/carrying.js"
import { Charge } from "./support/operations.js"
import { payment } from "./support/paying.js"

/** What the model was asked for: by the place that asked, all texts that it was sent. */
class Asked {
  readonly byPlace = new Map<string, Array<string>>()

  note(place: string, window: unknown): void {
    this.byPlace.set(place, [...(this.byPlace.get(place) ?? []), JSON.stringify(window)])
  }
}

class Model extends Context.Tag("Model")<
  Model,
  { readonly ask: (place: string, window: typeof Notes.Type) => Effect.Effect<string> }
>() {}

const needs = (asked: Asked) =>
  Layer.mergeAll(
    Layer.succeed(Model, {
      ask: (place, window) =>
        Effect.sync(() => {
          asked.note(place, window)
          return `${place}, after ${window.notes.length}`
        }),
    }),
    Charge.toLayer(() => Effect.succeed({ id: "ch", at: new Date(0) })),
  ) as Layer.Layer<any>

const think = (place: string, context: any) =>
  Effect.gen(function* () {
    const model = yield* Model
    const answer = yield* model.ask(place, context.window)
    noting(answer)(context)
    return answer
  })

const asking = { effects: [Effects.read(Model)], output: Schema.String } as const

/** An agent that thinks, acts and takes notes; its window is compacted by the model every few turns. */
const agent: AnyWorkflow = done(
  carrying({
    maxBytes: 70,
    compact: {
      effects: [Effects.read(Model)],
      run: ({ window }: any) =>
        Effect.flatMap(Model, (model) =>
          Effect.map(model.ask(`compact ${window.notes.at(-1)}`, window), (sum) => ({ notes: [sum.slice(0, 40)] })),
        ),
    },
  })
    .step("plan", asking, (context: any) => think("plan", context))
    .loop(
      "turns",
      { state: Schema.Number, initial: () => 0, maxIterations: 4, onLimit: "stop" },
      (flow: any) =>
        flow
          .step("think", asking, (context: any) => think(`turn ${context.turn}`, context))
          .step("act", { effects: [Charge], output: Schema.Void }, async (context: any) => {
            await context.perform(Charge, payment)
            noting(`acted ${context.turn}`)(context)
          }),
      ({ state }: any) => ({ done: false, state: state + 1 }),
    )
    .step("note", none, noting("over"))
    .output(Notes, ({ window }: any) => window),
)

interface Lived {
  readonly exit: Exit.Exit<any, any>
  readonly texts: ReadonlyArray<string | null>
  /** How often a worker has died. */
  readonly deaths: number
  readonly places: ReadonlyArray<string>
}

/** Runs a workflow on workers that die when the run has passed so many points, and then on one that lives. */
const throughDeaths = (
  bench: Bench,
  workflow: AnyWorkflow,
  asked: Asked,
  deaths: ReadonlyArray<number>,
  options: object,
) =>
  Effect.gen(function* () {
    const handle = yield* start(bench, workflow)
    const places: Array<string> = []
    let died = 0
    for (const after of deaths) {
      let left = after
      const over = Effect.unsafeMakeLatch(false)
      const mortal = makeMortal(bench.store, (point, { step }) =>
        Effect.suspend(() => {
          // Where nothing of the run goes on, its worker may die as well; but that would be no place of the run.
          if (point.endsWith("Beat") || left-- > 0) return Effect.void
          places.push(`${point} ${step}`)
          died += 1
          mortal.kill()
          return over.open
        }),
      )
      const { close } = yield* startDoomed(
        mortal,
        { workflows: [workflow], lease: "1 second", maxRecoveries: 100, ...options },
        needs(asked),
      )
      yield* Effect.raceFirst(over.await, Effect.either(handle.result))
      // When all is over, nothing of the dead is left to keep the clock busy.
      yield* Effect.addFinalizer(() => Effect.suspend(() => Effect.zipRight(Effect.sync(mortal.wake), close)))
    }
    yield* startWorker(
      bench.store,
      { workflows: [workflow], lease: "1 second", maxRecoveries: 100, ...options },
      needs(asked),
    )
    const exit = yield* Effect.exit(handle.result)
    return { exit, texts: yield* texts(bench), deaths: died, places } satisfies Lived
  }).pipe(Effect.scoped) as Effect.Effect<Lived, any>

const lives = (asked: Asked, deaths: ReadonlyArray<number>, options: object = {}, workflow = agent) =>
  Effect.flatMap(makeBench, (bench) => throughDeaths(bench, workflow, asked, deaths, options))

/** Each place was sent one text, however often it has asked. */
const expectSame = ({ byPlace }: Asked, expected: Asked) => {
  for (const [place, sent] of byPlace) expect([place, new Set(sent).size]).toEqual([place, 1])
  const firsts = (asked: Asked) => [...asked.byPlace].map(([place, [first]]) => [place, first]).sort()
  expect(firsts({ byPlace } as Asked)).toEqual(firsts(expected))
}

describe("a run that carries a window", () => {
  for (const durability of ["barrier", "step"] as const) {
    test(`goes on with the same bytes wherever its worker has died (${durability})`, () =>
      Effect.gen(function* () {
        const undisturbed = new Asked()
        const whole = yield* lives(undisturbed, [], { durability })
        const compactions = [...undisturbed.byPlace.keys()].filter((place) => place.startsWith("compact"))
        expect([Exit.isSuccess(whole.exit), compactions.length]).toEqual([true, 3])
        const places: Array<string> = []
        for (let point = 0; ; point++) {
          const asked = new Asked()
          const lived = yield* lives(asked, [point], { durability })
          places.push(...lived.places)
          expect(outcomeOf(lived.exit)).toEqual(outcomeOf(whole.exit))
          expect(lived.texts).toEqual(whole.texts)
          expectSame(asked, undisturbed)
          if (lived.deaths === 0) break
        }
        expect(places.length).toBeGreaterThan(60)
        // Each of them at the window's beginning and while it was compacted, too.
        const pointsOf = (step: RegExp) =>
          new Set(places.map((place) => place.split(" ")).flatMap(([point, of]) => (step.test(of!) ? [point] : [])))
        expect(pointsOf(/^\(window\)$/)).toEqual(new Set(["beforeCommit", "afterCommit"]))
        expect(pointsOf(/^:window\[\d+\]\/compact$/)).toEqual(new Set(["afterGate", "beforeCommit", "afterCommit"]))
      }))
  }

  test("goes on with the same bytes when workers die again and again", () =>
    Effect.gen(function* () {
      const undisturbed = new Asked()
      const whole = yield* lives(undisturbed, [])
      for (let seed = 1; seed <= 25; seed++) {
        const deaths = Array.from({ length: 6 }, (_, index) => (seed * 7 + index * 11) % 19)
        const asked = new Asked()
        const lived = yield* lives(asked, deaths)
        expect(lived.deaths).toBeGreaterThan(2)
        expect(outcomeOf(lived.exit)).toEqual(outcomeOf(whole.exit))
        expect(lived.texts).toEqual(whole.texts)
        expectSame(asked, undisturbed)
      }
    }))

  test("loses no change of arms and items, and makes none twice, wherever its worker has died", () =>
    Effect.gen(function* () {
      const items = ["a", "b", "c", "d", "e"]
      const workflow = done(
        carrying({ compact: ({ notes }: typeof Notes.Type) => ({ notes }) })
          .parallel("arms", {
            left: (flow: any) => flow.step("x", none, noting("left")).step("y", none, noting("left again")),
            right: (flow: any) =>
              flow.forEach("each", { items: () => items, key: (item: string) => item, concurrency: 3 }, (flow: any) =>
                flow
                  .step("read", none, (context: any) => noting(`${context.item} read`)(context))
                  .step("act", { effects: [Charge], output: Schema.Void }, async (context: any) => {
                    await context.perform(Charge, payment)
                    noting(`${context.item} acted`)(context)
                  }),
              ),
          })
          .output(Notes, ({ window }: any) => window),
      )
      const expected = [...items.flatMap((item) => [`${item} read`, `${item} acted`]), "left", "left again"].sort()
      for (let point = 0; ; point++) {
        const lived = yield* lives(new Asked(), [point, point % 5], {}, workflow)
        expect([...outcomeOf(lived.exit).notes].sort()).toEqual(expected)
        // Each state is the one before with one note more.
        const states = lived.texts.map((text) => (JSON.parse(text!) as typeof Notes.Type).notes)
        states.forEach((notes, index) => expect(notes).toEqual(states.at(-1)!.slice(0, index)))
        if (lived.deaths < 2) break
      }
    }))
})
