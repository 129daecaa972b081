/**
 * One run over very many items, in one process over a small pool: what it holds in memory, and how many items are under
 * way at once (field case P116).
 *
 *     node --conditions=@cairn/source --import tsx chaos/src/wideFanOut.ts <postgres://..#schema> [items] [dieAfter]
 *
 * Kills itself after so many items; started again, it goes on. Prints one line of figures.
 */
import { Cairn, Worker, Workflow } from "@cairn/core"
import { PostgresStore } from "@cairn/postgres"
import { Effect, Layer, Logger, LogLevel, Redacted, Schema } from "effect"

const atOnce = 50
const outputChars = 1_000

const [address = "", given = "10000", dieAfter = "0"] = process.argv.slice(2)
const [url = "", schema = "cairn"] = address.split("#")
const items = Number(given)

let calls = 0
let now = 0
let mostAtOnce = 0

const wide = Workflow.make("wide", { version: 1, input: Schema.Int })
  .forEach(
    "each",
    {
      items: ({ input }) => Array.from({ length: input }, (_, n) => n),
      key: String,
      concurrency: atOnce,
      onFailure: "stop",
    },
    (flow) =>
      flow.step("work", { effects: [], output: Schema.String }, async () => {
        mostAtOnce = Math.max(mostAtOnce, ++now)
        if (++calls === Number(dieAfter)) process.kill(process.pid, "SIGKILL")
        await new Promise((resolve) => setImmediate(resolve))
        now -= 1
        return "x".repeat(outputChars)
      }),
  )
  .output(Schema.Int, ({ results }) => results.each.succeeded)
  .compile()

const live = Worker.layer({ workflows: [wide], lease: "1 second", pollInterval: "50 millis" }).pipe(
  Layer.provide(Logger.minimumLogLevel(LogLevel.None)),
  Layer.provideMerge(PostgresStore.layer({ url: Redacted.make(url), schema, maxConnections: 5 })),
)

const rssMb = (): number => Math.round(process.memoryUsage.rss() / 1_048_576)

const program = Effect.gen(function* () {
  const rssMbAtFirst = rssMb()
  const { result } = yield* Cairn.start(wide, items, { runId: "wide" })
  const succeeded = yield* result
  const rssMbAtMost = Math.round(process.resourceUsage().maxRSS / 1_024)
  return { succeeded, calls, mostAtOnce, rssMbAtFirst, rssMbAtMost }
})
const figures = await Effect.runPromise(Effect.provide(program, live))
process.stdout.write(`${JSON.stringify(figures)}\n`)
process.exit(0)
