/**
 * Data that a result was derived from, and how to tell that it has moved. A step that reads it notes what it has read; before the
 * run goes on after a crash, a wait or an approval, it is asked whether that is still so.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { dataReadOutside } from "../model/DiagnosticCode.js"
import { StepMisuse } from "../model/Errors.js"
import type { StoreWithTransactions } from "../model/StoreWithTransactions.js"
import type { StepSqlClient } from "./Effects.js"
import { CurrentStep } from "./internal/currentStep.js"
import { rowsFingerprint } from "./internal/rowsFingerprint.js"

/**
 * JSON as it is.
 *
 * @category models
 * @since 0.1.0
 */
export type Json = string | number | boolean | null | ReadonlyArray<Json> | { readonly [key: string]: Json }

/** What asks for a step that declares this data. No worker provides it. */
export interface ReadsData<out Name extends string> {
  readonly _readsData: Name
}

/**
 * What was read, and what tells this state of it from every other: a fingerprint, an ETag, a cursor.
 *
 * @category models
 * @since 0.1.0
 */
export interface Captured<out A, out Token extends Json = Json> {
  readonly value: A
  readonly token: Token
}

/** Statement text as the database spells it, with its parameters. */
export interface QueryText {
  readonly text: string
  readonly parameters?: ReadonlyArray<unknown>
}

/** How the runtime reads: in the store's own database, or anywhere else. */
export type DataSource =
  | {
      readonly place: "outside"
      readonly capture: (key: any) => Effect.Effect<Captured<unknown>, unknown, any>
      /** Null: it is captured again, and the tokens are compared. */
      readonly isCurrent: ((key: any, token: any) => Effect.Effect<boolean, unknown, any>) | null
    }
  | {
      readonly place: "store"
      readonly rows: (key: any) => Effect.Effect<ReadonlyArray<unknown>, unknown, any> | QueryText
      readonly ordered: boolean
    }

/**
 * Data with a version.
 *
 * *Shape.* It stands in a step's `effects`, beside reads and locals, and its `read` in the step's function. `Place` is `store` for
 * a query of the store's own database, which a transaction step may read too.
 *
 * @category models
 * @since 0.1.0
 */
export interface DataVersion<
  out Name extends string,
  in Key,
  out A,
  out E,
  out R,
  out Place extends "store" | "outside" = "outside",
> {
  readonly kind: "data"
  readonly name: Name
  readonly place: Place
  /**
   * Reads what a key stands for, in a step that declares it, and notes in which state it was; the promise style is
   * `read(Data, key)` of the step's arguments. The note is committed with the step.
   */
  readonly read: (key: Key) => Effect.Effect<A, E, R | ReadsData<Name>>
  readonly source: DataSource
}

export type AnyDataVersion = DataVersion<any, any, any, any, any, "store" | "outside">

/** Every read goes through the step that runs it: it is there that it is noted. */
const readIn = (version: AnyDataVersion, key: unknown): Effect.Effect<any, any, any> =>
  Effect.contextWithEffect((context: Context.Context<never>) => {
    const step = Context.getOption(context as Context.Context<any>, CurrentStep)
    return step._tag === "Some"
      ? step.value.read(version, key)
      : Effect.die(new StepMisuse({ step: "", code: "CRN109", problem: dataReadOutside(version.name) }))
  })

const versionOf = (name: string, source: DataSource): AnyDataVersion => {
  const self: AnyDataVersion = {
    kind: "data",
    name,
    place: source.place,
    source,
    read: (key) => readIn(self, key),
  }
  return self
}

/**
 * Declares data with a version.
 *
 * @category constructors
 * @since 0.1.0
 */
export interface DataVersionConstructors {
  /**
   * Data from anywhere. `capture` reads what a key stands for, and the token of that state; `isCurrent` says whether a token still
   * is the state of it. Without it, `capture` is called again and the tokens are compared.
   *
   * *Shape.* Key and token are JSON, and are kept with the step. `name` is kept too: another name is other data. Value and token
   * must be of one state: read them with one request, or one statement.
   *
   * *Errors.* Where a check fails, or gives no answer within the step's `timeout` (30 seconds unless given), nobody can tell: after
   * three tries the run is parked as `DataStale`.
   *
   * @example
   * ```ts
   * import { DataVersion } from "@cairn/core"
   * import { Effect } from "effect"
   *
   * const prices = new Map([["sku-1", { cents: 500, etag: "v1" }]])
   * const Price = DataVersion.make("price", {
   *   capture: (sku: string) =>
   *     Effect.sync(() => ({ value: prices.get(sku)!.cents, token: prices.get(sku)!.etag })),
   * })
   * Price.kind
   * // => "data"
   * ```
   */
  make<
    const Name extends string,
    Key extends Json,
    A,
    Token extends Json,
    E = never,
    R = never,
    E2 = never,
    R2 = never,
  >(
    name: Name,
    definition: {
      readonly capture: (key: Key) => Effect.Effect<Captured<A, Token>, E, R>
      readonly isCurrent?: (key: NoInfer<Key>, token: NoInfer<Token>) => Effect.Effect<boolean, E2, R2>
    },
  ): DataVersion<Name, Key, A, E, Exclude<R | R2, Scope.Scope>>

  /**
   * Rows of the store's own database, for stores with transactions. Their version is a fingerprint of all that the query gives:
   * rows that have come, gone or changed make another one, rows that are as they were make the same one again.
   *
   * *Shape.* `rows` gives a statement of `SqlClient` (of `@effect/sql`), or text and parameters as the database spells them. The
   * fingerprint has every column by its name; null, numbers, bigints, texts, dates and bytes are never taken for each other. The
   * order of the rows does not count, unless `ordered` says so: name an `order by` then. Select what the result depends on, and no
   * more: a column that moves by itself makes data stale that nobody has changed.
   *
   * In a transaction step it is read in that transaction. Elsewhere, and for the check, it is a transaction of its own that is
   * rolled back: what it writes is lost.
   *
   * @example
   * ```ts
   * import { DataVersion } from "@cairn/core"
   *
   * const Stock = DataVersion.query("stock", (sku: string) => ({
   *   text: "select sku, amount from stock where sku = ?",
   *   parameters: [sku],
   * }))
   * Stock.place
   * // => "store"
   * ```
   */
  query<const Name extends string, Key extends Json, Row = Readonly<Record<string, unknown>>, E = never, R = never>(
    name: Name,
    rows: (key: Key) => Effect.Effect<ReadonlyArray<Row>, E, R> | QueryText,
    options?: { readonly ordered?: boolean },
  ): DataVersion<
    Name,
    Key,
    ReadonlyArray<Row>,
    E,
    Exclude<R, StepSqlClient | Scope.Scope> | StoreWithTransactions,
    "store"
  >
}

export const DataVersion: DataVersionConstructors = {
  make: (name: string, definition: any): any =>
    versionOf(name, {
      place: "outside",
      capture: definition?.capture,
      isCurrent: definition?.isCurrent ?? null,
    }),
  query: (name: string, rows: any, options: any = {}): any =>
    versionOf(name, { place: "store", rows, ordered: options?.ordered === true }),
}

/** The rows that a query gave, with the version of them. */
export const capturedRows = (
  source: Extract<DataSource, { readonly place: "store" }>,
  rows: ReadonlyArray<unknown>,
): Captured<ReadonlyArray<unknown>> => ({ value: rows, token: rowsFingerprint(rows, source.ordered) })

export const isDataVersion = (value: unknown): value is AnyDataVersion =>
  typeof value === "object" &&
  value !== null &&
  (value as { kind?: unknown }).kind === "data" &&
  typeof (value as { read?: unknown }).read === "function"
