/** The operations of a node: what it performs, and what would take it back. */
import type { Node } from "../../dsl/Definition.js"
import { isOperation, type AnyOperation } from "../../dsl/Operation.js"

export const operationsOf = (node: Node): ReadonlyArray<AnyOperation> =>
  (node.kind === "perform"
    ? [node.operation, node.compensate?.operation]
    : node.kind === "step" && Array.isArray(node.effects)
      ? node.effects
      : []
  ).filter(isOperation)
