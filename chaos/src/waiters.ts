/**
 * Clients that wait for runs which are asleep, beside runs that work, over one small pool: what the waiting costs those
 * that work (field case P071).
 */
import { Cairn, CheckpointStore, Worker, Workflow } from "@cairn/core"
import { PostgresStore } from "@cairn/postgres"
import { Duration, Effect, Fiber, Layer, Logger, LogLevel, Redacted, Schema } from "effect"

export interface Waiters {
  readonly url: string
  readonly schema: string
  readonly waiters: number
  /** Runs that work at once, in each round. */
  readonly active: number
  /** Rounds without waiters, and as many with them, in turn: what else the machine does strikes both alike. */
  readonly rounds: number
}

/** What the worker's commits and the clients' look-ups took in a round, in milliseconds. */
export interface Round {
  readonly wallMs: number
  readonly commitMs: ReadonlyArray<number>
  readonly lookUpMs: ReadonlyArray<number>
  readonly mostLookUpsAtOnce: number
  readonly ended: number
}

export interface WaitersFigures {
  readonly without: ReadonlyArray<Round>
  readonly withWaiters: ReadonlyArray<Round>
}

export const poolSize = 5

const sleeping = Workflow.make("sleeping", { version: 1, input: Schema.Null })
  .step("nap", { effects: [], output: Schema.Null, retry: { times: 1, delay: "1 day" } }, () =>
    Effect.fail(new Error("not today")),
  )
  .compile()

const think = () => Effect.as(Effect.sleep("50 millis"), null)
const thought = { effects: [], output: Schema.Null } as const

const working = Workflow.make("working", { version: 1, input: Schema.Null })
  .step("a", thought, think)
  .step("b", thought, think)
  .step("c", thought, think)
  .step("d", thought, think)
  .step("e", thought, think)
  .step("f", thought, think)
  .step("g", thought, think)
  .step("h", thought, think)
  .compile()

/** A store that notes what its calls take. */
const timed = (store: CheckpointStore["Type"]) => {
  const notes = { commitMs: [] as Array<number>, lookUpMs: [] as Array<number>, most: 0 }
  const seen = new Set<string>()
  let now = 0
  const taking = <A, E, R>(effect: Effect.Effect<A, E, R>, into: Array<number>, times = 1) =>
    Effect.map(Effect.timed(effect), ([took, value]) => {
      for (let n = 0; n < times; n++) into.push(Duration.toMillis(took))
      return value
    })
  const watched: CheckpointStore["Type"] = {
    ...store,
    // Each commit of a batch has taken as long as all of it.
    commit: (batch) => taking(store.commit(batch), notes.commitMs, batch.length),
    findRuns: (keys) =>
      Effect.acquireUseRelease(
        Effect.sync(() => (notes.most = Math.max(notes.most, ++now))),
        () => taking(store.findRuns(keys), notes.lookUpMs),
        () => Effect.sync(() => now--),
      ).pipe(Effect.tap(() => Effect.sync(() => keys.forEach(({ runId }) => seen.add(runId))))),
  }
  const reset = () => {
    const { commitMs, lookUpMs, most: mostLookUpsAtOnce } = notes
    Object.assign(notes, { commitMs: [], lookUpMs: [], most: 0 })
    seen.clear()
    return { commitMs, lookUpMs, mostLookUpsAtOnce }
  }
  return { watched, reset, looked: () => seen.size }
}

const inNumbers = (count: number) => Array.from({ length: count }, (_, n) => n)

const putToSleep = (count: number) =>
  Effect.gen(function* () {
    const { findRun } = yield* CheckpointStore
    const handles = yield* Effect.forEach(
      inNumbers(count),
      (n) => Cairn.start(sleeping, null, { runId: `sleeper-${n}` }),
      { concurrency: poolSize },
    )
    for (const { runId } of handles) {
      yield* Effect.repeat(Effect.delay(findRun("default", runId), 10), {
        until: ({ status }) => status === "sleeping",
      })
    }
    return handles
  })

const work = (active: number, round: string) =>
  Effect.forEach(
    inNumbers(active),
    (n) => Effect.flatMap(Cairn.start(working, null, { runId: `${round}-${n}` }), (handle) => handle.result),
    { concurrency: "unbounded" },
  )

/** Runs all rounds over a schema of its own. */
export const measureWaiters = ({ active, rounds, schema, url, waiters }: Waiters): Promise<WaitersFigures> =>
  Effect.gen(function* () {
    const { looked, reset, watched } = timed(yield* CheckpointStore)
    const store = Layer.succeed(CheckpointStore, watched)
    const worker = Worker.layer({ workflows: [sleeping, working], concurrency: active, durability: "step" }).pipe(
      Layer.provide(Logger.minimumLogLevel(LogLevel.None)),
    )
    return yield* Effect.gen(function* () {
      const handles = yield* putToSleep(waiters)
      const round = (name: string) =>
        Effect.gen(function* () {
          reset()
          const [took, ended] = yield* Effect.timed(work(active, name))
          return { ...reset(), wallMs: Duration.toMillis(took), ended: ended.length } satisfies Round
        })
      const without: Array<Round> = []
      const withWaiters: Array<Round> = []
      yield* round("warm-up")
      for (const n of inNumbers(rounds)) {
        without.push(yield* round(`without-${n}`))
        reset()
        const waiting = yield* Effect.forEach(handles, ({ result }) => Effect.fork(result))
        // Each has looked once: from here on they only wait.
        yield* Effect.repeat(Effect.sleep(20), { until: () => looked() >= waiters })
        withWaiters.push(yield* round(`with-${n}`))
        yield* Fiber.interruptAll(waiting)
      }
      return { without, withWaiters }
    }).pipe(Effect.provide(Layer.provideMerge(worker, store)))
  }).pipe(
    Effect.provide(PostgresStore.layer({ url: Redacted.make(url), schema, maxConnections: poolSize })),
    Effect.orDie,
    Effect.runPromise,
  )
