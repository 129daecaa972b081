/** Data that stands in the store's database: its query may use the store's `SqlClient`, and asks for a store that has one. */
import { DataVersion, MemoryStore, Worker, Workflow } from "@cairn/core"
import { SqliteStore } from "@cairn/sqlite"
import { SqlClient } from "@effect/sql/SqlClient"
import { Context, Effect, Layer, Schema } from "effect"
import { describe, expect, test } from "tstyche"

interface Row {
  readonly amount: number
}

class Tables extends Context.Tag("Tables")<Tables, { readonly stock: string }>() {}

const Stock = DataVersion.query("stock", (sku: string) =>
  Effect.flatMap(SqlClient, (sql) => sql<Row>`select amount from stock where sku = ${sku}`),
)

const counted = Workflow.make("count", { version: 1, input: Schema.String })
  .step("read", { effects: [Stock], output: Schema.Number }, function* ({ input }) {
    const rows = yield* Stock.read(input)
    expect(rows).type.toBe<ReadonlyArray<Row>>()
    return rows.length
  })
  .compile()

const launch = (layer: Layer.Layer<Worker, unknown>): void => void layer

describe("data of the store's database", () => {
  test("needs no client of the worker, and a store with transactions", () => {
    expect(
      Worker.layer({ workflows: [counted] }).pipe(Layer.provide(SqliteStore.layer({ filename: "" }))),
    ).type.toBeAssignableTo<Layer.Layer<Worker, unknown>>()
    expect(launch(Worker.layer({ workflows: [counted] }).pipe(Layer.provide(MemoryStore.layer)))).type.toRaiseError(
      `StoreWithTransactions<"CRN106: a transaction step needs a store with transactions; provide SqliteStore or PostgresStore">`,
    )
  })

  test("asks a worker for what else its query needs", () => {
    const Named = DataVersion.query("named", () =>
      Effect.flatMap(Tables, ({ stock }) => Effect.flatMap(SqlClient, (sql) => sql<Row>`select * from ${sql(stock)}`)),
    )
    const reads = Workflow.make("named", { version: 1, input: Schema.Void }).step(
      "read",
      { effects: [Named], output: Schema.Number },
      () => Effect.map(Named.read(null), (rows) => rows.length),
    )
    expect(reads._R).type.toBeAssignableFrom<Tables>()
    expect(reads._R).type.not.toBeAssignableFrom<SqlClient>()
  })
})
