/** CRN107: functions and operations that a caller without types may have left out. */
import type { Definition, Node } from "../../../dsl/Definition.js"
import { isOperation } from "../../../dsl/Operation.js"
import { missingPart, outputNotSelected, type Diagnostic } from "../../../model/DiagnosticCode.js"
import { nameText } from "../shown.js"

const missing = (node: Node): string | null => {
  if (node.kind === "step")
    return typeof node.run === "function" ? null : "function to run; give it as the third argument"
  if (!isOperation(node.operation)) return "operation; give one made by Operation.make or Operation.oneOf"
  if (typeof node.payload !== "function") return "payload; give a function from the context to the payload"
  return node.compensate === null ||
    (isOperation(node.compensate.operation) && typeof node.compensate.payload === "function")
    ? null
    : "complete compensate; give an operation and a payload function"
}

const ofNodes = (definition: Definition): ReadonlyArray<Diagnostic> =>
  definition.nodes.flatMap((node) => {
    const part = missing(node)
    const step = nameText(node.name)
    return part === null ? [] : [{ code: "CRN107" as const, step, message: missingPart(step, part) }]
  })

export const checkParts = (definition: Definition): ReadonlyArray<Diagnostic> => [
  ...ofNodes(definition),
  ...(definition.output === null || typeof definition.output.select === "function"
    ? []
    : [{ code: "CRN107", step: null, message: outputNotSelected } as const]),
]
