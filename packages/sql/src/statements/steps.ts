/** Committed steps by their scopes, or those that have performed something: one stretch of the key each, in order (D11). */
import type { StepsQuery } from "@cairn/core"
import type { Dialect } from "../Dialect.js"
import { whole } from "../readRow.js"
import { listOf, padded, textOf, type Bound, type Place, type Statement } from "../Statement.js"
import { manySteps } from "../indexes.js"
import { recordColumns, selectList, stepTable } from "../tables.js"
import { rowsOfRun } from "./rowsOfRun.js"

const columns = recordColumns(stepTable)

const operation = "load steps"

/** Which statement a query is; its values are bound in the order in which `write` places them. */
interface Shape {
  /** How many scopes are bound; null for all that have an idempotency key. */
  readonly scopes: number | null
  /** One of those that may hold many rows: the index in order serves it. */
  readonly isMany: boolean
  readonly newestFirst: boolean
  readonly isAfter: boolean
  readonly isLimited: boolean
  readonly withResults: boolean
}

const write = (dialect: Dialect, place: Place, shape: Shape): string => {
  const { isAfter, isLimited, isMany, newestFirst, scopes, withResults } = shape
  const selected = columns.filter(({ field }) => withResults || field !== "result")
  const wanted = (): string => {
    if (scopes === null) return "idempotency_key is not null"
    if (scopes > 1) return `scope in (${listOf(place, scopes)})`
    if (!isMany) return `scope = ${place()}`
    // What is always true makes the index in order the better one for SQLite, also where its statistics speak for the key.
    return `scope = ${place()} and ${manySteps}${isAfter ? "" : " and seq >= 0"}`
  }
  const conditions = [rowsOfRun(dialect, stepTable, place), wanted()]
  if (isAfter) conditions.push(`(seq, path) ${newestFirst ? "<" : ">"} (${place()}, ${place()})`)
  const direction = newestFirst ? " desc" : ""
  return `select ${selectList(dialect, selected)}${withResults ? "" : ', null as "result"'} from ${dialect.table("step")} as step
where ${conditions.join(" and ")}
order by seq${direction}, path${direction}${isLimited ? ` limit ${place()}` : ""}`
}

/** Makes the statement of a query; it asks for one scope at least. Throws a `StoreError`. */
export const stepsStatement = (dialect: Dialect): ((query: StepsQuery) => Statement) => {
  const texts = new Map<string, string>()
  return ({ after, limit, namespace, newestFirst, runId, scopes: asked, withResults }) => {
    const scopes = asked === null ? null : padded(asked)
    const shape: Shape = {
      scopes: scopes === null ? null : scopes.length,
      isMany: scopes !== null && scopes.length === 1 && scopes[0]!.endsWith("["),
      newestFirst,
      isAfter: after !== null,
      isLimited: limit !== null,
      withResults,
    }
    const name = JSON.stringify(shape)
    let text = texts.get(name)
    if (text === undefined) {
      text = textOf(dialect, (place) => write(dialect, place, shape))
      texts.set(name, text)
    }
    const further: ReadonlyArray<Bound> = [
      ...(after === null ? [] : [whole(operation, "seq", after.seq), after.path]),
      ...(limit === null ? [] : [whole(operation, "limit", limit)]),
    ]
    return { text, params: [namespace, runId, ...(scopes ?? []), ...further] }
  }
}
