/** CRN104: every name can be stored, and is there once. */
import * as Either from "effect/Either"
import type { Definition } from "../../../dsl/Definition.js"
import type { MemberOperation } from "../../../dsl/Operation.js"
import { nameTaken, nameUnusable, operationNameTaken, type Diagnostic } from "../../../model/DiagnosticCode.js"
import { checkId } from "../../../model/Ids.js"
import { operationsOf } from "../operationsOf.js"
import { nameText } from "../shown.js"

const unusable = (what: string, name: unknown): string | null =>
  Either.match(checkId("workflow name", name), {
    onLeft: (error) => nameUnusable(what, nameText(name).slice(0, 60), error.problem),
    onRight: () => null,
  })

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
  for (const node of definition.nodes) {
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

export const checkNames = (definition: Definition): ReadonlyArray<Diagnostic> => {
  const found: Array<Diagnostic> = []
  const workflow = unusable("the workflow's name", definition.name)
  if (workflow !== null) found.push({ code: "CRN104", step: null, message: workflow })
  const taken = new Set<string>()
  for (const { name } of definition.nodes) {
    const problem = unusable("the step name", name) ?? (taken.has(name) ? nameTaken(name) : null)
    if (problem !== null) found.push({ code: "CRN104", step: nameText(name), message: problem })
    taken.add(name)
  }
  return [...found, ...ofOperations(definition)]
}
