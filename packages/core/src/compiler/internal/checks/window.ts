/** CRN101, CRN105, CRN107, CRN110: a workflow's window can be stored, and what compacts it only reads. */
import type { Definition, StepNode } from "../../../dsl/Definition.js"
import { compactionName, type WindowDefinition } from "../../../dsl/Window.js"
import { compactionPerforms, missingPart, optionOutOfRange, type Diagnostic } from "../../../model/DiagnosticCode.js"
import { nameText, shown } from "../shown.js"
import { ofStep } from "./effects.js"
import { ofSchema } from "./json.js"
import { ofWork } from "./options.js"

const ofCompaction = (node: StepNode): ReadonlyArray<Diagnostic> => {
  const effects = ofStep(node)
  const reads = (effect: StepNode["effects"][number]) => effect.kind === "read" || effect.kind === "local"
  return [
    ...(typeof node.run === "function"
      ? []
      : [
          {
            code: "CRN107" as const,
            step: compactionName,
            message: missingPart(
              compactionName,
              "function to run; give it as run, or give a function as compact itself",
            ),
          },
        ]),
    ...effects,
    ...(effects.length > 0 || node.effects.every(reads)
      ? []
      : [{ code: "CRN101" as const, step: compactionName, message: compactionPerforms }]),
    ...ofWork(node).map(([option, expected, got]) => ({
      code: "CRN110" as const,
      step: compactionName,
      message: optionOutOfRange("compact of the window", option, expected, shown(got)),
    })),
  ]
}

const ofWindow = (workflow: string, { compact, maxBytes, schema }: WindowDefinition): ReadonlyArray<Diagnostic> => [
  ...ofSchema(null, `window of workflow '${workflow}'`, schema),
  ...(Number.isSafeInteger(maxBytes) && maxBytes >= 1
    ? []
    : [
        {
          code: "CRN110" as const,
          step: null,
          message: optionOutOfRange(
            `workflow '${workflow}'`,
            "window.maxBytes",
            "a whole number from 1",
            shown(maxBytes),
          ),
        },
      ]),
  ...(typeof compact === "object" && compact !== null ? ofCompaction(compact) : []),
]

export const checkWindow = ({ name, window }: Definition): ReadonlyArray<Diagnostic> =>
  window === undefined ? [] : ofWindow(nameText(name), window)
