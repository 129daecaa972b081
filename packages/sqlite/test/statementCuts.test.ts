/**
 * A worker dies after each statement that a run of five steps sends: the connection takes no other one, as if the
 * process had been killed there. Another worker resumes the run (field case P011).
 */
import { Cairn, CheckpointStore, fromDriver, OnUnknown, Operation, Worker, Workflow } from "@cairn/core"
import { SqliteStore } from "@cairn/sqlite"
import type { Connection } from "@effect/sql/SqlConnection"
import { SqlError } from "@effect/sql/SqlError"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Layer, Logger, Schema } from "effect"
import { openDatabase } from "../src/internal/openDatabase.js"
import { makeSqliteDatabase } from "../src/internal/sqliteDatabase.js"
import { driverOver } from "../src/SqliteDriver.js"
import { temporaryFile } from "./internal/temporaryFile.js"

class DeadConnection extends Error {
  readonly code = "SQLITE_IOERR"
}

const Charge = Operation.make("payments.charge", {
  payload: Schema.Int,
  success: Schema.Int,
  onUnknown: OnUnknown.retryWithKey({ keyWindow: "1 hour" }),
  timeout: 50,
})

const five = Workflow.make("five", { version: 1, input: Schema.Int })
  .step("one", { effects: [], output: Schema.Int }, ({ input }) => input + 1)
  .perform("charge", Charge, { payload: ({ results }) => results.one })
  .step("three", { effects: [], output: Schema.Int }, ({ results }) => results.charge + 1)
  .perform("again", Charge, { payload: ({ results }) => results.three })
  .step("five", { effects: [], output: Schema.Int }, ({ results }) => results.again + 1)
  .output(Schema.Int, ({ results }) => results.five)
  .compile()

/** A connection that passes on so many statements and then none; `died` says when. */
const mortal = (connection: Connection, statements: number, died: Deferred.Deferred<void>): Connection => {
  let left = statements
  return {
    ...connection,
    execute: (sql, params, transformRows) =>
      Effect.suspend(() => {
        if (left > 0) {
          left--
          return connection.execute(sql, params, transformRows)
        }
        // Whatever transaction is open ends as it does when its process dies.
        return connection
          .executeUnprepared("rollback", [], undefined)
          .pipe(
            Effect.ignore,
            Effect.zipRight(Deferred.succeed(died, undefined)),
            Effect.zipRight(Effect.fail(new SqlError({ cause: new DeadConnection("the connection is dead") }))),
          )
      }),
  }
}

const worker = (sent: Array<string>) =>
  Worker.layer({ workflows: [five], lease: 150, pollInterval: 10, drain: 0 }).pipe(
    Layer.provide(
      Charge.toLayer((cents, { idempotencyKey }) => Effect.sync(() => (sent.push(idempotencyKey), cents * 10))),
    ),
    Layer.provide(Logger.remove(Logger.defaultLogger)),
  )

/** Gives whether the worker has died before the run was done. */
const cutAfter = (statements: number) =>
  Effect.gen(function* () {
    const filename = yield* temporaryFile
    const sent: Array<string> = []
    const died = yield* Deferred.make<void>()
    const second = Layer.fresh(SqliteStore.layer({ filename }))
    const first = Layer.scoped(
      CheckpointStore,
      Effect.map(openDatabase({ filename }), ({ connection }) =>
        fromDriver(
          driverOver(makeSqliteDatabase(mortal(connection, statements, died), { busyTimeoutMs: 1_000 }), filename),
        ),
      ),
    )
    const cut = yield* Effect.gen(function* () {
      const { poll, result } = yield* Cairn.start(five, 1, { runId: "r" })
      const done = Effect.repeat(Effect.delay(poll, 5), { until: ({ status }) => status === "completed" })
      // Its run may be done before a heartbeat or a look of the idle worker strikes the fault.
      const cut = yield* Effect.provide(
        Effect.raceFirst(Effect.as(Deferred.await(died), true), Effect.as(done, false)),
        Layer.fresh(worker(sent).pipe(Layer.provide(first))),
      ).pipe(Effect.catchTag("StoreError", () => Effect.succeed(true)))
      expect(yield* Effect.provide(result, Layer.fresh(worker(sent)))).toBe(211)
      return cut
    }).pipe(Effect.provide(second))
    const { run, steps } = yield* Effect.provide(
      Effect.flatMap(CheckpointStore, (store) => store.load("default", "r")),
      Layer.fresh(SqliteStore.layer({ filename })),
    )
    expect(steps.map(({ path, seq }) => [path, seq > 0])).toEqual(five.definition.nodes.map(({ name }) => [name, true]))
    expect(run.status).toBe("completed")
    // Sent once, or again under its key.
    expect([...new Set(sent)]).toEqual(["default/r/charge#0", "default/r/again#0"])
    expect(sent.length).toBeLessThanOrEqual(3)
    return cut
  })

/** Cuts that are tried side by side, each in a file of its own. */
const atOnce = 8

describe("a worker whose connection dies", () => {
  it.scopedLive(
    "after any statement of a run of five steps leaves a run that another worker completes, with each effect under one key",
    () =>
      Effect.gen(function* () {
        let cuts = 0
        for (let from = 0, all = true; all; from += atOnce) {
          const places = Array.from({ length: atOnce }, (_, n) => from + n)
          const cut = yield* Effect.forEach(places, (statements) => Effect.scoped(cutAfter(statements)), {
            concurrency: atOnce,
          })
          cuts += cut.filter((one) => one).length
          all = !cut.includes(false)
        }
        // A heartbeat, a claim, and the commits of five steps and two intents: each transaction has three at least.
        expect(cuts).toBeGreaterThan(30)
      }),
    120_000,
  )
})
