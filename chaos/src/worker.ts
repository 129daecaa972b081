/** One worker process of a fleet. It runs until it is killed, or asked to stop by SIGTERM. */
import { Faults, Worker } from "@cairn/core"
import { Effect, Layer, Logger, LogLevel, Schedule } from "effect"
import type { Orders } from "./fleet.js"
import { storeAt } from "./store.js"
import { note } from "./trace.js"
import { order, outsideWorld } from "./workflow.js"

const orders = JSON.parse(process.env["CHAOS_ORDERS"] ?? "") as Orders
const { concurrency, durability, flushMs = 0, leaseMs, local, log, maxPendingBytes, store: address } = orders

const faults = Layer.succeed(Faults, {
  reach: (point, { runId, step }) =>
    Effect.suspend(() => {
      // What is accepted is so for a while before it is durable: a kill finds the worker ahead of the database.
      if (point === "beforeFlush" && flushMs > 0) return Effect.sleep(Math.random() * flushMs)
      if (point === "afterCommit") note("accepted", runId, step)
      return Effect.void
    }),
})

const live = Worker.layer({
  workflows: [order],
  concurrency,
  ...(durability === undefined ? {} : { durability }),
  ...(local === undefined ? {} : { local }),
  ...(maxPendingBytes === undefined ? {} : { maxPendingBytes }),
  // A run may be on several workers that are killed before it gets anywhere: that is the storm's fault, not the run's.
  maxRecoveries: 100,
  lease: leaseMs,
  pollInterval: "100 millis",
  drain: "1 second",
}).pipe(
  Layer.provide(outsideWorld(log)),
  Layer.provide(faults),
  Layer.provide(storeAt(address)),
  Layer.provide(Logger.minimumLogLevel(LogLevel.Error)),
)

const stop = new AbortController()
process.once("SIGTERM", () => stop.abort())
process.on("unhandledRejection", (reason) => {
  process.stderr.write(`unhandled rejection: ${String(reason)}\n`)
  process.exit(9)
})

const work = Effect.zipRight(
  Layer.build(live),
  Effect.suspend(() => {
    process.stdout.write("up\n")
    return Effect.never
  }),
)

// A database that is away when a worker starts: it tries again, as a supervisor would.
await Effect.runPromiseExit(Effect.retry(Effect.scoped(work), Schedule.spaced("200 millis")), { signal: stop.signal })
