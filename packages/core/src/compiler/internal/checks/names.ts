/** CRN104: every name can be stored, and is there once. */
import type { Definition } from "../../../dsl/Definition.js"
import { nameTaken, nameUnusable, type Diagnostic } from "../../../model/DiagnosticCode.js"
import { checkId } from "../../../model/Ids.js"
import * as Either from "effect/Either"

const unusable = (what: string, name: unknown): string | null =>
  Either.match(checkId("workflow name", name), {
    onLeft: (error) => nameUnusable(what, error.id, error.problem),
    onRight: () => null,
  })

export const checkNames = (definition: Definition): ReadonlyArray<Diagnostic> => {
  const found: Array<Diagnostic> = []
  const workflow = unusable("the workflow's name", definition.name)
  if (workflow !== null) found.push({ code: "CRN104", step: null, message: workflow })
  const taken = new Set<string>()
  for (const { name } of definition.nodes) {
    const problem = unusable("the step name", name) ?? (taken.has(name) ? nameTaken(name) : null)
    if (problem !== null) found.push({ code: "CRN104", step: String(name), message: problem })
    taken.add(name)
  }
  return found
}
