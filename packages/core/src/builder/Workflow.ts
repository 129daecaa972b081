/** Where a workflow begins: `Workflow.make`, `Workflow.fragment`, and what `compile()` gives. */
import type * as Either from "effect/Either"
import type { Definition, Durability } from "../dsl/Definition.js"
import type { checkJson } from "../dsl/internal/jsonSide.js"
import type { Limits, Priority } from "../dsl/Limits.js"
import type { AnySchema, givenOf, NoSchema, typeOf } from "../model/Codec.js"
import type { Diagnostic } from "../model/DiagnosticCode.js"
import type { CompileError } from "../model/Errors.js"
import type { Plan } from "../model/Plan.js"
import type { AnyFlow, errorOf, needOf, ownOf } from "./Control.js"
import type { Flow, Fragment, Whole } from "./Flow.js"
import { emptyFlow, fragmentOf } from "./internal/flow.js"
import type { resultsOf } from "./Results.js"

/**
 * A compiled workflow: what `Cairn.start` starts and a worker runs.
 *
 * *Shape.* `Given` is what a caller hands in, `Out` what a client receives, `E` the failures that a client can tell
 * apart, `R` what a worker must provide. `plan` is the compiled form, or everything that is wrong.
 *
 * @category models
 * @since 0.1.0
 */
export interface Workflow<in Given, out Out, out E, out R> {
  readonly name: string
  readonly version: number
  readonly plan: Either.Either<Plan, CompileError>
  /** Empty where `plan` is one. */
  readonly diagnostics: ReadonlyArray<Diagnostic>
  readonly definition: Definition
  readonly _types?: (given: Given) => [Out, E, R]
}

export type AnyWorkflow = Workflow<any, any, any, any>

export type givenOfWorkflow<W> = W extends Workflow<infer G, any, any, any> ? G : never
export type outputOfWorkflow<W> = W extends Workflow<any, infer Out, any, any> ? Out : never
export type failureOfWorkflow<W> = W extends Workflow<any, any, infer E, any> ? E : never
export type needsOfWorkflow<W> = W extends Workflow<any, any, any, infer R> ? R : never

/**
 * Where a workflow begins.
 *
 * @category constructors
 * @since 0.1.0
 */
export interface WorkflowConstructors {
  /**
   * Begins a workflow.
   *
   * *Shape.* `version` is a whole number from 1; raise it when stored runs could no longer go on under the new code.
   * `failure` lists the failures of steps that a client can tell apart; operations bring their own. `durability`: which
   * commits of its runs are waited for, instead of what their worker says. `limits`: how many of its runs are executed at once,
   * and how fast new ones begin. `priority`: which runs come first.
   *
   * @example
   * ```ts
   * import { Workflow } from "@cairn/core"
   * import { Schema } from "effect"
   *
   * const greet = Workflow.make("greet", { version: 1, input: Schema.Struct({ name: Schema.String }) })
   *   .step("text", { effects: [], output: Schema.String }, ({ input }) => `Hello, ${input.name}`)
   *   .output(Schema.String, ({ results }) => results.text)
   *   .compile()
   * greet.diagnostics
   * // => []
   * ```
   */
  make<const Name extends string, In extends AnySchema, FS extends AnySchema = NoSchema>(
    name: Name,
    options: {
      readonly version: number
      readonly input: checkJson<`input of workflow '${Name}'`, In> & In
      readonly failure?: checkJson<`failure of workflow '${Name}'`, FS> & FS
      readonly durability?: Durability
      readonly limits?: Limits<typeOf<In>>
      readonly priority?: Priority<typeOf<In>>
    },
  ): Flow<typeOf<In>, never, never, {}, typeOf<FS>, never, Whole<givenOf<In>, typeOf<FS>>>

  /**
   * A piece of a workflow in a file of its own: `Workflow.fragment<{ input: ..; results: .. }>()((flow) => flow.step(..))`.
   * Past about fifty steps, fragments keep the editor quick.
   *
   * *Shape.* `failure` is what a `.fail` in it may fail with; the workflow that uses it declares as much.
   */
  fragment<Needs extends { readonly input: unknown; readonly results: object; readonly failure?: unknown }>(): <
    B extends AnyFlow,
  >(
    build: (
      flow: Flow<
        Needs["input"],
        resultsOf<Needs["results"]>,
        never,
        {},
        never,
        never,
        Whole<Needs["input"], failureNeeded<Needs>>
      >,
    ) => B,
  ) => Fragment<Needs["input"], resultsOf<Needs["results"]>, ownOf<B>, errorOf<B>, needOf<B>, failureNeeded<Needs>>
}

type failureNeeded<Needs> = Needs extends { readonly failure: infer F } ? F : never

export const Workflow: WorkflowConstructors = {
  make: (name: string, options: any): any => emptyFlow(name, options),
  fragment: () => (build) => fragmentOf(build) as never,
}
