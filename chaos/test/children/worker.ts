/** One worker process. It prints one line of JSON an event. */
import { Cairn, CheckpointStore, Faults, Worker } from "@cairn/core"
import { Effect, Layer, Logger, LogLevel } from "effect"
import { storeAt } from "../../src/store.js"
import type { Orders } from "../internal/processes.js"
import { chargesTo, clockOff, mailed, order, stalling } from "../internal/workflows.js"

const orders = JSON.parse(process.env["CHAOS_ORDERS"] ?? "{}") as Orders
const { clockMs = 0, concurrency = 16, killAt, leaseMs = 600, local, log, maxRecoveries = 3, name } = orders
const { starts, store } = orders

const say = (event: string, rest: object = {}): void => {
  process.stdout.write(`${JSON.stringify({ event, ...rest })}\n`)
}

const faults = Layer.succeed(Faults, {
  reach: (point, { runId, step }) =>
    Effect.gen(function* () {
      if (point !== "afterGate" || step !== killAt?.step || runId !== (killAt.runId ?? runId)) return
      say("dies", { runId })
      process.kill(process.pid, "SIGKILL")
      yield* Effect.never
    }),
})

/** The runs of its own, as this process sees them when all have ended. */
const ownRuns = (count: number) =>
  Effect.gen(function* () {
    const { findRun } = yield* CheckpointStore
    const handles = yield* Effect.forEach(Array.from({ length: count }), (_, n) =>
      Cairn.start(order, { order: n }, { runId: `${name}-${n}` }),
    )
    const first = yield* findRun("default", `${name}-0`)
    say("started", { runId: first.runId, createdAt: first.createdAt })
    const results = yield* Effect.forEach(handles, (handle) => Effect.either(handle.result), {
      concurrency: "unbounded",
    })
    say("ended", { results: results.map((result) => (result._tag === "Right" ? result.right : String(result.left))) })
  })

const live = Worker.layer({
  workflows: [order, stalling, mailed],
  concurrency,
  lease: leaseMs,
  maxRecoveries,
  ...(local === undefined ? {} : { local }),
  pollInterval: "50 millis",
  drain: "1 second",
}).pipe(Layer.provide(chargesTo(log, name)), Layer.provide(faults), Layer.provideMerge(storeAt(store)))

const program =
  starts === undefined
    ? Effect.zipRight(
        Effect.sync(() => say("ready")),
        Effect.never,
      )
    : ownRuns(starts)

await Effect.runPromise(
  program.pipe(Effect.provide(live), Effect.withClock(clockOff(clockMs)), Logger.withMinimumLogLevel(LogLevel.Warning)),
)
