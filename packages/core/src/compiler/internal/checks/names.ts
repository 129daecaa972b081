/** CRN104: every name can be stored, and is there once. */
import * as Either from "effect/Either"
import { isDataVersion, type AnyDataVersion } from "../../../dsl/DataVersion.js"
import type { Definition, Node } from "../../../dsl/Definition.js"
import { bodiesOf, everyNode } from "../../../dsl/internal/nested.js"
import type { MemberOperation } from "../../../dsl/Operation.js"
import {
  dataNameTaken,
  nameTaken,
  nameUnusable,
  operationNameTaken,
  type Diagnostic,
} from "../../../model/DiagnosticCode.js"
import { checkId } from "../../../model/Ids.js"
import { operationsOf } from "../operationsOf.js"
import { nameText } from "../shown.js"

const none: ReadonlyArray<never> = []

const unusable = (what: string, name: unknown): string | null => {
  const checked = checkId("workflow name", name)
  return Either.isRight(checked) ? null : nameUnusable(what, nameText(name).slice(0, 60), checked.left.problem)
}

/** Two declarations under one name share one handler, so they must say the same. */
const sameOperation = (a: MemberOperation, b: MemberOperation): boolean => {
  const say = ({ codecs, timeoutMs, onUnknown }: MemberOperation): string =>
    JSON.stringify([
      timeoutMs,
      onUnknown,
      codecs.payload?.jsonSchema(),
      codecs.success?.jsonSchema(),
      codecs.failure?.jsonSchema() ?? null,
    ])
  return a.codecs === b.codecs || say(a) === say(b)
}

const ofOperations = (definition: Definition): ReadonlyArray<Diagnostic> => {
  const found: Array<Diagnostic> = []
  const known = new Map<unknown, MemberOperation>()
  for (const node of everyNode(definition.nodes)) {
    for (const member of operationsOf(node).flatMap((operation) => operation.members)) {
      const first = known.get(member.name)
      const problem =
        first === undefined
          ? unusable("the operation name", member.name)
          : sameOperation(first, member)
            ? null
            : operationNameTaken(nameText(member.name))
      if (problem !== null) found.push({ code: "CRN104", step: nameText(node.name), message: problem })
      if (first === undefined) known.set(member.name, member)
    }
  }
  return found
}

/** What a step has read is found again by its name, among what the step declares. */
const ofData = (definition: Definition): ReadonlyArray<Diagnostic> =>
  everyNode(definition.nodes).flatMap((node) => {
    const read = node.kind === "step" && Array.isArray(node.effects) ? node.effects.filter(isDataVersion) : none
    return read.length === 0 ? none : ofDataOf(node, read)
  })

const ofDataOf = (node: Node, read: ReadonlyArray<AnyDataVersion>): ReadonlyArray<Diagnostic> => {
  const known = new Map<unknown, AnyDataVersion>()
  return read.flatMap((data): ReadonlyArray<Diagnostic> => {
    const first = known.get(data.name) ?? data
    known.set(data.name, first)
    const problem =
      first === data ? unusable("the name of data", data.name) : dataNameTaken(nameText(node.name), nameText(data.name))
    return problem === null ? [] : [{ code: "CRN104", step: nameText(node.name), message: problem }]
  })
}

const own = (node: Node, visible: ReadonlySet<unknown>): string | null =>
  unusable("the step name", node.name) ??
  (visible.has(node.name)
    ? nameTaken(node.name)
    : node.kind === "signal"
      ? unusable("the signal name", node.signal)
      : null)

/**
 * The names of one scope. A body sees the names before its node, and may repeat none of them; two bodies of one node do
 * not see each other, and what follows sees neither.
 */
const ofScope = (nodes: ReadonlyArray<Node>, outer: ReadonlySet<unknown>): ReadonlyArray<Diagnostic> => {
  const visible = new Set(outer)
  const found: Array<Diagnostic> = []
  const refuse = (node: Node, message: string | null): void => {
    if (message !== null) found.push({ code: "CRN104", step: nameText(node.name), message })
  }
  for (const node of nodes) {
    refuse(node, own(node, visible))
    visible.add(node.name)
    const bodies = bodiesOf(node)
    for (const { name } of bodies) if (name !== null) refuse(node, unusable("the case name", name))
    for (const body of bodies) for (const problem of ofScope(body.nodes, visible)) found.push(problem)
  }
  return found
}

export const checkNames = (definition: Definition): ReadonlyArray<Diagnostic> => {
  const workflow = unusable("the workflow's name", definition.name)
  return [
    ...(workflow === null ? [] : [{ code: "CRN104" as const, step: null, message: workflow }]),
    ...ofScope(definition.nodes, new Set()),
    ...ofOperations(definition),
    ...ofData(definition),
  ]
}
