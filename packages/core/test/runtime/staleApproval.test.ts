/**
 * Approvals of what has moved since it was shown, and decisions that are none (field cases P087, P088).
 */
import { describe, expect } from "@effect/vitest"
import { Effect, Exit, Layer, Schema } from "effect"
import { Cairn, OnUnknown, Operation, Output, Workflow, type AnyWorkflow, type OnStale } from "../../src/index.js"
import { quiet, type Bench } from "./support/bench.js"
import { errorOf, test } from "./support/paying.js"
import { done, flow, makeShelf, number, parkedOf, provided, row, start, until, worker } from "./support/shelf.js"

describe("an approval (P087, P088)", () => {
  const Mail = Operation.make("mail", {
    payload: Schema.Number,
    success: Schema.Number,
    onUnknown: OnUnknown.retryWithKey({ keyWindow: "30 days" }),
  })
  const approving = (onStale: OnStale) => {
    const { shelf, Stock } = makeShelf()
    const sent: Array<number> = []
    const Handlers = Mail.toLayer((n) => Effect.sync(() => (sent.push(n), n)))
    const built = flow()
      .step("quote", { effects: [Stock], output: Schema.Number, onStale }, () => Stock.read("a"))
      .review("ok", {
        decision: Schema.Struct({ note: Schema.String }),
        show: ({ results }: any) => results.quote,
        ...{ deadline: "2 days", onReject: "fail", onTimeout: "fail" },
      })
      .perform("mail", Mail, { payload: ({ results }: any) => results.quote })
    return { shelf, sent, Handlers, workflow: done(built, Schema.Number, ({ results }) => results.mail) }
  }
  const approve = (bench: Bench, of: ReturnType<typeof approving>) =>
    provided(bench, Cairn.review(of.workflow, { runId: "r" }, { by: "ann", approve: { note: "yes" } }))
  const opened = (bench: Bench) =>
    Effect.map(provided(bench, Cairn.reviews({})), ({ reviews }) =>
      reviews.map(({ reviewId, shown }: any) => ({ reviewId, shown })),
    )

  test("of what has moved since it was shown is not acted on: it is asked for anew, of what is there now", (bench) =>
    Effect.gen(function* () {
      const of = approving("rerun")
      yield* worker(bench, of.workflow, of.Handlers)
      const handle = yield* start(bench, of.workflow)
      const first = yield* until(bench, "review")
      const [old] = yield* opened(bench)
      expect(old!.shown).toBe(1)
      of.shelf.put("a", 2)
      yield* approve(bench, of)
      yield* until(bench, "review", first.seq)
      expect(of.sent).toEqual([])
      const [next] = yield* opened(bench)
      expect(next!.shown).toBe(2)
      expect(next!.reviewId).not.toBe(old!.reviewId)
      // A decision on what was shown before is none on this.
      const late = Cairn.review(of.workflow, { runId: "r", reviewId: old!.reviewId } as never, {
        by: "ann",
        approve: { note: "late" },
      })
      expect(yield* Effect.flip(provided(bench, late))).toMatchObject({ _tag: "DecisionRefused" })
      yield* approve(bench, of)
      expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed(2))
      expect(of.sent).toEqual([2])
    }).pipe(Effect.scoped, Effect.provide(quiet)))

  test("of what has moved since has no effect before a person has said that it is to go on with it", (bench) =>
    Effect.gen(function* () {
      const of = approving("review")
      yield* worker(bench, of.workflow, of.Handlers)
      const handle = yield* start(bench, of.workflow)
      const first = yield* until(bench, "review")
      of.shelf.put("a", 2)
      yield* approve(bench, of)
      yield* until(bench, "review", first.seq)
      expect((yield* parkedOf(bench)).reason).toBe("DataStale")
      expect(of.sent).toEqual([])
      yield* provided(bench, Cairn.resume({ runId: "r" }))
      expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed(1))
    }).pipe(Effect.scoped, Effect.provide(quiet)))

  test("is found to be of moved data also where its run has not rested, for another arm is at work", (bench) =>
    Effect.gen(function* () {
      const { shelf, Stock } = makeShelf()
      const busy = Effect.unsafeMakeLatch(false)
      const sent: Array<number> = []
      const Handlers = Mail.toLayer((n) => Effect.sync(() => (sent.push(n), n)))
      const built = flow()
        .step("quote", { effects: [Stock], output: Schema.Number, onStale: "review" }, () => Stock.read("a"))
        .parallel("p", {
          a: (f: any) =>
            f
              .review("ok", {
                ...{ decision: Schema.Null, show: ({ results }: any) => results.quote, deadline: "2 days" },
                ...{ onReject: "fail", onTimeout: "fail" },
              })
              .perform("mail", Mail, { payload: ({ results }: any) => results.quote }),
          b: (f: any) => f.step("long", number, () => Effect.as(busy.await, 1)),
        })
      const workflow = done(built, Schema.Number, ({ results }) => results.quote)
      yield* worker(bench, workflow, Handlers)
      yield* start(bench, workflow)
      yield* Effect.repeat(Effect.zipRight(Effect.sleep(10), opened(bench)), { until: (open) => open.length === 1 })
      shelf.put("a", 2)
      yield* provided(bench, Cairn.review(workflow, { runId: "r" }, { by: "ann", approve: null }))
      yield* until(bench, "review")
      expect((yield* parkedOf(bench)).reason).toBe("DataStale")
      expect(sent).toEqual([])
      expect((yield* row(bench)).fence).toBe(1)
      yield* busy.open
    }).pipe(Effect.scoped, Effect.provide(quiet)))

  test("that is none is refused, the review stays open, and the reviewer can say it again (P087)", (bench) =>
    Effect.gen(function* () {
      const of = approving("review")
      yield* worker(bench, of.workflow, of.Handlers)
      const handle = yield* start(bench, of.workflow)
      yield* until(bench, "review")
      const wrong = [
        { by: "ann", approve: {} },
        { by: "ann", approve: null },
        { by: "ann", approve: "yes" },
        { by: "ann", approve: { type: "propagate" } },
        { by: "ann", approve: { note: 1 } },
        { by: "ann", approve: { note: "yes", type: "propagate" } },
        { by: "ann", approve: Output.unvalidated({ note: "yes", type: "propagate" }) },
        { by: "ann", approve: { note: "yes" }, type: "propagate" },
        { by: "ann", approve: { note: "yes" }, reject: null },
        { by: "ann" },
        { by: "", approve: { note: "yes" } },
        { by: " ", approve: { note: "yes" } },
        { by: "\t\u00a0", reject: null },
        { type: "propagate" },
        null,
        "yes",
      ]
      for (const decision of wrong) {
        const exit = yield* Effect.exit(provided(bench, Cairn.review(of.workflow, { runId: "r" }, decision as never)))
        expect(Exit.isFailure(exit), JSON.stringify(decision)).toBe(true)
        expect(errorOf(exit)._tag, JSON.stringify(decision)).toBe("InvalidValue")
        expect(yield* opened(bench)).toHaveLength(1)
      }
      expect(of.sent).toEqual([])
      yield* approve(bench, of)
      expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed(1))
    }).pipe(Effect.scoped, Effect.provide(quiet)))

  test("has the fields of its schema, also deep inside, and none that the schema would fill in by itself (P087)", (bench) =>
    Effect.gen(function* () {
      const Decision = Schema.Struct({
        limits: Schema.Array(Schema.Struct({ cents: Schema.Int, until: Schema.Date })),
        notify: Schema.optionalWith(Schema.Boolean, { default: () => true }),
        why: Schema.optional(Schema.String),
      })
      const workflow: AnyWorkflow = (Workflow.make as any)("w", { version: 1, input: Schema.Null })
        .review("ok", { decision: Decision, show: () => null, deadline: "1 day", onReject: "fail", onTimeout: "fail" })
        .compile()
      yield* worker(bench, workflow, Layer.empty as Layer.Layer<any>)
      yield* start(bench, workflow)
      yield* until(bench, "review")
      const decide = (approve: unknown) =>
        Effect.exit(provided(bench, Cairn.review(workflow, { runId: "r" }, { by: "ann", approve } as never)))
      const raw = { cents: 5, until: "2026-12-01T00:00:00.000Z" }
      const typed = { cents: 5, until: new Date(0) }
      for (const [field, given] of [
        [".notify", Output.unvalidated({ limits: [raw] })],
        [".limits[1].over", Output.unvalidated({ limits: [raw, { ...raw, over: 1 }], notify: true })],
        [".limits[0].over", { limits: [{ ...typed, over: 1 }], notify: true }],
        [".by", { limits: [typed], notify: true, by: "somebody else" }],
      ] as const) {
        expect(errorOf(yield* decide(given)) as any, field).toMatchObject({ _tag: "InvalidValue", field })
        expect(yield* opened(bench)).toHaveLength(1)
      }
      expect(Exit.isSuccess(yield* decide({ limits: [typed], notify: false, why: undefined }))).toBe(true)
    }).pipe(Effect.scoped, Effect.provide(quiet)))
})
