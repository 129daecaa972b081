/** What a transaction step is given of the store's `SqlClient`, and which stores can run it. */
import { Effects, MemoryStore, Plan, Worker, Workflow, type StoreWithTransactions } from "@cairn/core"
import { SqliteStore } from "@cairn/sqlite"
import * as SqliteClient from "@effect/sql-sqlite-node/SqliteClient"
import { SqlClient } from "@effect/sql/SqlClient"
import { Context, Effect, Layer, Schema } from "effect"
import { describe, expect, test } from "tstyche"

class Prices extends Context.Tag("Prices")<Prices, { readonly of: (item: string) => number }>() {}

const flow = Workflow.make("orders", { version: 1, input: Schema.String })
const spec = { effects: [Effects.transaction], output: Schema.Void } as const
const insert = Effect.flatMap(SqlClient, (sql) => Effect.asVoid(sql`insert into ledger (name) values ('a')`))

const booked = flow
  .step("effect", spec, () => insert)
  .step("generator", spec, function* () {
    const sql = yield* SqlClient
    yield* sql.withTransaction(insert)
  })
  .step("promise", spec, async ({ query }) => {
    await query("insert into ledger (name) values (?)", ["a"])
  })
  .compile()

const launch = (layer: Layer.Layer<Worker, unknown>): void => void layer

describe("a transaction step", () => {
  test("is given the SqlClient, and no worker has to provide it", () => {
    expect(
      Worker.layer({ workflows: [booked] }).pipe(Layer.provide(SqliteStore.layer({ filename: "" }))),
    ).type.toBeAssignableTo<Layer.Layer<Worker, unknown>>()
    expect(Plan.step("computed", spec, () => insert)).type.not.toRaiseError()
  })

  test("asks for a store with transactions, which the memory store is not", () => {
    expect(launch(Worker.layer({ workflows: [booked] }).pipe(Layer.provide(MemoryStore.layer)))).type.toRaiseError(
      `StoreWithTransactions<"CRN106: a transaction step needs a store with transactions; provide SqliteStore or PostgresStore">`,
    )
    expect<Layer.Layer.Success<ReturnType<typeof SqliteStore.layer>>>().type.toBeAssignableFrom<StoreWithTransactions>()
  })

  test("is given no client of one database, and no other service", () => {
    expect(flow.step("book", spec, () => Effect.asVoid(SqliteClient.SqliteClient))).type.toRaiseError(
      "CRN103: step 'book' uses a service that its effects do not declare",
    )
    expect(flow.step("book", spec, () => Effect.zipRight(insert, Effect.asVoid(Prices)))).type.toRaiseError(
      "CRN103: step 'book' uses a service that its effects do not declare",
    )
  })
})

describe("any other step", () => {
  test("is given no SqlClient", () => {
    expect(flow.step("book", { effects: [], output: Schema.Void }, () => insert)).type.toRaiseError(
      "CRN103: step 'book' uses a service that its effects do not declare",
    )
  })
})
