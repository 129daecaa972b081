/**
 * A workflow as its builder leaves it: an ordered list of nodes with their functions. The compiler reads it, the runtime
 * calls its functions; nothing else looks inside.
 */
import type { AnySchema } from "../model/Codec.js"
import type { Diagnostic } from "../model/DiagnosticCode.js"
import type { AnyEffect } from "./Effects.js"
import type { AnyOperation } from "./Operation.js"
import type { RetryOptions, StepOptions } from "./StepOptions.js"

/**
 * Which commits are waited for.
 *
 * *Shape.* `barrier`: those that something outside follows from: operations, transactions, waits, the end of a run. A
 * killed process repeats at most local steps and reads, back to the last of these. `step`: every one.
 *
 * @category models
 * @since 0.1.0
 */
export type Durability = "step" | "barrier"

/** The arguments of a step's function, without their types. */
export interface UntypedContext {
  readonly input: unknown
  readonly results: Readonly<Record<string, unknown>>
}

export interface StepNode {
  readonly kind: "step"
  readonly name: string
  readonly effects: ReadonlyArray<AnyEffect>
  readonly output: AnySchema
  readonly options: StepOptions
  readonly run: (context: any) => unknown
}

export interface PerformNode {
  readonly kind: "perform"
  readonly name: string
  readonly operation: AnyOperation
  readonly payload: (context: any) => unknown
  readonly optional: boolean
  readonly settle: boolean
  readonly compensate: {
    readonly operation: AnyOperation
    readonly payload: (context: any) => unknown
    readonly retry?: RetryOptions
  } | null
  readonly options: StepOptions
}

export type Node = StepNode | PerformNode

export interface Definition {
  readonly name: string
  readonly version: number
  /** What its worker says where it says nothing. */
  readonly durability?: Durability | undefined
  readonly input: AnySchema
  readonly failure: AnySchema | null
  readonly nodes: ReadonlyArray<Node>
  /** What the builder could not turn into a node: `compile` reports it beside its own findings. */
  readonly misuses?: ReadonlyArray<Diagnostic>
  readonly output: { readonly schema: AnySchema; readonly select: (context: any) => unknown } | null
}
