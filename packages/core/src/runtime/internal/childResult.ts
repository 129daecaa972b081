/** What a child leaves in its parent: its output, or, where that is settled, how it ended otherwise. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { ChildNode } from "../../dsl/Definition.js"
import { codecOf, type Codec } from "../../model/Codec.js"
import { toJsonText } from "../../model/internal/json.js"
import type { FailureRecord, RunOutcome } from "../../model/Records.js"
import { failureOf } from "./runEnd.js"

/** How a child ended, as its parent stores it. */
type Stored =
  | { readonly ok: true; readonly value?: unknown }
  | {
      readonly ok: false
      readonly error: { readonly runId: string; readonly reason: string | null; readonly failure: FailureRecord | null }
    }

const nothing: Codec<undefined> = {
  gate: () => Effect.succeed({ value: undefined, text: null }),
  gateUnvalidated: () => Effect.succeed({ value: undefined, text: null }),
  decode: () => Either.right(undefined),
  jsonSchema: () => ({}),
  problem: () => null,
}

const outputOf = ({ workflow }: ChildNode): Codec<unknown> =>
  workflow.definition.output === null ? nothing : codecOf(workflow.definition.output.schema)

export const childCodec = (node: ChildNode): Codec<unknown> => {
  const output = outputOf(node)
  if (!node.settle) return output
  return {
    ...output,
    decode: (text, place) => {
      const stored = JSON.parse(text ?? "null") as Stored
      if (!stored.ok) {
        const { failure, reason, runId } = stored.error
        return Either.right({
          ok: false,
          error: failureOf(node.workflow.definition, { runId, failure, cancelReason: reason, step: "" }),
        })
      }
      const value = toJsonText(stored.value) as { readonly text: string | null }
      return Either.map(output.decode(value.text, place), (decoded) => ({ ok: true, value: decoded }))
    },
  }
}

/** What the parent commits of a child that has ended; null where the child's failure is its own. */
export const childResult = (node: ChildNode, run: RunOutcome): { readonly text: string | null } | null => {
  if (run.status === "completed") {
    if (!node.settle) return { text: run.output }
    return { text: run.output === null ? '{"ok":true}' : `{"ok":true,"value":${run.output}}` }
  }
  if (!node.settle) return null
  const error = { runId: run.runId, reason: run.cancelReason, failure: run.failure }
  return toJsonText({ ok: false, error }) as { readonly text: string }
}
