/**
 * A worker with a transaction step that adds a row to the ledger. It kills itself at a point: one of the runtime's, or `body`,
 * between the statement and the end of the step's function. Without a point it prints how the run ended.
 */
import { Cairn, Effects, Faults, Worker, Workflow } from "@cairn/core"
import { SqliteStore } from "@cairn/sqlite"
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect, Exit, Layer, Logger, Schema } from "effect"

const [filename = "", fatal = ""] = process.argv.slice(2)

const dieAt = (point: string): Effect.Effect<void> =>
  Effect.sync(() => {
    if (point === fatal) process.kill(process.pid, "SIGKILL")
  })

const book = Workflow.make("book", { version: 1, input: Schema.Null })
  .step("before", { effects: [], output: Schema.Void }, () => {})
  .step("book", { effects: [Effects.transaction], output: Schema.String }, function* () {
    const sql = yield* SqlClient
    yield* sql`insert into ledger (name) values (${`by ${process.pid}`})`
    yield* dieAt("body")
    return "booked"
  })
  .output(Schema.String, ({ results }) => results.book)
  .compile()

const faults = Layer.succeed(Faults, {
  reach: (point, { step }) => (step === "book" || point === "afterClaim" ? dieAt(point) : Effect.void),
})

const live = Worker.layer({ workflows: [book], lease: 600, pollInterval: 50, drain: 0, maxRecoveries: 50 }).pipe(
  Layer.provide(faults),
  Layer.provideMerge(SqliteStore.layer({ filename })),
  Layer.provide(Logger.remove(Logger.defaultLogger)),
)

const exit = await Cairn.start(book, null, { runId: "r" }).pipe(
  Effect.flatMap((handle) => Effect.exit(handle.result)),
  Effect.provide(live),
  Effect.runPromise,
)
process.stdout.write(`${Exit.isSuccess(exit) ? exit.value : String(exit.cause)}\n`)
