/**
 * A worker process under Cairn: it opens the store, says what it finds there, starts the runs (those that exist already
 * are attached to, and go on) and waits for their results.
 */
import { Cairn, CheckpointStore, defaultNamespace, Faults, Worker } from "@cairn/core"
import { Effect, Either, Layer, Logger, Schema } from "effect"
import { extractorLayer } from "./extract.js"
import { engineFrom } from "./extractors/choose.js"
import { logged, type Engine, type ModelEntry } from "./extractors/engine.js"
import { handlers } from "./handlers.js"
import { readInbox } from "./inbox.js"
import { Invoice } from "./invoice.js"
import { makeKillSwitch } from "./killSwitch.js"
import { inMoney } from "./money.js"
import { prices } from "./prices.js"
import { openJournal } from "./providers/journal.js"
import { storeAt, type StorePlace } from "./store.js"
import { leaseMs } from "./timing.js"
import { invoice } from "./workflow.js"
import { filesIn, readSettings, say } from "./workerProtocol.js"

const settings = readSettings<{ readonly store: StorePlace }>()
const files = filesIn(settings.folder)
const inbox = readInbox()

/** Dies where it hurts most: after the provider's answer, before anything of it is stored. */
const killSwitch = makeKillSwitch(settings.killAfter ?? undefined, inbox.length)
const faults = Layer.succeed(Faults, {
  reach: (point, { step }) => (point === "afterEffect" ? Effect.promise(() => killSwitch.answered(step)) : Effect.void),
})

const sayFound = Effect.gen(function* () {
  const store = yield* CheckpointStore
  for (const { file } of inbox) {
    const found = yield* Effect.catchTag(store.load(defaultNamespace, file), "RunNotFound", () => Effect.succeed(null))
    if (found === null) continue
    const committed = found.steps.map(({ path }) => path)
    const { effects } = yield* store.loadOpen(
      defaultNamespace,
      file,
      found.run.cursor === null ? [] : [found.run.cursor],
    )
    const open = effects.find(({ state }) => state === "intended")?.path ?? null
    say({ event: "found", run: file, committed, open })
  }
})

/** The engine, telling what it read. */
const telling = (engine: Engine): Engine => ({
  ...engine,
  read: async (text, signal) => {
    const reading = await engine.read(text, signal)
    const invoice = Schema.decodeUnknownEither(Invoice)(reading.invoice)
    if (Either.isRight(invoice)) {
      const { number, totalCents, currency, dueOn } = invoice.right
      say({ event: "extracted", engine: engine.name, invoice: number, amount: inMoney(totalCents, currency), dueOn })
    }
    return reading
  },
})

const engine = await engineFrom(process.env)
const extractor = extractorLayer(logged(telling(engine), openJournal<ModelEntry>(files.model)))

const worker = Worker.layer({ workflows: [invoice], prices, lease: leaseMs, pollInterval: "100 millis" }).pipe(
  Layer.provide([
    extractor,
    handlers(settings, (step, number, answered) => say({ event: "answered", invoice: number, step, answered })),
    faults,
  ]),
)

const runAll = Effect.forEach(
  inbox,
  ({ file, request }) =>
    Cairn.start(invoice, request, { runId: file }).pipe(
      Effect.flatMap((handle) => handle.result),
      Effect.match({
        onSuccess: () => say({ event: "finished", run: file, problem: null }),
        onFailure: (error) => say({ event: "finished", run: file, problem: error.message }),
      }),
    ),
  { concurrency: "unbounded", discard: true },
)

/** What the model has cost and what resuming has saved, by the account that the store keeps of paid calls. */
const sayAccount = Effect.gen(function* () {
  const store = yield* CheckpointStore
  const runs = yield* Effect.forEach(inbox, ({ file }) => store.findRun(defaultNamespace, file))
  const interruptions = runs.map((run) => run.interruptions)
  const [sum] = yield* Cairn.cost({ by: "workflow", workflow: invoice.name })
  if (sum === undefined) return
  const { microDollars, unknown, saved } = sum
  say({ event: "accounted", microDollars, unknown, saved, interruptions })
})

await Effect.runPromise(
  sayFound.pipe(
    Effect.zipRight(Effect.provide(runAll, worker)),
    Effect.zipRight(sayAccount),
    Effect.provide(storeAt(settings.store)),
    // Standard output belongs to the events.
    Effect.provide(Logger.replace(Logger.defaultLogger, Logger.withConsoleError(Logger.logfmtLogger))),
  ),
)
