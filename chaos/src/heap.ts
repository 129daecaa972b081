/**
 * Many short runs in one process, of every end that a run can have: what of them stays in its memory (field case P105).
 *
 *     node --expose-gc --conditions=@cairn/source --import tsx chaos/src/heap.ts [sqlite|postgres] [runs ..]
 *
 * Measures after so many runs each (50000 200000), and fails if the heap has grown by 5 % from the first to the last.
 */
import { Cairn, CheckpointStore, LeaseLost, Worker, Workflow, type CheckpointStoreService } from "@cairn/core"
import { Effect, Either, Fiber, Layer, Logger, LogLevel, Schema } from "effect"
import { collectedHeap, storeOf } from "./heapMeasure.js"

type End = "completed" | "failed" | "canceled" | "abandoned" | "lost"

/** How each tenth run ends, in turn. */
const ends: ReadonlyArray<End> = [
  ...(["completed", "failed", "completed", "abandoned", "completed"] as const),
  ...(["canceled", "completed", "failed", "completed", "lost"] as const),
]

const input = Schema.Struct({ n: Schema.Int })
const text = { effects: [], output: Schema.String } as const

const short = Workflow.make("short", { version: 1, input })
  .step("a", text, ({ input }) => `a of ${input.n}`)
  .step("b", text, ({ input }) => `b of ${input.n}`)
  .output(Schema.String, ({ results }) => results.b)
  .compile()

const failing = Workflow.make("failing", { version: 1, input })
  .step("a", text, ({ input }) => `a of ${input.n}`)
  .step("b", text, ({ input }) => Effect.fail(new Error(`b of ${input.n}`)))
  .compile()

const canceled = Workflow.make("canceled", { version: 1, input })
  .step("a", text, ({ input }) => `a of ${input.n}`)
  .signal("word", { schema: Schema.String })
  .compile()

const workflows = [short, failing, canceled] as const
const runIdOf = (n: number, end: End): string => `${end}-${n}`

/**
 * A store that refuses what the first owner of some runs commits, as if another worker had them. Nothing here runs them
 * then, and they are given back: that is the one commit which it takes.
 */
const refusing = (store: CheckpointStoreService): CheckpointStoreService => ({
  ...store,
  commit: (batch) => {
    const isLost = batch.map(
      ({ lease, run }) => lease.runId.startsWith("lost") && lease.fence === 1 && run.status !== "sleeping",
    )
    if (!isLost.includes(true)) return store.commit(batch)
    const rest = batch.filter((_, index) => !isLost[index])
    return Effect.map(rest.length === 0 ? Effect.succeed([]) : store.commit(rest), (results) => {
      let next = 0
      return batch.map(({ lease }, index) => (isLost[index] ? Either.left(new LeaseLost(lease)) : results[next++]!))
    })
  },
})

/** Runs that are waited for in the end: a run that was given back is tried again seconds later. */
const late = new Set<Fiber.Fiber<unknown, unknown>>()

const one = (n: number): Effect.Effect<unknown, unknown, CheckpointStore> => {
  const end = ends[n % ends.length]!
  const options = { runId: runIdOf(n, end) }
  if (end === "failed") return Effect.flip(Effect.flatMap(Cairn.start(failing, { n }, options), ({ result }) => result))
  if (end === "canceled") {
    return Effect.flatMap(Cairn.start(canceled, { n }, options), ({ result }) =>
      Effect.zipRight(Cairn.cancel(options), Effect.flip(result)),
    )
  }
  return Effect.flatMap(Cairn.start(short, { n }, options), ({ result }) => {
    if (end === "lost") return Effect.map(Effect.forkDaemon(result), (fiber) => void late.add(fiber))
    // Somebody who waits, and goes away.
    if (end === "abandoned") return Effect.zipRight(Effect.flatMap(Effect.fork(result), Fiber.interrupt), result)
    return result
  })
}

/** So many runs of the worker at once, and as many callers. */
const concurrency = 64

interface Heap {
  readonly runs: number
  readonly heapBytes: number
  readonly rssBytes: number
}

const measured = (marks: ReadonlyArray<number>) =>
  Effect.gen(function* () {
    let next = 0
    const heaps: Array<Heap> = []
    for (const mark of marks) {
      const line = Effect.whileLoop({
        while: () => next < mark,
        body: () => one(next++),
        step: () => {},
      })
      yield* Effect.all(
        Array.from({ length: concurrency }, () => line),
        { concurrency: "unbounded", discard: true },
      )
      yield* Fiber.joinAll(late)
      late.clear()
      const heap = { runs: mark, heapBytes: yield* collectedHeap, rssBytes: process.memoryUsage.rss() }
      process.stdout.write(`${JSON.stringify(heap)}\n`)
      heaps.push(heap)
    }
    return heaps
  })

const [which = "sqlite", ...given] = process.argv.slice(2)
const marks = (given.length < 2 ? ["50000", "200000"] : given).map(Number)
const { layer, remove } = await storeOf(which)
const watched = Layer.effect(CheckpointStore, Effect.map(CheckpointStore, refusing)).pipe(Layer.provide(layer))
const live = Worker.layer({ workflows, concurrency, lease: "1 second", pollInterval: "100 millis" }).pipe(
  Layer.provide(Logger.minimumLogLevel(LogLevel.None)),
  Layer.provideMerge(watched),
)
const before = process.hrtime.bigint()
const heaps = await Effect.runPromise(Effect.provide(measured(marks), live))
const seconds = Number(process.hrtime.bigint() - before) / 1e9
await remove()
const grownBy = heaps.at(-1)!.heapBytes / heaps[0]!.heapBytes - 1
process.stdout.write(`${JSON.stringify({ which, seconds: Math.round(seconds), grownBy })}\n`)
process.exit(grownBy < 0.05 ? 0 : 1)
