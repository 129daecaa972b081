/**
 * A worker dies at each message that it sends to the server in a run of five steps, before it has arrived or before its
 * answer is heard. Another worker resumes the run (field case P011).
 */
import { Cairn, CheckpointStore, contextFromDriver, OnUnknown, Operation, Worker, Workflow } from "@cairn/core"
import { PostgresDriver } from "@cairn/postgres"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Logger, Schema } from "effect"
import { freshSchema, useDatabase } from "./internal/database.js"
import { makeMortalProxy, type LastWords } from "./internal/mortalProxy.js"

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

const worker = (sent: Array<string>, lease: number, pollInterval: number) =>
  Worker.layer({ workflows: [five], lease, pollInterval, drain: 0 }).pipe(
    Layer.provide(
      Charge.toLayer((cents, { idempotencyKey }) => Effect.sync(() => (sent.push(idempotencyKey), cents * 10))),
    ),
    quiet,
  )

/** What is durable of the run: its state and its steps, with a question mark where an operation is sent or about to be. */
const durable = Effect.gen(function* () {
  const store = yield* CheckpointStore
  const { run, steps } = yield* store.load("default", "r")
  const { effects } = yield* store.loadOpen("default", "r", ["charge", "again"])
  const known = steps.filter(({ seq }) => seq > 0).map(({ path }) => path)
  const unknown = effects.map(({ path }) => path).filter((path) => !known.includes(path))
  return [run.status, ...known, ...unknown.map((path) => `${path}?`)].join(" ")
})

/** Gives what was durable when the worker died, or null if the run was done before. */
const cutAfter = (messages: number, how: LastWords) =>
  Effect.gen(function* () {
    const schema = yield* freshSchema(database)
    const options = { schema, listen: false, maxConnections: 2, retryTimeoutMs: 50 }
    const second = contextFromDriver(yield* PostgresDriver.make({ ...options, url: database.url }))
    const proxy = yield* makeMortalProxy(database.url)
    const first = contextFromDriver(yield* PostgresDriver.make({ ...options, url: proxy.url }))
    const sent: Array<string> = []
    const found = yield* Effect.gen(function* () {
      const { poll, result } = yield* Cairn.start(five, 1, { runId: "r" })
      const done = Effect.repeat(Effect.delay(poll, 5), { until: ({ status }) => status === "completed" })
      proxy.dieAfter(messages, how)
      // No look for more, and hardly a heartbeat, so that each message of the run is cut once.
      const cut = yield* Effect.provide(
        Effect.raceFirst(
          Effect.as(
            Effect.promise(() => proxy.died),
            true,
          ),
          Effect.as(done, false),
        ),
        Layer.fresh(worker(sent, 1_500, 10_000).pipe(Layer.provide(Layer.succeedContext(first)))),
      ).pipe(Effect.catchTag("StoreError", () => Effect.succeed(true)))
      const found = yield* durable
      expect(yield* Effect.provide(result, Layer.fresh(worker(sent, 5_000, 20)))).toBe(211)
      return cut ? found : null
    }).pipe(Effect.provide(second))
    const load = Effect.flatMap(CheckpointStore, (store) => store.load("default", "r"))
    const { run, steps } = yield* Effect.provide(load, second)
    expect(steps.map(({ path, seq }) => [path, seq > 0])).toEqual(five.definition.nodes.map(({ name }) => [name, true]))
    expect(run.status).toBe("completed")
    // Sent once, or again under its key.
    expect([...new Set(sent)]).toEqual(["default/r/charge#0", "default/r/again#0"])
    expect(sent.length).toBeLessThanOrEqual(3)
    return found
  })

/** How the run stands after the claim and after each commit: an intent with all steps before it, its outcome, the end. */
const commits = [
  "running",
  "running one charge?",
  "running one charge",
  "running one charge three again?",
  "running one charge three again",
  "completed one charge three again five",
]

/** Cuts that are tried side by side, each in a schema of its own. */
const atOnce = 8

/** Cuts at each message of the run in turn, and adds what was durable after it. */
const cutEach = (how: LastWords, states: Set<string>) =>
  Effect.gen(function* () {
    for (let from = 0; ; from += atOnce) {
      const places = Array.from({ length: atOnce }, (_, n) => from + n)
      const found = yield* Effect.forEach(places, (messages) => Effect.scoped(cutAfter(messages, how)), {
        concurrency: atOnce,
      })
      for (const one of found) if (one !== null) states.add(one)
      if (found.includes(null)) return
    }
  })

/** On a slow machine a heartbeat may stand in the place of a message of the run: then the cuts are made again. */
const rounds = 3

/** What was durable after the cuts: all that is wanted, or what three rounds have shown. */
const everyCut = (how: LastWords, wanted: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const states = new Set<string>()
    for (let round = 0; round < rounds && wanted.some((state) => !states.has(state)); round++)
      yield* cutEach(how, states)
    return [...states]
  })

describe("a worker whose connections die", () => {
  it.scopedLive(
    "at any message that is lost leaves a run that another worker completes, with each effect under one key",
    () =>
      Effect.gen(function* () {
        // Each commit was cut off: what was durable is what the one before has left.
        const wanted = ["pending", ...commits.slice(0, -1)]
        expect(yield* everyCut("lost", wanted)).toEqual(expect.arrayContaining(wanted))
      }),
    120_000,
  )

  it.scopedLive(
    "at any message whose answer is lost leaves a run that another worker completes, with each effect under one key",
    () =>
      Effect.gen(function* () {
        // Each commit has happened, unheard.
        expect(yield* everyCut("unheard", commits)).toEqual(expect.arrayContaining(commits))
      }),
    120_000,
  )
})
