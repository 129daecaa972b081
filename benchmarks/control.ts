/**
 * What long loops and wide fan-outs cost: time and bytes a turn or item, memory, and how long a resume takes in the middle.
 *
 * Run it from the root: `node --expose-gc --conditions=@cairn/source --import tsx benchmarks/control.ts [turns]`. It prints one
 * line a case, on a SQLite file with `synchronous=full`.
 */
import { Effect, Layer, Schema } from "effect"
import { mkdtemp, rm, stat } from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"
import { Cairn, CheckpointStore, Faults, Worker, Workflow, type AnyWorkflow } from "../packages/core/src/index.js"
import { SqliteStore } from "../packages/sqlite/src/index.js"

const most = Number(process.argv[2] ?? 10_000)
const payload = "x".repeat(200)

/** Where the run is to stand still: at the step of that turn or item. */
let stopAt = -1
let beganAt = 0
let active = 0
let mostActive = 0

const body = (at: number) =>
  Effect.suspend(() => {
    if (at === stopAt) {
      beganAt = performance.now()
      return Effect.never
    }
    mostActive = Math.max(mostActive, ++active)
    return Effect.as(Effect.yieldNow(), payload).pipe(Effect.ensuring(Effect.sync(() => active--)))
  })

const loop = Workflow.make("loop", { version: 1, input: Schema.Int })
  .loop(
    "agent",
    { state: Schema.Int, initial: () => 0, maxIterations: 10_000_000 },
    (flow) => flow.step("think", { effects: [], output: Schema.String }, ({ state }) => body(state)),
    ({ input, state }) => ({ done: state + 1 >= input, state: state + 1 }),
  )
  .compile()

const each = Workflow.make("each", { version: 1, input: Schema.Int })
  .forEach(
    "each",
    {
      items: ({ input }) => Array.from({ length: input }, (_, n) => ({ id: `item-${n}`, n })),
      key: ({ id }) => id,
      concurrency: 10,
    },
    (flow) => flow.step("work", { effects: [], output: Schema.String }, ({ item }) => body(item.n)),
  )
  .compile()

const waiting = Workflow.make("waiting", { version: 1, input: Schema.Int })
  .step("before", { effects: [], output: Schema.String }, () => payload)
  .signal("go", { schema: Schema.Null })
  .compile()

/** What runs that wait hold of the process which has executed them: heap and timers. */
const suspended = async (filename: string, count: number) => {
  const heap = () => {
    global.gc?.()
    global.gc?.()
    return process.memoryUsage().heapUsed
  }
  const timers = () => process.getActiveResourcesInfo().filter((resource) => resource === "Timeout").length
  return on(
    filename,
    waiting,
    Effect.gen(function* () {
      const wait = (runId: string) => Effect.map(Cairn.start(waiting, 1, { runId }), ({ poll }) => poll)
      const rests = (poll: Effect.Effect<{ readonly status: string }, unknown>) =>
        Effect.repeat(Effect.zipRight(Effect.sleep("20 millis"), poll), { until: ({ status }) => status === "waiting" })
      yield* Effect.flatMap(wait("first"), rests)
      const before = { heap: heap(), timers: timers() }
      const runs = Array.from({ length: count }, (_, n) => `run-${n}`)
      const polls = yield* Effect.forEach(runs, wait, { concurrency: 500 })
      yield* Effect.forEach(polls.slice(-100), rests, { concurrency: 100, discard: true })
      yield* Effect.forEach(polls, rests, { concurrency: 500, discard: true })
      polls.length = 0
      yield* Effect.sleep("1 second")
      return { bytes: (heap() - before.heap) / count, timers: timers() - before.timers }
    }),
  )
}

const on = <A, E>(filename: string, workflow: AnyWorkflow, effect: Effect.Effect<A, E, CheckpointStore | Worker>, faults: Layer.Layer<never> = Layer.empty) =>
  Effect.runPromise(
    Effect.provide(
      effect,
      Worker.layer({ workflows: [workflow], drain: 0, pollInterval: "20 millis" }).pipe(
        Layer.provide(faults),
        Layer.provideMerge(SqliteStore.layer({ filename })),
      ) as Layer.Layer<CheckpointStore | Worker>,
    ),
  )

const started = (workflow: AnyWorkflow, count: number) => Cairn.start(workflow, count, { runId: "run" })

/** The whole run, in one go. */
const whole = async (filename: string, workflow: AnyWorkflow, count: number) => {
  stopAt = -1
  mostActive = 0
  global.gc?.()
  const before = process.memoryUsage().rss
  let peak = before
  const watch = setInterval(() => (peak = Math.max(peak, process.memoryUsage().rss)), 5)
  const from = performance.now()
  await on(filename, workflow, Effect.flatMap(started(workflow, count), ({ result }) => result))
  const took = performance.now() - from
  clearInterval(watch)
  const { size } = await stat(filename)
  return { us: (took / count) * 1_000, bytes: size / count, rssMb: (peak - before) / 1e6, mostActive }
}

/** From the claim to the step at which an earlier process was killed. */
const resumed = async (filename: string, workflow: AnyWorkflow, count: number) => {
  stopAt = count - 1
  beganAt = 0
  const until = Effect.repeat(Effect.sleep("2 millis"), { until: () => beganAt > 0 })
  await on(filename, workflow, Effect.zipRight(started(workflow, count), until))
  let claimedAt = 0
  const claimed = Layer.succeed(Faults, {
    reach: (point) => (point === "afterClaim" ? Effect.sync(() => void (claimedAt = performance.now())) : Effect.void),
  })
  const times: Array<number> = []
  for (let round = 0; round < 5; round++) {
    beganAt = 0
    await on(filename, workflow, until, claimed)
    times.push(beganAt - claimedAt)
  }
  return times.sort((a, b) => a - b)[2]!
}

const folder = await mkdtemp(path.join(tmpdir(), "cairn-control-"))
try {
  for (const workflow of [loop, each]) {
    for (const count of [100, 1_000, most]) {
      const file = (name: string) => path.join(folder, `${workflow.name}-${count}-${name}.db`)
      const { bytes, mostActive, rssMb, us } = await whole(file("whole"), workflow, count)
      const resumeMs = await resumed(file("resume"), workflow, count)
      process.stdout.write(
        `${workflow.name.padEnd(5)} ${String(count).padStart(7)}  ${us.toFixed(0).padStart(5)} us each  ${bytes.toFixed(0).padStart(5)} bytes each  peak +${rssMb.toFixed(0)} MB  at most ${mostActive} at once  resume ${resumeMs.toFixed(2)} ms\n`,
      )
    }
  }
  const { bytes, timers } = await suspended(path.join(folder, "suspended.db"), most)
  process.stdout.write(`${most} runs that wait: ${bytes.toFixed(0)} bytes of heap each, ${timers} more timers\n`)
} finally {
  await rm(folder, { recursive: true, force: true })
}
process.exit(0)
