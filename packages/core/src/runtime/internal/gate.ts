/**
 * The validation gate (X3): what passes it may be committed; what does not is kept for people.
 */
import * as Effect from "effect/Effect"
import type { PerformNode, StepNode } from "../../dsl/Definition.js"
import { outputCodec } from "../../dsl/internal/outputCodec.js"
import { isUnparsedText, isUnvalidated } from "../../dsl/Output.js"
import type { Gated } from "../../model/Codec.js"
import { InvalidValue } from "../../model/Errors.js"
import { toJsonText } from "../../model/internal/json.js"
import type { RunSession } from "./session.js"

/** Gates what a node's function gave: typed, or of unknown shape. */
export const gate = (
  session: RunSession,
  node: StepNode | PerformNode,
  given: unknown,
): Effect.Effect<Gated<unknown>, InvalidValue> => {
  const codec = outputCodec(node)
  const options = { place: `output of step '${node.name}'`, maxLength: session.env.maxValueLength }
  if (!isUnvalidated(given)) return codec.gate(given, options)
  const { raw } = given
  if (!isUnparsedText(raw)) return codec.gateUnvalidated(raw, options)
  const problem = `it is no JSON (${raw.problem}): ${JSON.stringify(raw.text.slice(0, 120))}`
  return Effect.fail(new InvalidValue({ place: options.place, field: "", reason: "SchemaMismatch", problem }))
}

/** What was refused is kept for people and prompts; no more of it than they can read. */
const maxRawLength = 1024 * 1024

/** A raw output, or an operation's raw answer, as it is kept for people, where it has a JSON form that may be stored. */
export const rawText = (given: unknown, maxValueLength: number): string | null => {
  const maxLength = Math.min(maxValueLength, maxRawLength)
  const raw = isUnvalidated(given) ? given.raw : given
  const written = toJsonText(isUnparsedText(raw) ? raw.text : raw)
  return "text" in written && (written.text?.length ?? 0) <= maxLength ? written.text : null
}
