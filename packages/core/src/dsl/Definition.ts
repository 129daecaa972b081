/**
 * A workflow as its builder leaves it: an ordered list of nodes with their functions. The compiler reads it, the runtime
 * calls its functions; nothing else looks inside.
 */
import type * as Duration from "effect/Duration"
import type * as Either from "effect/Either"
import type { AnySchema } from "../model/Codec.js"
import type { Diagnostic } from "../model/DiagnosticCode.js"
import type { CompileError } from "../model/Errors.js"
import type { Plan } from "../model/Plan.js"
import type { Budget } from "./Budget.js"
import type { AnyEffect } from "./Effects.js"
import type { Limits, Priority } from "./Limits.js"
import type { AnyOperation } from "./Operation.js"
import type { RetryOptions, StepOptions } from "./StepOptions.js"
import type { WindowDefinition } from "./Window.js"

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

/** The arguments of a step's function, without their types. What a scope adds (`state`, `item`, ..) stands beside these. */
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

/** A function from what is committed to something that steers: its value is recorded before it is obeyed (X1). */
type Steering<A = unknown> = (context: any) => A

export interface BranchNode {
  readonly kind: "branch"
  readonly name: string
  readonly on: Steering
  readonly cases: Readonly<Record<string, ReadonlyArray<Node>>>
}

/** A branch over the member of a tagged union. */
export interface MatchNode {
  readonly kind: "match"
  readonly name: string
  readonly tag: string
  readonly value: Steering
  readonly cases: Readonly<Record<string, ReadonlyArray<Node>>>
}

export interface LoopNode {
  readonly kind: "loop"
  readonly name: string
  readonly state: AnySchema
  readonly initial: Steering
  readonly maxIterations: number
  readonly onLimit: "fail" | "stop"
  readonly body: ReadonlyArray<Node>
  /** Gives `{ done, state }`. */
  readonly next: Steering
}

export interface ForEachNode {
  readonly kind: "forEach"
  readonly name: string
  /** Null: items are JSON as they are. */
  readonly item: AnySchema | null
  readonly items: Steering
  readonly key: (item: any) => unknown
  readonly concurrency: number
  readonly onFailure: "stop" | "collect"
  readonly body: ReadonlyArray<Node>
}

export interface ParallelNode {
  readonly kind: "parallel"
  readonly name: string
  readonly arms: Readonly<Record<string, ReadonlyArray<Node>>>
}

/** `until` gives a time, `duration` a delay: a value, or a function that gives one. */
export interface SleepNode {
  readonly kind: "sleep"
  readonly name: string
  readonly how: "for" | "until"
  readonly value: unknown
}

export interface SignalNode {
  readonly kind: "signal"
  readonly name: string
  /** The name under which it is sent; that of the node unless given. */
  readonly signal: string
  readonly schema: AnySchema
  readonly timeout: Duration.DurationInput | null
  readonly onTimeout: "fail" | "continue"
}

export interface ReviewNode {
  readonly kind: "review"
  readonly name: string
  readonly decision: AnySchema
  readonly show: Steering
  readonly deadline: Duration.DurationInput
  readonly onReject: "fail" | "continue"
  readonly onTimeout: "fail" | "reject"
  readonly who: string | null
  readonly escalate: ReadonlyArray<{ readonly after: Duration.DurationInput; readonly who: string }>
  /** How long after it was given an approval may still be acted on; null for ever. */
  readonly validFor: Duration.DurationInput | null
}

/** A compiled workflow, as far as its parent has to know it. */
export interface ChildTarget {
  readonly name: string
  readonly version: number
  readonly plan: Either.Either<Plan, CompileError>
  readonly definition: Definition
}

export interface ChildNode {
  readonly kind: "child"
  readonly name: string
  readonly workflow: ChildTarget
  readonly input: Steering
  readonly settle: boolean
}

export interface FailNode {
  readonly kind: "fail"
  readonly name: string
  readonly failure: Steering
}

export interface EndNode {
  readonly kind: "end"
  readonly name: string
  readonly output: Steering
}

/** What leaves an output of a function or an operation. */
export type WorkNode = StepNode | PerformNode

export type ControlNode =
  | BranchNode
  | MatchNode
  | LoopNode
  | ForEachNode
  | ParallelNode
  | SleepNode
  | SignalNode
  | ReviewNode
  | ChildNode
  | FailNode
  | EndNode

export type Node = WorkNode | ControlNode

export interface Definition {
  readonly name: string
  readonly version: number
  /** What its worker says where it says nothing. */
  readonly durability?: Durability | undefined
  readonly limits?: Limits | undefined
  readonly priority?: Priority | undefined
  readonly budget?: Budget | undefined
  /** The model context that its runs carry; undefined where they carry none. */
  readonly window?: WindowDefinition | undefined
  readonly input: AnySchema
  readonly failure: AnySchema | null
  readonly nodes: ReadonlyArray<Node>
  /** What the builder could not turn into a node: `compile` reports it beside its own findings. */
  readonly misuses?: ReadonlyArray<Diagnostic>
  readonly output: { readonly schema: AnySchema; readonly select: (context: any) => unknown } | null
}
