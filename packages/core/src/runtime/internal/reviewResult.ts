/** What a review leaves behind: the decision with who and when, and what was shown for it. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { ReviewNode } from "../../dsl/Definition.js"
import { codecOf, type Codec } from "../../model/Codec.js"
import { InvalidValue } from "../../model/Errors.js"
import { toJsonText } from "../../model/internal/json.js"

/** A decision as it is stored with the wait. `decision` is encoded. */
export type StoredDecision =
  | { readonly outcome: "approved"; readonly decision?: unknown; readonly by: string }
  | { readonly outcome: "rejected"; readonly reason: string | null; readonly by: string }

/** How a review ended, as its step's record keeps it. `at` is the store's time, `shown` what was decided about. */
export type StoredReview = (StoredDecision | { readonly outcome: "expired" }) & {
  readonly at: number
  readonly shown?: unknown
}

const unwritable = (): never => {
  throw new TypeError("a review's result is written by the runtime")
}

export const reviewCodec = (node: ReviewNode): Codec<unknown> => {
  const decision = codecOf(node.decision)
  return {
    gate: () => Effect.sync(unwritable),
    gateUnvalidated: () => Effect.sync(unwritable),
    decode: (text, place) => {
      const stored = JSON.parse(text ?? "null") as StoredReview | null
      const at = new Date(stored?.at ?? Number.NaN)
      switch (stored?.outcome) {
        case "approved": {
          const encoded = toJsonText(stored.decision) as { readonly text: string | null }
          return Either.map(decision.decode(encoded.text, place), (value) => ({
            outcome: "approved",
            decision: value,
            by: stored.by,
            at,
          }))
        }
        case "rejected":
          return Either.right({ outcome: "rejected", reason: stored.reason, by: stored.by, at })
        case "expired":
          return Either.right({ outcome: "expired", at })
        default:
          return Either.left(
            new InvalidValue({
              place,
              field: ".outcome",
              reason: "SchemaMismatch",
              problem: "it is no end of a review",
            }),
          )
      }
    },
    jsonSchema: () => ({}),
    problem: () => decision.problem(),
  }
}
