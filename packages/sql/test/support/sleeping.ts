/** Sleeps and deadlines of months, over any SQL store: registered by each store's own tests over its own database. */
import { Cairn, contextFromDriver, Worker, Workflow, type AnyWorkflow, type CheckpointDriver } from "@cairn/core"
import { Clock, Effect, Exit, Layer, Logger, Schema, type Scope } from "effect"
import { describe, expect, it } from "vitest"

export interface Place {
  readonly driver: CheckpointDriver
  /** Lets so much time pass: every time that is waited for, in runs and in waits, comes so many milliseconds sooner. */
  readonly pass: (ms: number) => Effect.Effect<void>
}

const day = 86_400_000

const built = (name: string, build: (flow: any) => any): AnyWorkflow => {
  const workflow = build((Workflow.make as any)(name, { version: 1, input: Schema.Null })).compile()
  expect(workflow.diagnostics).toEqual([])
  return workflow
}

const sleeping = built("sleeping", (flow) =>
  flow
    .sleep("month", "30 days")
    .sleepUntil("later", new Date(Date.now() + 400 * day))
    .output(Schema.Null, () => null),
)
const reviewed = built("reviewed", (flow) =>
  flow
    .review("ok", {
      ...{ decision: Schema.Null, show: () => 1, deadline: "90 days", onReject: "continue", onTimeout: "reject" },
    })
    .output(Schema.String, ({ results }: any) => results.ok.outcome),
)

const rowOf = ({ driver }: Place) => Effect.map(driver.findRun("default", "r"), (row) => row!)

const until = (place: Place, status: string, after = 0) =>
  Effect.repeat(Effect.zipRight(Effect.sleep(5), rowOf(place)), {
    until: (row) => row.status === status && row.seq > after,
  })

/** A clock that is off, and steps back by as much again in the midst of it. */
const unsteady = (offMs: number): Clock.Clock => {
  const real = Clock.make()
  const from = Date.now()
  const now = () => Date.now() + offMs - (Date.now() - from > 150 ? offMs * 2 : 0)
  return {
    ...real,
    [Clock.ClockTypeId]: Clock.ClockTypeId,
    sleep: (duration) => real.sleep(duration),
    unsafeCurrentTimeMillis: now,
    currentTimeMillis: Effect.sync(now),
    unsafeCurrentTimeNanos: () => BigInt(now()) * 1_000_000n,
    currentTimeNanos: Effect.sync(() => BigInt(now()) * 1_000_000n),
  }
}

export const sleeps = (name: string, open: Effect.Effect<Place, unknown, Scope.Scope>): void => {
  const on = (clock: Clock.Clock | null, body: (place: Place) => Effect.Effect<unknown, any, any>): Promise<unknown> =>
    Effect.gen(function* () {
      const place = yield* open
      const worker = Worker.layer({ workflows: [sleeping, reviewed], pollInterval: "20 millis", lease: "5 seconds" })
      const live = Layer.provideMerge(worker, Layer.succeedContext(contextFromDriver(place.driver)))
      const run = Effect.provide(body(place), live as Layer.Layer<any>)
      return yield* clock === null ? run : Effect.withClock(run, clock)
    }).pipe(Effect.scoped, Effect.provide(Logger.remove(Logger.defaultLogger)), (effect) =>
      Effect.runPromise(effect as Effect.Effect<unknown>),
    )

  describe(`months on ${name}`, () => {
    const months = (place: Place) =>
      Effect.gen(function* () {
        const handle = yield* Cairn.start(sleeping, null, { runId: "r" })
        const first = yield* until(place, "sleeping")
        expect(first.leaseOwner).toBeNull()
        const now = yield* place.driver.now
        expect(Math.abs(first.wakeAt! - now - 30 * day)).toBeLessThan(10_000)
        yield* place.pass(30 * day - 60_000)
        yield* Effect.sleep(150)
        expect(yield* rowOf(place)).toMatchObject({ status: "sleeping", seq: first.seq })
        yield* place.pass(60_000)
        const second = yield* until(place, "sleeping", first.seq)
        expect(Math.abs(second.wakeAt! - now - 400 * day)).toBeLessThan(60_000)
        yield* place.pass(400 * day)
        expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed(null))
        const { steps } = (yield* place.driver.load("default", "r"))!
        return steps.map(({ path }) => path)
      })

    it("pass while nobody holds the run, and each sleep ends once, when it is due", async () => {
      expect(await on(null, months)).toEqual(["month", "later"])
    })
    it.each([-5, 5])("do so whatever the worker's clock says (%d minutes off, and stepping)", async (minutes) => {
      expect(await on(unsteady(minutes * 60_000), months)).toEqual(["month", "later"])
    })

    it("until a review's deadline leave it open; then it has expired, and takes no decision", () =>
      on(null, (place) =>
        Effect.gen(function* () {
          const handle = yield* Cairn.start(reviewed, null, { runId: "r" })
          const opened = yield* until(place, "review")
          yield* place.pass(90 * day - 60_000)
          yield* Effect.sleep(150)
          expect(yield* rowOf(place)).toMatchObject({ status: "review", seq: opened.seq })
          yield* place.pass(60_000)
          expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed("expired"))
          expect(
            yield* Effect.flip(Cairn.review(reviewed, { runId: "r" }, { by: "ann", approve: null })),
          ).toMatchObject({
            _tag: "DecisionRefused",
            reason: "NotWaiting",
          })
        }),
      ))
  })
}
