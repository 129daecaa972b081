/** SQL as text with its bound values. Values are never written into the text. */
import type { Dialect } from "./Dialect.js"
import type { Column } from "./tables.js"

/**
 * What a statement binds.
 *
 * @category models
 * @since 0.1.0
 */
export type Bound = string | number | null

/**
 * One statement, ready to be sent.
 *
 * @category models
 * @since 0.1.0
 */
export interface Statement {
  readonly text: string
  readonly params: ReadonlyArray<unknown>
}

/** Gives the placeholders of one statement in the order in which its text names them. */
export type Place = () => string

/** Writes one statement's text. Template literals are evaluated from left to right: that is the order of the values. */
export const textOf = (dialect: Dialect, write: (place: Place) => string): string => {
  let position = 0
  return write(() => dialect.placeholder(++position))
}

/** A query that gives so many bound rows; one is bound value by value. */
export const rowsText = (dialect: Dialect, columns: ReadonlyArray<Column>, count: number, place: Place): string =>
  count === 1 ? dialect.row(columns, place) : dialect.rows(columns, count, place)

/** The values that `rowsText` binds, in its order. */
export const rowsParams = (
  dialect: Dialect,
  columns: ReadonlyArray<Column>,
  rows: ReadonlyArray<ReadonlyArray<Bound>>,
): ReadonlyArray<unknown> => (rows.length === 1 ? rows[0]! : dialect.rowParams(columns, rows))

/**
 * Makes a statement over a table of rows, written once for each number of rows, because databases keep what they have
 * prepared by its text. The rows come first in the text; `rest` are the values after them.
 */
export const overRows = (
  dialect: Dialect,
  columns: ReadonlyArray<Column>,
  write: (rows: string, place: Place) => string,
): ((rows: ReadonlyArray<ReadonlyArray<Bound>>, rest?: ReadonlyArray<Bound>) => Statement) => {
  const texts = new Map<number, string>()
  return (rows, rest = []) => {
    let text = texts.get(rows.length)
    if (text === undefined) {
      text = textOf(dialect, (place) => write(rowsText(dialect, columns, rows.length, place), place))
      texts.set(rows.length, text)
    }
    return { text, params: [...rowsParams(dialect, columns, rows), ...rest] }
  }
}

/**
 * Placeholders for `in (..)`, which is a look-up for each of them. Over a sub-query it may be a join, and that may read
 * whatever else matches: all rows of a run, say, to find those of two paths.
 */
export const listOf = (place: Place, count: number): string => Array.from({ length: count }, place).join(", ")

/** Values for `in (..)`, each once, their number a power of two: few texts serve every number. The last one is repeated. */
export const padded = <A>(values: ReadonlyArray<A>): ReadonlyArray<A> => {
  const once = [...new Set(values)]
  const size = once.length === 0 ? 0 : 2 ** Math.ceil(Math.log2(once.length))
  return Array.from({ length: size }, (_, index) => once[Math.min(index, once.length - 1)]!)
}

/** Cuts rows into the batch sizes of the dialect, the largest first, so that few texts serve every number of rows. */
export const inBatches = <A>(dialect: Dialect, rows: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> => {
  if (rows.length === 0) return []
  if (rows.length === 1 || dialect.batchSizes === null) return [rows]
  const batches: Array<ReadonlyArray<A>> = []
  let start = 0
  while (start < rows.length) {
    const left = rows.length - start
    const size = dialect.batchSizes.find((size) => size <= left) ?? 1
    batches.push(rows.slice(start, start + size))
    start += size
  }
  return batches
}
