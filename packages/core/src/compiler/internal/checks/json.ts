/** CRN105: everything that is stored has a schema whose encoded side is JSON. */
import type { Definition, Node } from "../../../dsl/Definition.js"
import { everyNode } from "../../../dsl/internal/nested.js"
import { problemsOf, type AnyOperation } from "../../../dsl/Operation.js"
import { codecOf, isSchema, type Codec } from "../../../model/Codec.js"
import { notASchema, notJson, type Diagnostic } from "../../../model/DiagnosticCode.js"
import { once } from "../once.js"
import { operationsOf } from "../operationsOf.js"
import { nameText } from "../shown.js"

const problemOf = once((codec: Codec<unknown>): string | null => codec.problem())

const ofCodec = (step: string | null, place: string, codec: Codec<unknown> | null): ReadonlyArray<Diagnostic> => {
  if (codec === null) return [{ code: "CRN105", step, message: notASchema(place) }]
  const problem = problemOf(codec)
  return problem === null ? [] : [{ code: "CRN105", step, message: `${notJson(place)} (${problem})` }]
}

export const ofSchema = (step: string | null, place: string, schema: unknown): ReadonlyArray<Diagnostic> =>
  ofCodec(step, place, isSchema(schema) ? codecOf(schema) : null)

const ofOperation = (step: string, operation: AnyOperation): ReadonlyArray<Diagnostic> => [
  ...problemsOf(operation).map((problem) => ({ ...problem, step })),
  ...operation.members.flatMap(({ name, codecs }) => [
    ...ofCodec(step, `payload of operation '${nameText(name)}'`, codecs.payload),
    ...ofCodec(step, `success of operation '${nameText(name)}'`, codecs.success),
    ...(codecs.failure === null ? [] : ofCodec(step, `failure of operation '${nameText(name)}'`, codecs.failure)),
  ]),
]

/** What a node stores under a schema of its own. */
const schemaOf = (node: Node): readonly [what: string, schema: unknown] | null => {
  switch (node.kind) {
    case "step":
      return ["output of step", node.output]
    case "loop":
      return ["state of loop", node.state]
    case "forEach":
      return node.item === null ? null : ["item of forEach", node.item]
    case "signal":
      return ["payload of signal", node.schema]
    case "review":
      return ["decision of review", node.decision]
    default:
      return null
  }
}

const ofNode = (node: Node): ReadonlyArray<Diagnostic> => {
  const step = nameText(node.name)
  const own = schemaOf(node)
  return [
    ...(own === null ? [] : ofSchema(step, `${own[0]} '${step}'`, own[1])),
    ...operationsOf(node).flatMap((operation) => ofOperation(step, operation)),
  ]
}

export const checkJson = (definition: Definition): ReadonlyArray<Diagnostic> => [
  ...ofSchema(null, `input of workflow '${nameText(definition.name)}'`, definition.input),
  ...(definition.failure === null
    ? []
    : ofSchema(null, `failure of workflow '${nameText(definition.name)}'`, definition.failure)),
  ...everyNode(definition.nodes).flatMap(ofNode),
  ...(definition.output === null ? [] : ofSchema(null, "output of the workflow", definition.output.schema)),
]
