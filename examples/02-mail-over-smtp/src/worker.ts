/**
 * A worker process under Cairn: it opens the store, says what it finds there, starts the runs (those that exist already
 * are attached to, and go on) and waits for their results.
 */
import { Cairn, CheckpointStore, defaultNamespace, Faults, Worker } from "@cairn/core"
import { Effect, Layer, Logger } from "effect"
import { mailHandler } from "./handlers.js"
import { makeKillSwitch } from "./killSwitch.js"
import { orderNumbers, Orders } from "./orders.js"
import { storeAt } from "./store.js"
import { leaseMs } from "./timing.js"
import { confirmation } from "./workflow.js"
import { readSettings, say } from "./workerProtocol.js"

const { server, store: place, dieAt } = readSettings()
if (place === null) throw new Error("A worker under Cairn needs a store.")
const orders = orderNumbers()

const killSwitch = makeKillSwitch(dieAt, orders.length)
const faults = Layer.succeed(Faults, {
  reach: (point, { step }) => {
    if (step !== "mail") return Effect.void
    // The intent is durable, and nothing is sent.
    if (point === "beforeEffect") return Effect.promise(() => killSwitch.reached("beforeSend"))
    // The server has said 250, and nothing of it is stored.
    if (point === "afterEffect") return Effect.promise(() => killSwitch.reached("afterAccept"))
    return Effect.void
  },
})

const sayFound = Effect.gen(function* () {
  const store = yield* CheckpointStore
  for (const order of orders) {
    const found = yield* Effect.catchTag(store.load(defaultNamespace, order), "RunNotFound", () => Effect.succeed(null))
    if (found === null) continue
    const at = found.run.cursor === null ? [] : [found.run.cursor]
    const { effects } = yield* store.loadOpen(defaultNamespace, order, at)
    const open = effects.find(({ state }) => state === "intended")?.path ?? null
    say({ event: "found", order, committed: found.steps.map(({ path }) => path), open })
  }
})

const worker = Worker.layer({ workflows: [confirmation], lease: leaseMs, pollInterval: "100 millis" }).pipe(
  Layer.provide([
    Orders.layer,
    mailHandler(server, {
      asked: (order, found) => say({ event: "asked", order, found }),
      sent: (order, reply) => say({ event: "sent", order, reply }),
    }),
    faults,
  ]),
)

const runAll = Effect.forEach(
  orders,
  (order) =>
    Cairn.start(confirmation, order, { runId: order }).pipe(
      Effect.flatMap((handle) => handle.result),
      Effect.match({
        onSuccess: () => say({ event: "finished", order, problem: null }),
        onFailure: (error) => say({ event: "finished", order, problem: error.message }),
      }),
    ),
  { concurrency: "unbounded", discard: true },
)

await Effect.runPromise(
  sayFound.pipe(
    Effect.zipRight(Effect.provide(runAll, worker)),
    Effect.provide(storeAt(place)),
    // Standard output belongs to the events.
    Effect.provide(Logger.replace(Logger.defaultLogger, Logger.withConsoleError(Logger.logfmtLogger))),
  ),
)
