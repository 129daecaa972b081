/** What clients hand to a run is no longer than what its steps may give (field case P047). */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Cairn, Workflow, type AnyWorkflow, type CheckpointStore } from "../../src/index.js"
import { makeBench, quiet, refuseUnhandled, withWorker } from "./support/bench.js"
import { makeVirtualClock } from "./support/virtualClock.js"

refuseUnhandled()

const huge = "x".repeat(64 * 1024 * 1024)
const tooLarge = { _tag: "InvalidValue", reason: "TooLarge" }
const asked = { decision: Schema.String, deadline: "1 day", onReject: "fail", onTimeout: "fail" }

type Asking = Effect.Effect<unknown, unknown, CheckpointStore>

const workflow: AnyWorkflow = (Workflow.make as any)("taking", { version: 1, input: Schema.String })
  .signal("news", { schema: Schema.String })
  .review("look", { ...asked, show: ({ results }: any) => results.news })
  .output(Schema.String, ({ results }: any) => results.look.decision)
  .compile()

describe("more than 64 Mi characters of JSON", () => {
  it.live("are refused as input, as a signal's payload and as a decision; the run goes on", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const result = yield* Effect.gen(function* () {
        expect(yield* Effect.flip(Cairn.start(workflow, huge))).toMatchObject(tooLarge)
        const handle = yield* Cairn.start(workflow, "", { runId: "r" })
        const send = (payload: string): Asking => (Cairn.signal as any)(workflow, { runId: "r" }, "news", payload)
        expect(yield* Effect.flip(send(huge))).toMatchObject(tooLarge)
        yield* send("some")
        yield* Effect.repeat(Effect.zipLeft(Cairn.reviews(), Effect.sleep(10)), {
          until: ({ reviews }) => reviews.length > 0,
        })
        const decide = (decision: object): Asking =>
          (Cairn.review as any)(workflow, { runId: "r" }, { by: "ada", ...decision })
        expect(yield* Effect.flip(decide({ approve: huge }))).toMatchObject(tooLarge)
        expect(yield* Effect.flip(decide({ reject: `${huge}x` }))).toMatchObject({ ...tooLarge, field: ".reject" })
        expect(yield* Effect.flip(decide({ by: `${huge}x`, approve: "" }))).toMatchObject({ ...tooLarge, field: ".by" })
        yield* decide({ approve: "yes" })
        return yield* handle.result
      }).pipe(withWorker(bench, [workflow]), Effect.withClock(makeVirtualClock()), Effect.provide(quiet))
      expect(result).toBe("yes")
    }),
  )

  it.live("are refused where a review would show them, by the worker's own limit", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const showing: AnyWorkflow = (Workflow.make as any)("showing", { version: 1, input: Schema.Null })
        .review("look", { ...asked, show: () => "x".repeat(200) })
        .compile()
      const failed = yield* Effect.gen(function* () {
        const handle = yield* Cairn.start(showing, null, { runId: "r" })
        return yield* Effect.flip(handle.result)
      }).pipe(
        withWorker(bench, [showing], undefined, { maxValueLength: 100 }),
        Effect.withClock(makeVirtualClock()),
        Effect.provide(quiet),
      )
      expect((failed as Error).message).toContain("at most 100 are allowed")
    }).pipe(Effect.provide(quiet)),
  )
})
