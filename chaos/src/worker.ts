/** One worker process of a fleet. It runs until it is killed, or asked to stop by SIGTERM. */
import { Worker } from "@cairn/core"
import { Effect, Layer, Logger, LogLevel, Schedule } from "effect"
import { storeAt } from "./store.js"
import { order, outsideWorld } from "./workflow.js"

const {
  CHAOS_STORE: address = "",
  CHAOS_LOG: log = "",
  CHAOS_LEASE_MS: leaseMs = "",
  CHAOS_CONCURRENCY: concurrency = "",
} = process.env

const live = Worker.layer({
  workflows: [order],
  concurrency: Number(concurrency),
  // A run may be on several workers that are killed before it gets anywhere: that is the storm's fault, not the run's.
  maxRecoveries: 100,
  lease: Number(leaseMs),
  pollInterval: "100 millis",
  drain: "1 second",
}).pipe(
  Layer.provide(outsideWorld(log)),
  Layer.provide(storeAt(address)),
  Layer.provide(Logger.minimumLogLevel(LogLevel.Error)),
)

const stop = new AbortController()
process.once("SIGTERM", () => stop.abort())
process.on("unhandledRejection", (reason) => {
  process.stderr.write(`unhandled rejection: ${String(reason)}\n`)
  process.exit(9)
})

// A database that is away when a worker starts: it tries again, as a supervisor would.
await Effect.runPromiseExit(Effect.retry(Layer.launch(live), Schedule.spaced("200 millis")), { signal: stop.signal })
