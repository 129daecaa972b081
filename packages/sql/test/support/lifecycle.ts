/** What people do with runs, over any SQL store: registered by each store's own tests over its own database. */
import {
  Cairn,
  contextFromDriver,
  OnUnknown,
  Operation,
  Worker,
  Workflow,
  type AnyWorkflow,
  type CheckpointDriver,
} from "@cairn/core"
import { Effect, Either, Exit, Layer, Logger, Schema, type Scope } from "effect"
import { describe, expect, it } from "vitest"

/** Two connections to the same data: that of the worker, and that of who looks on from elsewhere. */
export interface Place {
  readonly driver: CheckpointDriver
  readonly second: CheckpointDriver
}

const Book = Operation.make("book", {
  payload: Schema.Struct({ what: Schema.String }),
  success: Schema.Struct({ id: Schema.String }),
  failure: Schema.Struct({ full: Schema.String }),
  onUnknown: OnUnknown.retryWithKey({ keyWindow: "1 day" }),
  timeout: "1 second",
})

const flow = (name: string): any => (Workflow.make as any)(name, { version: 1, input: Schema.Null })
const compiled = (built: any): AnyWorkflow => {
  const workflow = built.compile()
  expect(workflow.diagnostics).toEqual([])
  return workflow
}

/** A trip that is declined until somebody makes room; a parent of it; something that waits for a person. */
const world = () => {
  const keys: Array<string> = []
  let full = true
  const handlers = Book.toLayer(({ what }, { idempotencyKey }) => {
    keys.push(idempotencyKey)
    return what === "guide" && full ? Effect.fail({ full: "none left" }) : Effect.succeed({ id: what })
  })
  const trip = compiled(
    flow("trip")
      .step("plan", { effects: [], output: Schema.String }, () => "plan")
      .perform("flight", Book, { payload: () => ({ what: "flight" }) })
      .perform("guide", Book, { payload: () => ({ what: "guide" }) })
      .output(Schema.String, ({ results }: any) => `${results.flight.id} ${results.guide.id}`),
  )
  const parent = compiled(flow("parent").child("trip", trip, { input: () => null }))
  const asking = compiled(
    flow("asking").review("approve", {
      decision: Schema.Struct({ note: Schema.String }),
      show: () => ({ cents: 5 }),
      deadline: "2 days",
      onReject: "fail",
      onTimeout: "fail",
      who: "ann",
    }),
  )
  return { keys, handlers, trip, parent, asking, makeRoom: () => void (full = false) }
}

type World = ReturnType<typeof world>

const on = (driver: CheckpointDriver) => Layer.succeedContext(contextFromDriver(driver)) as Layer.Layer<any>

const beside = (place: Place, { asking, handlers, parent, trip }: World) =>
  Worker.layer({ workflows: [trip, parent, asking], pollInterval: 20, lease: 30_000 } as any).pipe(
    Layer.provide(handlers as Layer.Layer<any>),
    Layer.provideMerge(on(place.driver)),
    Layer.provide(Logger.remove(Logger.defaultLogger)),
  ) as Layer.Layer<any>

export const lifecycle = (name: string, opened: Effect.Effect<Place, unknown, Scope.Scope>): void => {
  const run = (body: (place: Place, made: World) => Effect.Effect<void, any, any>) => () =>
    Effect.runPromise(
      Effect.scoped(
        Effect.flatMap(opened, (place) => {
          const made = world()
          return Effect.provide(body(place, made), beside(place, made)) as Effect.Effect<void, any>
        }),
      ) as Effect.Effect<void>,
    )
  const until = ({ second }: Place, runId: string, status: string) =>
    Effect.repeat(Effect.delay(second.findRun("default", runId), 10), { until: (run) => run?.status === status })
  const failed = (effect: Effect.Effect<any, any, any>) => Effect.flip(effect) as Effect.Effect<any, any, any>

  describe(`the life of runs in ${name}`, () => {
    it(
      "a failed run and its child go on from where they were, and are listed",
      run((place, made) =>
        Effect.gen(function* () {
          const handle = yield* Cairn.start(made.parent, null, { runId: "r" })
          expect(Exit.isFailure(yield* Effect.exit(handle.result))).toBe(true)
          const { runs } = yield* Cairn.list({ status: "failed" })
          expect(runs.map(({ workflow }) => workflow)).toEqual(["trip", "parent"])
          const { runs: children } = yield* Effect.provide(Cairn.list({ parent: "r" }), on(place.second))
          expect(children.map(({ failure, runId }) => [failure?.kind, runId])).toEqual([["declared", runs[0]!.runId]])
          made.makeRoom()
          yield* (yield* Cairn.retry(made.parent, { runId: "r" })).result
          expect(made.keys.map((key) => key.split("/").at(-1))).toEqual(["flight#0", "guide#0", "guide#1"])
          expect((yield* failed(Cairn.retry(made.parent, { runId: "r" }))).reason).toBe("NotFailed")
        }),
      ),
    )

    it(
      "a fork reuses what was done, or is refused",
      run((place, made) =>
        Effect.gen(function* () {
          made.makeRoom()
          expect(yield* (yield* Cairn.start(made.trip, null, { runId: "r" })).result).toBe("flight guide")
          const refused = yield* failed(Cairn.fork(made.trip, { runId: "r", step: "flight" }))
          expect(refused.effects.map(({ path }: { readonly path: string }) => path)).toEqual(["flight", "guide"])
          const options = { runId: "r", newRunId: "f", step: "plan", effects: "reuse" } as const
          const asked = Effect.provide(Cairn.fork(made.trip, options), on(place.second))
          const handles = yield* Effect.all([asked, Cairn.fork(made.trip, options)], { concurrency: 2 })
          expect(handles.filter(({ created }) => created)).toHaveLength(1)
          expect(yield* handles[0]!.result).toBe("flight guide")
          expect(made.keys).toHaveLength(2)
          const again = yield* Cairn.fork(made.trip, { runId: "r", newRunId: "g", step: "guide", effects: "newKeys" })
          yield* again.result
          expect(made.keys.slice(2)).toEqual(["default/g/guide#0"])
          expect((yield* Cairn.list({ limit: 2 })).runs.map(({ forkedFrom }) => forkedFrom)).toEqual(["r", "r"])
        }),
      ),
    )

    it(
      "a review is listed, its run paused, decided from elsewhere, and resumed",
      run((place, made) =>
        Effect.gen(function* () {
          const handle = yield* Cairn.start(made.asking, null, { runId: "r" })
          yield* until(place, "r", "review")
          expect(yield* Effect.provide(Cairn.pause({ runId: "r" }), on(place.second))).toBe(true)
          const { reviews } = yield* Cairn.reviews({ who: "ann" })
          expect(reviews.map(({ shown, step, who }) => [shown, step, who])).toEqual([[{ cents: 5 }, "approve", "ann"]])
          const { reviewId, runId } = reviews[0]!
          const decided = Cairn.review(made.asking, { runId, reviewId }, { by: "ann", approve: { note: "ok" } })
          yield* Effect.provide(decided, on(place.second))
          expect((yield* Cairn.reviews()).reviews).toEqual([])
          yield* Effect.sleep(200)
          expect((yield* place.second.findRun("default", "r"))?.status).toBe("pending")
          expect(yield* Effect.provide(Cairn.resume({ runId: "r" }), on(place.second))).toBe(true)
          yield* handle.result
        }),
      ),
    )

    it(
      "many are started at once, some later",
      run((place, made) =>
        Effect.gen(function* () {
          made.makeRoom()
          const runs = Array.from({ length: 30 }, (_, n) => ({ input: null, runId: `run-${n}` }))
          const started = yield* Cairn.startMany(made.trip, [...runs, { input: null, runId: "later", delay: "1 hour" }])
          expect(started.every(Either.isRight)).toBe(true)
          yield* until(place, "run-29", "completed")
          expect((yield* Cairn.list({ status: "sleeping" })).runs.map(({ runId }) => runId)).toEqual(["later"])
          yield* Effect.forEach(started.slice(0, 30), (one) => Effect.flatMap(one, ({ result }) => result))
          const ids = new Set<string>()
          let cursor: string | null | undefined
          while (cursor !== null) {
            const page = yield* Cairn.list({ limit: 7, ...(cursor === undefined ? {} : { cursor }) })
            for (const { runId } of page.runs) ids.add(runId)
            cursor = page.cursor
          }
          expect(ids.size).toBe(31)
        }),
      ),
    )
  })
}
