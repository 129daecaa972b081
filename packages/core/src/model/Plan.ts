/** A compiled workflow: plain JSON data, no functions. */
import type { OnUnknown } from "./OnUnknown.js"

/**
 * The version of the plan's own form. It changes when old code could not read a new plan.
 *
 * @category models
 * @since 0.1.0
 */
export const planFormat = 1

/**
 * One declared effect, by kind and name.
 *
 * @category models
 * @since 0.1.0
 */
export interface PlanEffect {
  readonly kind: "read" | "local" | "transaction" | "external"
  readonly name: string
}

/**
 * One operation that a node may perform. A node lists several only for `Operation.oneOf`, told apart by `case`.
 *
 * @category models
 * @since 0.1.0
 */
export interface PlanOperation {
  readonly name: string
  readonly case: string | null
  readonly timeoutMs: number
  readonly onUnknown: OnUnknown
  readonly payload: object
  readonly success: object
  readonly failure: object | null
}

/**
 * One step of a plan.
 *
 * *Shape.* `path` is the escaped name under which it is stored. `output` is a JSON Schema of what is stored. `retry` and
 * `onInvalid` have every default filled in; `timeoutMs` is null for no limit. `compensate` is the step that takes this one
 * back when the run fails later; null where nothing does.
 *
 * @category models
 * @since 0.1.0
 */
export interface PlanNode {
  readonly kind: "step" | "perform"
  readonly name: string
  readonly path: string
  readonly effects: ReadonlyArray<PlanEffect>
  readonly operations: ReadonlyArray<PlanOperation>
  readonly optional: boolean
  readonly settle: boolean
  readonly compensate: PlanNode | null
  readonly output: object
  readonly timeoutMs: number | null
  readonly retry: { readonly times: number; readonly delayMs: number; readonly maxDelayMs: number }
  readonly onInvalid: { readonly retries: number; readonly then: "review" | "fail" }
}

/**
 * A compiled workflow.
 *
 * *Shape.* `hash` is a SHA-256 of everything else, over canonical JSON. `input`, `output` and `failure` are JSON
 * Schemas; `output` is null where the workflow gives nothing.
 *
 * @category models
 * @since 0.1.0
 */
export interface Plan {
  readonly format: typeof planFormat
  readonly workflow: string
  readonly version: number
  readonly hash: string
  readonly input: object
  readonly output: object | null
  readonly failure: object | null
  readonly nodes: ReadonlyArray<PlanNode>
}

/**
 * What a step does outside, as its record keeps it: a resume under other code compares it (law X10).
 *
 * *Shape.* `transaction`, `external:<operation>`, or `none`.
 *
 * @category models
 * @since 0.1.0
 */
export const effectOf = (node: Pick<PlanNode, "effects">): string => {
  const exclusive = node.effects.find((effect) => effect.kind === "external" || effect.kind === "transaction")
  return exclusive === undefined
    ? "none"
    : exclusive.kind === "transaction"
      ? "transaction"
      : `external:${exclusive.name}`
}
