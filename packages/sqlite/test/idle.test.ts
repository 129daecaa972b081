/** What an idle worker asks of its file. */
import { CheckpointStore, fromDriver, Worker, Workflow } from "@cairn/core"
import type { SqliteClient } from "@effect/sql-sqlite-node/SqliteClient"
import type { Connection } from "@effect/sql/SqlConnection"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Schema, TestClock, TestContext } from "effect"
import { openDatabase } from "../src/internal/openDatabase.js"
import { makeSqliteDatabase } from "../src/internal/sqliteDatabase.js"
import { driverOver } from "../src/SqliteDriver.js"
import { temporaryFile } from "./internal/temporaryFile.js"

const idle = Workflow.make("idle", { version: 1, input: Schema.Null }).compile()

/** A client that keeps the texts that its connection is given. */
const watching = (client: SqliteClient) => {
  const sent: Array<string> = []
  const reserve = Effect.map(client.reserve, (connection: Connection): Connection => ({
    ...connection,
    execute: (sql, params, transformRows) => {
      sent.push(sql)
      return connection.execute(sql, params, transformRows)
    },
  }))
  return { client: { reserve }, sent }
}

const settled = (sent: ReadonlyArray<string>) =>
  Effect.promise(async () => {
    for (let before = -1; before !== sent.length;) {
      before = sent.length
      await new Promise((resolve) => setTimeout(resolve, 15))
    }
  })

describe("an idle worker", () => {
  it.scopedLive("with the usual settings sends 84 statements a minute, and writes in its six heartbeats only", () =>
    Effect.gen(function* () {
      const filename = yield* temporaryFile
      const watched = watching((yield* openDatabase({ filename })).client)
      const { sent } = watched
      const driver = driverOver(makeSqliteDatabase(watched.client, { busyTimeoutMs: 1_000 }), filename)
      yield* Effect.gen(function* () {
        yield* Layer.build(
          Worker.layer({ workflows: [idle] }).pipe(Layer.provide(Layer.succeed(CheckpointStore, fromDriver(driver)))),
        )
        yield* settled(sent)
        sent.length = 0
        for (let second = 0; second < 60; second++) {
          yield* TestClock.adjust("1 second")
          yield* settled(sent)
        }
        // A look each second, and a heartbeat of four statements every ten seconds.
        expect(sent).toHaveLength(60 + 6 * 4)
        expect(sent.filter((text) => text === "begin immediate")).toHaveLength(6)
        expect(
          sent.filter((text) => /^(insert|update|delete)|\b(insert into|update cairn|delete from)\b/.test(text)),
        ).toHaveLength(6)
      }).pipe(Effect.scoped, Effect.provide(TestContext.TestContext))
    }),
  )
})
