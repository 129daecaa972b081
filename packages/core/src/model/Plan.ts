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
  readonly kind: "read" | "data" | "local" | "transaction" | "external"
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
 * *Shape.* `path` is the escaped path under which it is stored, with empty brackets for a turn or an item:
 * `agent[]/think`, `route:large/approve`, `arms:left/fetch`. `output` is a JSON Schema of what is stored. `retry` and
 * `onInvalid` have every default filled in; `timeoutMs` is null for no limit. `compensate` is the step that takes this one
 * back when the run fails later; null where nothing does. `onStale`: of a step that reads data with a version.
 *
 * @category models
 * @since 0.1.0
 */
export interface PlanStep {
  readonly kind: "step" | "perform"
  readonly name: string
  readonly path: string
  readonly effects: ReadonlyArray<PlanEffect>
  readonly operations: ReadonlyArray<PlanOperation>
  readonly optional: boolean
  readonly settle: boolean
  readonly compensate: PlanStep | null
  readonly output: object
  readonly timeoutMs: number | null
  readonly retry: { readonly times: number; readonly delayMs: number; readonly maxDelayMs: number }
  readonly onInvalid: { readonly retries: number; readonly then: "review" | "fail" }
  readonly onStale?: "rerun" | "review" | "fail" | "accept"
}

/**
 * What steers a run, by kind. `path` is as of a step; every default is filled in; times are in milliseconds, null for never.
 *
 * @category models
 * @since 0.1.0
 */
export type PlanControl =
  | {
      readonly kind: "branch" | "match"
      readonly name: string
      readonly path: string
      readonly cases: Readonly<Record<string, ReadonlyArray<PlanNode>>>
    }
  | {
      readonly kind: "loop"
      readonly name: string
      readonly path: string
      readonly state: object
      readonly maxIterations: number
      readonly onLimit: "fail" | "stop"
      readonly body: ReadonlyArray<PlanNode>
    }
  | {
      readonly kind: "forEach"
      readonly name: string
      readonly path: string
      readonly item: object | null
      readonly concurrency: number
      readonly onFailure: "stop" | "collect"
      readonly body: ReadonlyArray<PlanNode>
    }
  | {
      readonly kind: "parallel"
      readonly name: string
      readonly path: string
      readonly arms: Readonly<Record<string, ReadonlyArray<PlanNode>>>
    }
  | { readonly kind: "sleep"; readonly name: string; readonly path: string }
  | {
      readonly kind: "signal"
      readonly name: string
      readonly path: string
      readonly signal: string
      readonly payload: object
      readonly timeoutMs: number | null
      readonly onTimeout: "fail" | "continue"
    }
  | {
      readonly kind: "review"
      readonly name: string
      readonly path: string
      readonly decision: object
      readonly deadlineMs: number
      readonly onReject: "fail" | "continue"
      readonly onTimeout: "fail" | "reject"
      readonly who: string | null
      readonly escalate: ReadonlyArray<{ readonly afterMs: number; readonly who: string }>
      readonly validForMs: number | null
    }
  | {
      readonly kind: "child"
      readonly name: string
      readonly path: string
      readonly workflow: string
      readonly version: number
      readonly settle: boolean
    }
  | { readonly kind: "fail" | "end"; readonly name: string; readonly path: string }

/**
 * One node of a plan.
 *
 * @category models
 * @since 0.1.0
 */
export type PlanNode = PlanStep | PlanControl

/**
 * The window of a plan.
 *
 * *Shape.* `schema` is a JSON Schema of what is stored. `compact` is the step that compacts it, whose path is
 * `:window[]/compact`; null where a function does, or nothing.
 *
 * @category models
 * @since 0.1.0
 */
export interface PlanWindow {
  readonly schema: object
  readonly maxBytes: number
  readonly compact: PlanStep | null
}

/**
 * A compiled workflow.
 *
 * *Shape.* `hash` is a SHA-256 of everything else, over canonical JSON. `input`, `output` and `failure` are JSON
 * Schemas; `output` is null where the workflow gives nothing. `window` is there where its runs carry one.
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
  readonly window?: PlanWindow
  readonly nodes: ReadonlyArray<PlanNode>
}

/** Whether a node runs a function or performs an operation. */
export const isStep = (node: PlanNode): node is PlanStep => node.kind === "step" || node.kind === "perform"

/**
 * What a step does outside, as its record keeps it: a resume under other code compares it (law X10).
 *
 * *Shape.* `transaction`, `external:<operation>`, or `none`; of a node that steers, its kind.
 *
 * @category models
 * @since 0.1.0
 */
export const effectOf = (node: PlanNode): string => {
  if (!isStep(node)) return node.kind
  const exclusive = node.effects.find((effect) => effect.kind === "external" || effect.kind === "transaction")
  return exclusive === undefined
    ? "none"
    : exclusive.kind === "transaction"
      ? "transaction"
      : `external:${exclusive.name}`
}
