/** What the functions of a generated workflow see, in the form in which its model has it. */
import { pathIn } from "../steering.js"
import type { Given } from "./model.js"
import { labels, type Named } from "./pieces.js"

export interface Seen {
  readonly input: Given
  readonly results: Readonly<Record<string, any>>
  readonly turn?: number
  readonly key?: string
  readonly state?: number
  readonly item?: { readonly number: number }
  readonly value?: { readonly taken: number }
  readonly outer?: Seen
}

/** What surrounds a node: who is seen from it, and what scopes stand around it, the innermost last. */
export interface Around {
  readonly visible: ReadonlyArray<Named>
  readonly scopes: ReadonlyArray<"loop" | "forEach" | "match">
}

/** The items of lists that were read, by the names of these. */
type ReadItems = Readonly<Record<string, unknown>>

export const flat = (nodes: ReadonlyArray<Named>, results: Seen["results"], items: ReadItems = {}): unknown =>
  nodes
    .filter(({ piece }) => piece.kind !== "sleep")
    .map(({ name, ...node }) => [name, items[name] ?? shown(node, results[name])])

/** A result without what differs from run to run. */
const shown = ({ bodies, piece }: Omit<Named, "name">, value: any): unknown => {
  switch (piece.kind) {
    case "transaction":
      return null
    case "act":
      if (piece.form !== "settled") return value
      return value.ok === true ? ["ok", value.value] : ["no", value.error?.code]
    case "signal": {
      if (piece.say === "late") return "?"
      const payload = piece.timeout === "continue" ? (value.ok === true ? value.value : value.error) : value
      return payload === "timeout" ? payload : typeof payload === "string" ? "got" : `got ${String(payload)}`
    }
    case "review":
      return piece.say === "late" ? "?" : value.outcome
    case "branch":
    case "match":
      return [value.case, flat(bodies[labels.indexOf(value.case)] ?? [], value.results)]
    case "exit":
      return [value.case, []]
    case "parallel":
      return labels.map((label, index) => [label, flat(bodies[index]!, value[label])])
    case "forEach":
      return [value.total, value.failed]
    case "child":
      if (!piece.settle) return value
      return value.ok === true ? ["ok", value.value] : ["no"]
    default:
      return value
  }
}

export const readItems = async (nodes: ReadonlyArray<Named>, results: Seen["results"]): Promise<ReadItems> => {
  const read: Record<string, unknown> = {}
  for (const { bodies, name, piece } of nodes) {
    if (piece.kind !== "forEach") continue
    const list: Array<readonly [key: string, ...rest: ReadonlyArray<unknown>]> = []
    const value = results[name]
    for await (const item of value) {
      list.push(item.ok === true ? [item.key, true, flat(bodies[0]!, item.results)] : [item.key, false])
    }
    read[name] = [value.total, value.failed, list.sort(([a], [b]) => (a < b ? -1 : 1))]
  }
  return read
}

/** What scopes add, as the model has it. */
export const scopeOf = (seen: Seen, scopes: Around["scopes"]): unknown => {
  const innermost = scopes.at(-1)
  if (innermost === undefined) return null
  const rest = scopes.slice(0, -1)
  if (innermost === "match") return { around: scopeOf(seen, rest), value: seen.value?.taken }
  const around = scopeOf(seen.outer ?? ({} as Seen), rest)
  return innermost === "loop"
    ? { around, turn: seen.turn, state: seen.state }
    : { around, key: seen.key, item: seen.item?.number }
}

export const numberOf = (seen: Seen, { scopes }: Around): number => {
  const counted = scopes.findLast((scope) => scope !== "match")
  return counted === undefined ? 0 : counted === "loop" ? seen.turn! : seen.item!.number
}

export const pathOf = ({ path }: Named, seen: Seen): string => `${seen.input.at}${pathIn(path, seen)}`
