/**
 * A worker dies at each message that it sends to the server in a run of five steps, before it has arrived or before its
 * answer is heard. Another worker resumes the run (field case P011).
 */
import { Cairn, CheckpointStore, contextFromDriver, OnUnknown, Operation, Worker, Workflow } from "@cairn/core"
import { PostgresDriver } from "@cairn/postgres"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Logger, Schema } from "effect"
import { freshSchema, useDatabase } from "./internal/database.js"
import { makeMortalProxy } from "./internal/mortalProxy.js"

const database = useDatabase()

const Charge = Operation.make("payments.charge", {
  payload: Schema.Int,
  success: Schema.Int,
  onUnknown: OnUnknown.retryWithKey({ keyWindow: "1 hour" }),
  timeout: 50,
})

const five = Workflow.make("five", { version: 1, input: Schema.Int })
  .step("one", { effects: [], output: Schema.Int }, ({ input }) => input + 1)
  .perform("charge", Charge, { payload: ({ results }) => results.one })
  .step("three", { effects: [], output: Schema.Int }, ({ results }) => results.charge + 1)
  .perform("again", Charge, { payload: ({ results }) => results.three })
  .step("five", { effects: [], output: Schema.Int }, ({ results }) => results.again + 1)
  .output(Schema.Int, ({ results }) => results.five)
  .compile()

const quiet = Layer.provide(Logger.remove(Logger.defaultLogger))

const worker = (sent: Array<string>, lease: number) =>
  Worker.layer({ workflows: [five], lease, pollInterval: 20, drain: 0 }).pipe(
    Layer.provide(
      Charge.toLayer((cents, { idempotencyKey }) => Effect.sync(() => (sent.push(idempotencyKey), cents * 10))),
    ),
    quiet,
  )

/** Gives whether the worker has died before the run was done. */
const cutAfter = (messages: number, how: "lost" | "unheard") =>
  Effect.gen(function* () {
    const schema = yield* freshSchema(database)
    const options = { schema, listen: false, maxConnections: 2, retryTimeoutMs: 50 }
    const second = contextFromDriver(yield* PostgresDriver.make({ ...options, url: database.url }))
    const proxy = yield* makeMortalProxy(database.url)
    const first = contextFromDriver(yield* PostgresDriver.make({ ...options, url: proxy.url }))
    const sent: Array<string> = []
    const cut = yield* Effect.gen(function* () {
      const { poll, result } = yield* Cairn.start(five, 1, { runId: "r" })
      const done = Effect.repeat(Effect.delay(poll, 5), { until: ({ status }) => status === "completed" })
      proxy.dieAfter(messages, how)
      // Its run may be done before a heartbeat or a look of the idle worker strikes the fault.
      const cut = yield* Effect.provide(
        Effect.raceFirst(
          Effect.as(
            Effect.promise(() => proxy.died),
            true,
          ),
          Effect.as(done, false),
        ),
        Layer.fresh(worker(sent, 500).pipe(Layer.provide(Layer.succeedContext(first)))),
      ).pipe(Effect.catchTag("StoreError", () => Effect.succeed(true)))
      expect(yield* Effect.provide(result, Layer.fresh(worker(sent, 5_000)))).toBe(211)
      return cut
    }).pipe(Effect.provide(second))
    const load = Effect.flatMap(CheckpointStore, (store) => store.load("default", "r"))
    const { run, steps } = yield* Effect.provide(load, second)
    expect(steps.map(({ path, seq }) => [path, seq > 0])).toEqual(five.definition.nodes.map(({ name }) => [name, true]))
    expect(run.status).toBe("completed")
    // Sent once, or again under its key.
    expect([...new Set(sent)]).toEqual(["default/r/charge#0", "default/r/again#0"])
    expect(sent.length).toBeLessThanOrEqual(3)
    return cut
  })

/** Cuts that are tried side by side, each in a schema of its own. */
const atOnce = 8

describe("a worker whose connections die", () => {
  it.scopedLive(
    "at any message, unsent or unheard in turn, leaves a run that another worker completes, with each effect under one key",
    () =>
      Effect.gen(function* () {
        let cuts = 0
        for (let from = 0, all = true; all; from += atOnce) {
          const places = Array.from({ length: atOnce }, (_, n) => from + n)
          const cut = yield* Effect.forEach(
            places,
            (messages) => Effect.scoped(cutAfter(messages, messages % 2 === 0 ? "lost" : "unheard")),
            { concurrency: atOnce },
          )
          cuts += cut.filter((one) => one).length
          all = !cut.includes(false)
        }
        // A heartbeat, the look for a run and its claim in a transaction, the commits of two intents, of their outcomes and of the end.
        expect(cuts).toBeGreaterThan(12)
      }),
    120_000,
  )
})
