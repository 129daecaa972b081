/** Plans with bodies, and the paths of what is committed under them: `agent[3]/think`, `each[key]/charge`, `route:large/approve`. */
import type { PlanNode, PlanStep } from "@cairn/core"

export const isStep = (node: PlanNode): node is PlanStep => node.kind === "step" || node.kind === "perform"

/** The bodies of a node, each with what stands between its path and theirs. */
export const bodiesOf = (node: PlanNode): ReadonlyArray<ReadonlyArray<PlanNode>> => {
  switch (node.kind) {
    case "branch":
    case "match":
      return Object.values(node.cases)
    case "parallel":
      return Object.values(node.arms)
    case "loop":
    case "forEach":
      return [node.body]
    default:
      return []
  }
}

/** Nodes and everything that stands in them. */
export const everyNode = (nodes: ReadonlyArray<PlanNode>): ReadonlyArray<PlanNode> =>
  nodes.flatMap((node) => [node, ...bodiesOf(node).flatMap(everyNode)])

/** The same path in the plan: with empty brackets. */
export const templateOf = (path: string): string => (path.includes("[") ? path.replace(/\[[^\]]*\]/g, "[]") : path)

/** What stands before a path's own segment, its slash included. */
const prefixOf = (path: string): string => path.slice(0, path.lastIndexOf("/") + 1)

/** A node's own segment. */
export const segmentOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1)

/** The turn or item in which something stands; empty for what stands in none. */
export const scopeOf = (path: string): string => {
  const prefix = prefixOf(path)
  return prefix.slice(0, prefix.lastIndexOf("]") + 1)
}

/** The turns and items in which something stands, the innermost first. */
export const scopesOf = (path: string): ReadonlyArray<string> => {
  const scopes: Array<string> = []
  for (let scope = scopeOf(path); scope !== ""; scope = scopeOf(scope)) scopes.push(scope)
  return scopes
}

/** The container of a turn or item, and which one it is; null for any other path. */
export const instanceOf = (path: string): { readonly container: string; readonly of: string } | null => {
  if (!path.endsWith("]")) return null
  const open = path.lastIndexOf("[")
  return { container: path.slice(0, open), of: path.slice(open + 1, -1) }
}
