/** What a database gives back is checked before it is believed: laws D13 and D14. */
import { StoreError } from "@cairn/core"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { Row } from "./Database.js"
import type { Column } from "./tables.js"

const corrupt = (operation: string, column: string, problem: string): StoreError =>
  new StoreError({ reason: "Corrupt", operation, problem: `column '${column}' ${problem}` })

/**
 * A stored integer, or null if it is none that a number can hold (D13).
 *
 * *Shape.* Clients give integers as numbers, as bigints or as decimal text. One beyond 2^53 - 1 that came as a number is
 * rounded, but never to a safe integer: the check finds it.
 */
const integer = (value: unknown): number | null => {
  const number = typeof value === "bigint" || typeof value === "string" ? Number(value) : value
  return Number.isSafeInteger(number) && value !== "" ? (number as number) : null
}

const readField = (operation: string, { name, nullable, type }: Column, value: unknown): unknown => {
  if (value === null || value === undefined) {
    if (!nullable || value === undefined) throw corrupt(operation, name, "holds nothing")
    return null
  }
  if (type === "integer") {
    const number = integer(value)
    if (number === null) throw corrupt(operation, name, "holds no integer up to 2^53 - 1")
    return number
  }
  if (typeof value !== "string") throw corrupt(operation, name, "holds no text")
  return value
}

/**
 * Checks a row field by field and gives it the fields' types.
 *
 * *Errors.* Throws a `StoreError` of reason `Corrupt`, which names the column.
 *
 * @category reading
 * @since 0.1.0
 */
export const readRow = <A>(operation: string, columns: ReadonlyArray<Column>, row: Row): A => {
  const read: Record<string, unknown> = {}
  for (const column of columns) read[column.field] = readField(operation, column, row[column.field])
  return read as A
}

const asStoreError = (thrown: unknown): StoreError => {
  if (thrown instanceof StoreError) return thrown
  throw thrown
}

/** Each row by itself, where one that cannot be read must not stop its neighbours (D14). `operation` tells what is read by which row. */
export const readEach = <A>(
  operation: (row: Row) => string,
  columns: ReadonlyArray<Column>,
  rows: ReadonlyArray<Row>,
): ReadonlyArray<Either.Either<A, StoreError>> =>
  rows.map((row) => Either.try({ try: () => readRow<A>(operation(row), columns, row), catch: asStoreError }))

/** The operation of reading one run's row. */
export const readRun = ({ runId }: Row): string => `read run '${String(runId)}'`

/** What stands for a value that cannot be read: a number as near as one comes. */
const near = ({ nullable, type }: Column, value: unknown): unknown => {
  if (nullable && (value === null || type !== "integer")) return null
  return type === "integer" ? Number(value) || 0 : String(value ?? "")
}

/** For people to read: all of a row that can be read, and what is wrong with the rest. */
export const readNear = <A>(
  operation: string,
  columns: ReadonlyArray<Column>,
  row: Row,
): A & { readonly unreadable?: StoreError } => {
  const [read] = readEach<A>(() => operation, columns, [row])
  if (Either.isRight(read!)) return read.right as A & { readonly unreadable?: StoreError }
  const fields = columns.map((column) => {
    const value = row[column.field]
    const field = Either.try({ try: () => readField(operation, column, value), catch: asStoreError })
    return [column.field, Either.getOrElse(field, () => near(column, value))]
  })
  return { ...Object.fromEntries(fields), unreadable: read!.left }
}

/** A column that exists in a query only. */
export const computed = (field: string, type: Column["type"] = "integer"): Column => ({
  name: field,
  field,
  type,
  nullable: false,
})

/** An integer on its way in (D13). Throws a `StoreError`. */
export const whole = (operation: string, field: string, value: number): number => {
  if (Number.isSafeInteger(value)) return value
  throw new StoreError({
    reason: "Constraint",
    operation,
    problem: `'${field}' is ${String(value)}, which is no whole number up to 2^53 - 1`,
  })
}

/** A delay on its way in: parts of a millisecond are rounded up, so that nothing is early. Throws a `StoreError`. */
export const wholeMs = (operation: string, field: string, ms: number): number => whole(operation, field, Math.ceil(ms))

/** Encoding and decoding throw `StoreError`s: here they become failures. Anything else thrown is a defect of ours. */
export const attempt = <A>(run: () => A): Effect.Effect<A, StoreError> =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(run())
    } catch (thrown) {
      return thrown instanceof StoreError ? Effect.fail(thrown) : Effect.die(thrown)
    }
  })

export const readAll = <A>(
  operation: string,
  columns: ReadonlyArray<Column>,
  rows: ReadonlyArray<Row>,
): ReadonlyArray<A> => rows.map((row) => readRow<A>(operation, columns, row))

export const readFirst = <A>(operation: string, columns: ReadonlyArray<Column>, rows: ReadonlyArray<Row>): A | null =>
  rows[0] === undefined ? null : readRow<A>(operation, columns, rows[0])

/** One name for a run that no other run can have: ids may hold any delimiter. */
export const keyOf = (namespace: string, runId: string): string => JSON.stringify([namespace, runId])
