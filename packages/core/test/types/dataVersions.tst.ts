/** Data with a version: what a step may read, what it gets, and what a worker has to provide for it. */
import { Context, Effect, Schema } from "effect"
import { describe, expect, test } from "tstyche"
import { DataVersion, Effects, Plan, type StoreWithTransactions } from "../../src/index.js"
import { Charge, flow, payment } from "./fixtures.js"

class Http extends Context.Tag("Http")<Http, { readonly get: (url: string) => Effect.Effect<string, "down"> }>() {}

interface Stock {
  readonly sku: string
  readonly amount: number
}

const Page = DataVersion.make("page", {
  capture: (url: string) =>
    Effect.flatMap(Http, ({ get }) => Effect.map(get(url), (value) => ({ value, token: value }))),
})
const Rows = DataVersion.query<"stock", { readonly sku: string }, Stock>("stock", ({ sku }) => ({
  text: "select sku, amount from stock where sku = ?",
  parameters: [sku],
}))

describe("a step that declares data", () => {
  test("reads it in each style, by its key, and gets its value", () => {
    flow.step("read", { effects: [Page], output: Schema.String }, () => Page.read("/"))
    flow.step("read", { effects: [Page, Effects.read("model")], output: Schema.String }, function* () {
      const page = yield* Page.read("/")
      expect(page).type.toBe<string>()
      return page
    })
    flow.step("read", { effects: [Rows, Page], output: Schema.Number, onStale: "rerun" }, async ({ read }) => {
      const rows = await read(Rows, { sku: "a" })
      expect(rows).type.toBe<ReadonlyArray<Stock>>()
      expect(await read(Page, "/")).type.toBe<string>()
      return rows.length
    })
    flow.step("read", { effects: [Effects.transaction, Rows], output: Schema.Number }, () =>
      Effect.map(Rows.read({ sku: "a" }), (rows) => rows.length),
    )
  })

  test("asks a worker for what the data is read with, and for nothing else", () => {
    const reads = flow.step("read", { effects: [Page], output: Schema.String }, () => Page.read("/"))
    expect(reads._R).type.toBe<Http>()
    const counts = flow.step("read", { effects: [Rows], output: Schema.Number }, () =>
      Effect.map(Rows.read({ sku: "a" }), (rows) => rows.length),
    )
    expect(counts._R).type.toBe<StoreWithTransactions>()
    Plan.step("read", { effects: [Page], output: Schema.String }, ({ read }) => read(Page, "/"))
  })

  test("has the failures of its capture, and the requirements of both functions", () => {
    expect(Page.read).type.toBeCallableWith("/")
    const Feed = DataVersion.make("feed", {
      capture: (key: number) =>
        key > 0 ? Effect.succeed({ value: key, token: { at: 1 } }) : Effect.fail("none" as const),
      isCurrent: (key, token) => {
        expect(key).type.toBe<number>()
        expect(token.at).type.toBe<number>()
        return Effect.as(Http, true)
      },
    })
    expect(Feed.read(1)).type.toBeAssignableTo<Effect.Effect<number, "none", any>>()
    const reads = flow.step("read", { effects: [Feed], output: Schema.Number }, () => Feed.read(1))
    expect(reads._R).type.toBe<Http>()
  })
})

describe("what does not type-check", () => {
  test("data that the step does not declare, in each style", () => {
    expect(flow.step("read", { effects: [], output: Schema.String }, () => Page.read("/"))).type.toRaiseError(
      "CRN102: step 'read' reads data 'page' without declaring it in effects; add the data version to the step's effects",
    )
    expect(
      flow.step("read", { effects: [Rows], output: Schema.String }, async ({ read }) => read(Page, "/")),
    ).type.toRaiseError("CRN102: step 'read' reads data 'page' without declaring it in effects")
  })

  test("data beside an operation, and data from outside in a transaction", () => {
    expect(
      flow.step("pay", { effects: [Charge, Rows], output: Schema.Void }, () => Effect.asVoid(Charge.perform(payment))),
    ).type.toRaiseError("CRN108: step 'pay' reads and performs 'payments.charge'")
    expect(
      flow.step("book", { effects: [Effects.transaction, Page], output: Schema.Void }, () => Effect.void),
    ).type.toRaiseError("CRN108: step 'book' reads and performs 'transaction'")
  })

  test("a key of another type, or one that is no JSON", () => {
    expect(Page.read).type.not.toBeCallableWith(1)
    expect(
      DataVersion.make("x", { capture: (key: Date) => Effect.succeed({ value: key, token: 1 }) }),
    ).type.toRaiseError("Type 'Json' is not assignable to type 'Date'")
    expect(
      DataVersion.make("x", { capture: (key: string) => Effect.succeed({ value: key, token: 1n }) }),
    ).type.toRaiseError("bigint")
  })

  test("another word for what is to be done", () => {
    expect(
      flow.step("read", { effects: [Page], output: Schema.String, onStale: "later" }, () => Page.read("/")),
    ).type.toRaiseError(`Type '"later"' is not assignable to type 'OnStale'`)
  })
})
