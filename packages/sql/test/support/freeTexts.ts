/** Texts that people and providers choose: stored, shown and told alike by every store. */
import {
  Cairn,
  contextFromDriver,
  Effects,
  Worker,
  Workflow,
  type AnyWorkflow,
  type CheckpointDriver,
} from "@cairn/core"
import { Effect, Layer, Logger, Schema, type Scope } from "effect"
import { describe, expect, it } from "vitest"

/** With a NUL, which Postgres takes in no text, and halves of surrogate pairs, which are no UTF-8. */
const odd = "a\0b\ud800c\udc00d 👩‍💻"
const kept = "a\ufffdb\ufffdc\ufffdd 👩‍💻"

/** A Standard Schema that takes whatever is JSON. */
const anything = { "~standard": { version: 1, vendor: "test", validate: (value: unknown) => ({ value }) } } as const

const make = (name: string): any => (Workflow.make as any)(name, { version: 1, input: Schema.Null })

const review = { decision: anything, deadline: "1 day", onReject: "continue", onTimeout: "fail" }

const waiting: AnyWorkflow = make("waiting")
  .review("look", {
    ...review,
    show: () => ({ zero: -0, none: Number.NaN, most: Infinity, wei: 10n, by: new Map([["a", 1]]) }),
  })
  .output(anything, ({ results }: any) => ({ ...results.look, at: 0 }))
  .compile()

const paying: AnyWorkflow = make("paying")
  .step("pay", { effects: [Effects.read("model")], output: Schema.Int }, ({ paid }: any) =>
    paid({ model: odd, usage: () => ({ microDollars: 7 }) }, async () => 5),
  )
  .output(Schema.Int, ({ results }: any) => results.pay)
  .compile()

const workflows = [waiting, paying]

export const keepsFreeTexts = (name: string, open: Effect.Effect<CheckpointDriver, unknown, Scope.Scope>): void => {
  const run = (body: Effect.Effect<void, unknown, any>): Promise<void> =>
    Effect.gen(function* () {
      const store = Layer.succeedContext(contextFromDriver(yield* open))
      yield* Effect.provide(body, Layer.provideMerge(Worker.layer({ workflows, pollInterval: 20 }), store))
    }).pipe(Effect.scoped, Effect.provide(Logger.remove(Logger.defaultLogger)), (made) =>
      Effect.runPromise(made as Effect.Effect<void, unknown>),
    )

  /** A run that waits for a person, and what it shows. */
  const shown = Effect.gen(function* () {
    const handle = yield* Cairn.start(waiting, null, { runId: "r" })
    const { reviews } = yield* Effect.repeat(Effect.zipLeft(Cairn.reviews(), Effect.sleep(10)), {
      until: (page) => page.reviews.length > 0,
    })
    return { handle, review: reviews[0]! }
  })

  describe(`${name}: free texts`, () => {
    it("the name of a model, by which costs are told apart", () =>
      run(
        Effect.gen(function* () {
          expect(yield* (yield* Cairn.start(paying, null)).result).toBe(5)
          expect(yield* Cairn.cost({ by: "model" })).toMatchObject([{ key: kept, microDollars: 7 }])
        }),
      ))

    it("the reason of a cancel", () =>
      run(
        Effect.gen(function* () {
          const { handle } = yield* shown
          yield* Cairn.cancel({ runId: "r", reason: odd })
          expect(yield* Effect.flip(handle.result)).toMatchObject({ _tag: "RunCanceled", reason: kept })
        }),
      ))

    it("who decides, and why not", () =>
      run(
        Effect.gen(function* () {
          const { handle } = yield* shown
          yield* Cairn.review(waiting, { runId: "r" }, { by: odd, reject: odd })
          expect(yield* handle.result).toMatchObject({ outcome: "rejected", by: kept, reason: kept })
        }),
      ))

    it("a decision is the one that was given, to the sign of a zero; what was shown has every number", () =>
      run(
        Effect.gen(function* () {
          const { handle, review } = yield* shown
          const seen = { zero: 0, none: "NaN", most: "Infinity", wei: "10", by: [["a", 1]] }
          expect(review.shown).toEqual(seen)
          yield* Cairn.review(waiting, { runId: "r" }, { by: "ada", approve: [-0, { cents: -0, most: 1e308 }, odd] })
          const result: any = yield* handle.result
          expect(result).toMatchObject({ outcome: "approved", by: "ada" })
          expect(result.decision).toStrictEqual([-0, { cents: -0, most: 1e308 }, odd])
        }),
      ))
  })
}
