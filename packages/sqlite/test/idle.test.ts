/** What an idle worker asks of its file, and one that waits for a step. */
import { Cairn, CheckpointStore, fromDriver, Worker, Workflow } from "@cairn/core"
import type { Connection } from "@effect/sql/SqlConnection"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Schema, TestClock, TestContext } from "effect"
import { openDatabase } from "../src/internal/openDatabase.js"
import { makeSqliteDatabase } from "../src/internal/sqliteDatabase.js"
import { driverOver, SqliteDriver } from "../src/SqliteDriver.js"
import { temporaryFile } from "./internal/temporaryFile.js"

const idle = Workflow.make("idle", { version: 1, input: Schema.Null }).compile()

/** A connection that keeps the texts that it is given. */
const watching = (connection: Connection) => {
  const sent: Array<string> = []
  const watched: Connection = {
    ...connection,
    execute: (sql, params, transformRows) => {
      sent.push(sql)
      return connection.execute(sql, params, transformRows)
    },
  }
  return { connection: watched, sent }
}

const settled = (sent: ReadonlyArray<string>) =>
  Effect.promise(async () => {
    for (let before = -1; before !== sent.length;) {
      before = sent.length
      await new Promise((resolve) => setTimeout(resolve, 15))
    }
  })

/** The statements of so many seconds of virtual time. */
const during = (sent: Array<string>, seconds: number) =>
  Effect.gen(function* () {
    sent.length = 0
    for (let second = 0; second < seconds; second++) {
      yield* TestClock.adjust("1 second")
      yield* settled(sent)
    }
    return [...sent]
  })

describe("an idle worker", () => {
  it.scopedLive(
    "with the usual settings sends at most 64 statements a minute, and writes six times",
    () =>
      Effect.gen(function* () {
        const filename = yield* temporaryFile
        const watched = watching((yield* openDatabase({ filename })).connection)
        const driver = driverOver(makeSqliteDatabase(watched.connection, { busyTimeoutMs: 1_000 }), filename)
        yield* Effect.gen(function* () {
          yield* Layer.build(
            Worker.layer({ workflows: [idle] }).pipe(Layer.provide(Layer.succeed(CheckpointStore, fromDriver(driver)))),
          )
          yield* during(watched.sent, 60)
          const sent = yield* during(watched.sent, 60)
          const beats = sent.filter((text) => text === "begin immediate").length
          const looks = sent.filter((text) => text.startsWith("with wanted")).length
          // A look every 1.5 to 2 seconds; and every ten seconds one of them comes after a heartbeat of four statements.
          expect(sent).toHaveLength(looks + beats * 4)
          expect(looks).toBeGreaterThanOrEqual(29)
          expect(looks).toBeLessThanOrEqual(40)
          expect(beats).toBe(6)
          expect(
            sent.filter((text) => /^(insert|update|delete)|\b(insert into|update cairn|delete from)\b/.test(text)),
          ).toHaveLength(beats)
        }).pipe(Effect.scoped, Effect.provide(TestContext.TestContext))
      }),
    60_000,
  )

  it.scopedLive(
    "that may pause for a minute sends at most 10, and finds within it what another process has started",
    () =>
      Effect.gen(function* () {
        const filename = yield* temporaryFile
        const watched = watching((yield* openDatabase({ filename })).connection)
        const driver = driverOver(makeSqliteDatabase(watched.connection, { busyTimeoutMs: 1_000 }), filename)
        const other = fromDriver(yield* SqliteDriver.make({ filename }))
        yield* Effect.gen(function* () {
          yield* Layer.build(
            Worker.layer({ workflows: [idle], maxPollInterval: "1 minute" }).pipe(
              Layer.provide(Layer.succeed(CheckpointStore, fromDriver(driver))),
            ),
          )
          yield* during(watched.sent, 120)
          expect((yield* during(watched.sent, 60)).length).toBeLessThanOrEqual(10)
          const handle = yield* Effect.provideService(Cairn.start(idle, null), CheckpointStore, other)
          yield* during(watched.sent, 60)
          expect((yield* handle.poll).status).toBe("completed")
        }).pipe(Effect.scoped, Effect.provide(TestContext.TestContext))
      }),
    60_000,
  )
})

describe("a worker that waits for a step", () => {
  it.scopedLive(
    "looks at most 80 times a minute at what has arrived, 60 to 80 times for runs, and writes six times",
    () =>
      Effect.gen(function* () {
        const filename = yield* temporaryFile
        const watched = watching((yield* openDatabase({ filename })).connection)
        const driver = driverOver(makeSqliteDatabase(watched.connection, { busyTimeoutMs: 1_000 }), filename)
        const store = Layer.succeed(CheckpointStore, fromDriver(driver))
        const patient = Workflow.make("patient", { version: 1, input: Schema.Null })
          .step("work", { effects: [], output: Schema.Void }, () => Effect.never)
          .compile()
        yield* Effect.gen(function* () {
          yield* Layer.build(Worker.layer({ workflows: [patient], drain: 0 }).pipe(Layer.provide(store)))
          yield* Effect.forEach(["a", "b", "c"], (runId) =>
            Effect.provide(Cairn.start(patient, null, { runId }), store),
          )
          yield* during(watched.sent, 10)
          const sent = yield* during(watched.sent, 60)
          const beats = sent.filter((text) => text === "begin immediate").length
          const looks = sent.filter((text) => text.startsWith("with wanted")).length
          const heeded = sent.filter((text) => text.includes("inbox > 0")).length
          // One statement for all runs that it holds.
          expect(sent).toHaveLength(looks + heeded + beats * 4)
          expect(beats).toBe(6)
          expect(heeded).toBeGreaterThanOrEqual(60)
          expect(heeded).toBeLessThanOrEqual(80)
          expect(looks).toBeGreaterThanOrEqual(59)
          expect(looks).toBeLessThanOrEqual(81)
        }).pipe(Effect.scoped, Effect.provide(TestContext.TestContext))
      }),
    60_000,
  )
})
