/** CRN101, CRN103, CRN108: at most one external effect a step, nothing unknown in the list, no read beside it. */
import type { Definition, StepNode } from "../../../dsl/Definition.js"
import { everyNode } from "../../../dsl/internal/nested.js"
import { isDataVersion } from "../../../dsl/DataVersion.js"
import { isOperation } from "../../../dsl/Operation.js"
import {
  effectsNotLiteral,
  manyEffects,
  readsAndPerforms,
  unknownEffect,
  type Diagnostic,
} from "../../../model/DiagnosticCode.js"
import { nameText } from "../shown.js"

const kinds = new Set(["read", "local", "transaction"])

const isEffect = (value: unknown): value is StepNode["effects"][number] =>
  isOperation(value) ||
  isDataVersion(value) ||
  (typeof value === "object" &&
    value !== null &&
    kinds.has((value as { kind?: string }).kind as string) &&
    typeof (value as { name?: unknown }).name === "string")

export const ofStep = ({ name, effects }: StepNode): ReadonlyArray<Diagnostic> => {
  const step = nameText(name)
  if (!Array.isArray(effects)) return [{ code: "CRN101", step, message: effectsNotLiteral(step) }]
  // A copy: `every` would skip the holes of a sparse list.
  if (!Array.from(effects).every(isEffect)) return [{ code: "CRN103", step, message: unknownEffect(step) }]
  const exclusive = effects.filter((effect) => effect.kind === "external" || effect.kind === "transaction")
  if (exclusive.length > 1) {
    const names = exclusive.map((effect) => nameText(effect.name)).join(" + ")
    return [{ code: "CRN101", step, message: manyEffects(step, exclusive.length, names) }]
  }
  const reads = effects.some(
    (effect) =>
      effect.kind === "read" ||
      (effect.kind === "data" && (effect.place === "outside" || exclusive[0]?.kind === "external")),
  )
  return exclusive.length === 1 && reads
    ? [{ code: "CRN108", step, message: readsAndPerforms(step, nameText(exclusive[0]!.name)) }]
    : []
}

export const checkEffects = (definition: Definition): ReadonlyArray<Diagnostic> =>
  everyNode(definition.nodes).flatMap((node) => (node.kind === "step" ? ofStep(node) : []))
