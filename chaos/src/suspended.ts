/**
 * Many runs that wait for a signal, in one process: what each of them holds there (field case P092).
 *
 *     node --expose-gc --conditions=@cairn/source --import tsx chaos/src/suspended.ts [sqlite|postgres] [runs]
 *
 * Prints one line of figures, and fails if a run that waits holds 2 kB, a timer, or what its step has opened.
 */
import { Cairn, CheckpointStore, Worker, Workflow } from "@cairn/core"
import { Effect, Layer, Logger, LogLevel, Schema } from "effect"
import { collectedHeap, storeOf } from "./heapMeasure.js"

let opened = 0
let closed = 0

const waiting = Workflow.make("waiting", { version: 1, input: Schema.Int })
  .step("open", { effects: [], output: Schema.Int }, ({ input }) =>
    Effect.acquireRelease(
      Effect.sync(() => (opened++, input)),
      () => Effect.sync(() => void closed++),
    ).pipe(Effect.scoped),
  )
  .signal("word", { schema: Schema.String, timeout: "1 hour", onTimeout: "fail" })
  .step("last", { effects: [], output: Schema.Int }, ({ input }) => input)
  .output(Schema.Int, ({ results }) => results.last)
  .compile()

/** As many callers at once. */
const concurrency = 64

const [which = "sqlite", given = "10000"] = process.argv.slice(2)
const runs = Number(given)
const runIdOf = (n: number): string => `run-${n}`

const each = <A, E, R>(from: number, to: number, one: (n: number) => Effect.Effect<A, E, R>) =>
  Effect.forEach(
    Array.from({ length: to - from }, (_, index) => from + index),
    one,
    { concurrency, discard: true },
  )

const suspended = (from: number, to: number) =>
  Effect.gen(function* () {
    const { findRun } = yield* CheckpointStore
    yield* each(from, to, (n) => Cairn.start(waiting, n, { runId: runIdOf(n) }))
    const isWaiting = (n: number) =>
      Effect.repeat(Effect.delay(findRun("default", runIdOf(n)), 20), { until: ({ status }) => status === "waiting" })
    yield* each(from, to, isWaiting)
  })

const completed = (from: number, to: number) =>
  each(from, to, (n) =>
    Effect.gen(function* () {
      const handle = yield* Cairn.attach(waiting, { runId: runIdOf(n) })
      yield* Cairn.signal(waiting, { runId: runIdOf(n) }, "word", "go")
      yield* handle.result
    }),
  )

const timers = (): number => process.getActiveResourcesInfo().filter((of) => of === "Timeout").length

const measured = Effect.gen(function* () {
  const warm = Math.max(200, runs / 10)
  yield* suspended(0, warm)
  yield* completed(0, warm)
  const before = yield* collectedHeap
  const timersBefore = timers()
  yield* suspended(warm, warm + runs)
  const { running } = yield* Worker
  yield* Effect.repeat(Effect.delay(running, 20), { until: (ids) => ids.length === 0 })
  const during = yield* collectedHeap
  const figures = {
    runs,
    bytesARun: (during - before) / runs,
    timersBefore,
    timersDuring: timers(),
    opened: opened - warm,
    closed: closed - warm,
  }
  yield* completed(warm, warm + runs)
  return { ...figures, bytesARunAfter: ((yield* collectedHeap) - before) / runs }
})

const { layer, remove } = await storeOf(which)
const live = Worker.layer({ workflows: [waiting], concurrency, pollInterval: "100 millis" }).pipe(
  Layer.provide(Logger.minimumLogLevel(LogLevel.None)),
  Layer.provideMerge(layer),
)
const figures = await Effect.runPromise(Effect.provide(measured, live))
await remove()
process.stdout.write(`${JSON.stringify(figures)}\n`)
const isWell =
  figures.bytesARun < 2_000 &&
  figures.timersDuring <= figures.timersBefore + 5 &&
  figures.opened === runs &&
  figures.closed === runs
process.exit(isWell ? 0 : 1)
