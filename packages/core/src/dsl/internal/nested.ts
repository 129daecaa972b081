/** The bodies of nodes: what a branch, a loop, a list or a parallel holds, and where it stands in a path. */
import { escapeSegment } from "../../model/Ids.js"
import type { Node } from "../Definition.js"

/**
 * One body of a node. `part` is what stands between the node's name and its steps in a plan's paths: `:large` for a
 * case or an arm, `[]` for a turn or an item, whose number or key is known at run time.
 */
export interface Body {
  readonly part: string
  /** The name of the case or arm; null for a turn or an item. */
  readonly name: string | null
  readonly nodes: ReadonlyArray<Node>
}

const named = (bodies: Readonly<Record<string, ReadonlyArray<Node>>>): ReadonlyArray<Body> =>
  Object.entries(bodies).map(([name, nodes]) => ({ part: `:${escapeSegment(name)}`, name, nodes }))

const none: ReadonlyArray<never> = []

export const bodiesOf = (node: Node): ReadonlyArray<Body> => {
  switch (node.kind) {
    case "branch":
    case "match":
      return named(node.cases)
    case "parallel":
      return named(node.arms)
    case "loop":
    case "forEach":
      return [{ part: "[]", name: null, nodes: node.body }]
    default:
      return none
  }
}

/** Every node, those of bodies included: each before what it holds. Children are workflows of their own. */
export const everyNode = (nodes: ReadonlyArray<Node>): ReadonlyArray<Node> => {
  const every: Array<Node> = []
  const add = (within: ReadonlyArray<Node>): void => {
    for (const node of within) {
      every.push(node)
      for (const body of bodiesOf(node)) add(body.nodes)
    }
  }
  add(nodes)
  return every
}
