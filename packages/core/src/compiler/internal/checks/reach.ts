/** CRN111: nothing stands where no run comes: after a `.fail` or an `.end` of the same scope. */
import type { Definition, Node } from "../../../dsl/Definition.js"
import { bodiesOf } from "../../../dsl/internal/nested.js"
import { unreachable, type Diagnostic } from "../../../model/DiagnosticCode.js"
import { nameText } from "../shown.js"

/** Whether no run goes on after these nodes. A list may be empty, so its body proves nothing. */
const stops = (nodes: ReadonlyArray<Node>): boolean => nodes.some(endsHere)

const endsHere = (node: Node): boolean => {
  const bodies = bodiesOf(node)
  switch (node.kind) {
    case "fail":
    case "end":
      return true
    case "branch":
    case "match":
      return bodies.length > 0 && bodies.every((body) => stops(body.nodes))
    case "parallel":
      return bodies.some((body) => stops(body.nodes))
    case "loop":
      return stops(node.body)
    default:
      return false
  }
}

const within = (nodes: ReadonlyArray<Node>): ReadonlyArray<Diagnostic> => {
  const last = nodes.findIndex(endsHere)
  const lost = last < 0 ? undefined : nodes[last + 1]
  return [
    // Only the first: what follows it is lost for the same reason.
    ...(lost === undefined
      ? []
      : [
          {
            code: "CRN111" as const,
            step: nameText(lost.name),
            message: unreachable(nameText(nodes[last]!.name)),
          },
        ]),
    ...nodes.flatMap((node) => bodiesOf(node).flatMap((body) => within(body.nodes))),
  ]
}

export const checkReach = (definition: Definition): ReadonlyArray<Diagnostic> => within(definition.nodes)
