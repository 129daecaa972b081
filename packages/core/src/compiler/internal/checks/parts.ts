/** CRN107: functions, operations, schemas' companions and bodies that a caller without types may have left out. */
import * as Either from "effect/Either"
import { isDataVersion } from "../../../dsl/DataVersion.js"
import type { ChildNode, Definition, Node, PerformNode, StepNode } from "../../../dsl/Definition.js"
import { everyNode } from "../../../dsl/internal/nested.js"
import { isOperation } from "../../../dsl/Operation.js"
import {
  inChild,
  missingPart,
  noFailureDeclared,
  outputNotSelected,
  type Diagnostic,
} from "../../../model/DiagnosticCode.js"
import { nameText } from "../shown.js"

/** A part that must be a function, and what to do where it is not. */
const needs = (part: unknown, remedy: string): ReadonlyArray<string> => (typeof part === "function" ? [] : [remedy])

const ofPerform = ({ operation, payload, compensate }: PerformNode): ReadonlyArray<string> =>
  !isOperation(operation)
    ? ["operation; give one made by Operation.make or Operation.oneOf"]
    : typeof payload !== "function"
      ? ["payload; give a function from the context to the payload"]
      : compensate === null || (isOperation(compensate.operation) && typeof compensate.payload === "function")
        ? []
        : ["complete compensate; give an operation and a payload function"]

/** What would be missing only when a run goes on, days after the step. */
const ofData = ({ effects }: StepNode): ReadonlyArray<string> =>
  (Array.isArray(effects) ? effects : []).filter(isDataVersion).flatMap(({ name, source }) => {
    const of = `of data '${nameText(name)}'`
    if (source.place === "store") return needs(source.rows, `query ${of}; give a function from the key to rows`)
    const capture = needs(source.capture, `capture ${of}; give a function from the key to { value, token }`)
    return source.isCurrent === null
      ? capture
      : [...capture, ...needs(source.isCurrent, `function isCurrent ${of}; give one from key and token to a boolean`)]
  })

const isCompiled = ({ workflow }: ChildNode): boolean =>
  typeof workflow === "object" && workflow !== null && Either.isEither(workflow.plan)

const missing = (node: Node): ReadonlyArray<string> => {
  switch (node.kind) {
    case "step":
      return [...needs(node.run, "function to run; give it as the third argument"), ...ofData(node)]
    case "perform":
      return ofPerform(node)
    case "branch":
      return needs(node.on, "on; give a function from the context to the name of a case")
    case "match":
      return [
        ...(typeof node.tag === "string" ? [] : ["tag; give the name of the member that tells the cases apart"]),
        ...needs(node.value, "value; give a function from the context to a tagged value"),
      ]
    case "loop":
      return [
        ...needs(node.initial, "initial; give a function from the context to the first state"),
        ...needs(node.next, "next; give a function from the context to { done, state }, as the last argument"),
      ]
    case "forEach":
      return [
        ...needs(node.items, "items; give a function from the context to a list"),
        ...needs(node.key, "key; give a function from an item to a name of its own"),
      ]
    case "review":
      return needs(node.show, "show; give a function from the context to what the reviewer sees")
    case "child":
      return [
        ...(isCompiled(node) ? [] : ["workflow; give what .compile() gave"]),
        ...needs(node.input, "input; give a function from the context to the child's input"),
      ]
    case "fail":
      return needs(node.failure, "failure; give a function from the context to the declared failure")
    case "end":
      return needs(node.output, "output; give a function from the context to the workflow's output")
    default:
      return []
  }
}

/** A child that does not compile would park its parent at the first start: its problems are the parent's. */
const ofChild = (node: ChildNode): ReadonlyArray<Diagnostic> =>
  isCompiled(node) && Either.isLeft(node.workflow.plan)
    ? node.workflow.plan.left.diagnostics.map(({ code, message }) => ({
        code,
        step: nameText(node.name),
        message: inChild(nameText(node.workflow.name), message),
      }))
    : []

const ofNode = (node: Node, definition: Definition): ReadonlyArray<Diagnostic> => {
  const step = nameText(node.name)
  return [
    ...missing(node).map((part) => ({ code: "CRN107" as const, step, message: missingPart(step, part) })),
    ...(node.kind === "fail" && definition.failure === null
      ? [{ code: "CRN107" as const, step, message: noFailureDeclared(step) }]
      : []),
    ...(node.kind === "child" ? ofChild(node) : []),
  ]
}

export const checkParts = (definition: Definition): ReadonlyArray<Diagnostic> => [
  ...everyNode(definition.nodes).flatMap((node) => ofNode(node, definition)),
  ...(definition.output === null || typeof definition.output.select === "function"
    ? []
    : [{ code: "CRN107", step: null, message: outputNotSelected } as const]),
]
