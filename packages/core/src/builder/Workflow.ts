/** Where a workflow begins: `Workflow.make`, `Workflow.fragment`, and what `compile()` gives. */
import type * as Either from "effect/Either"
import type { Budget } from "../dsl/Budget.js"
import type { Definition, Durability } from "../dsl/Definition.js"
import type { AnyEffect } from "../dsl/Effects.js"
import type { checkJson } from "../dsl/internal/jsonSide.js"
import type { Limits, Priority } from "../dsl/Limits.js"
import type { AnySchema, givenOf, NoSchema, typeOf } from "../model/Codec.js"
import type { Diagnostic } from "../model/DiagnosticCode.js"
import type { CompileError } from "../model/Errors.js"
import type { Plan } from "../model/Plan.js"
import type { AnyFlow, errorOf, needOf, ownOf } from "./Control.js"
import type { Flow, Fragment, Whole } from "./Flow.js"
import type { AnyYield, declared } from "./internal/checks.js"
import { emptyFlow, fragmentOf } from "./internal/flow.js"
import type { resultsOf } from "./Results.js"
import type { ChangesWindow, changesWindow, compacted, SeesWindow, seesWindow, WindowSpec } from "./Window.js"

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
   * and how fast new ones begin. `priority`: which runs come first. `budget`: what they may spend on paid calls. `window`: the model context that its runs carry, which steps
   * read as `window` and change with `changeWindow`.
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
  make<
    const Name extends string,
    In extends AnySchema,
    FS extends AnySchema = NoSchema,
    Win extends AnySchema = NoSchema,
    const Fx extends ReadonlyArray<AnyEffect> = [],
    const A extends compacted<Win> = never,
    E2 = never,
    R2 = never,
    Y extends AnyYield = never,
  >(
    name: Name,
    options: {
      readonly version: number
      readonly input: checkJson<`input of workflow '${Name}'`, In> & In
      readonly failure?: checkJson<`failure of workflow '${Name}'`, FS> & FS
      readonly durability?: Durability
      readonly limits?: Limits<typeOf<In>>
      readonly priority?: Priority<typeOf<In>>
      readonly budget?: Budget
      readonly window?: WindowSpec<Name, typeOf<In>, Win, Fx, A, E2, R2, Y>
    },
  ): Flow<
    typeOf<In>,
    never,
    never,
    {},
    typeOf<FS>,
    declared<Fx[number]>,
    Whole<givenOf<In>, typeOf<FS>, seesWindow<Win>, changesWindow<Win>>
  >

  /**
   * A piece of a workflow in a file of its own: `Workflow.fragment<{ input: ..; results: .. }>()((flow) => flow.step(..))`.
   * Past about fifty steps, fragments keep the editor quick.
   *
   * *Shape.* `failure` is what a `.fail` in it may fail with; the workflow that uses it declares as much. `window` is the type of
   * the window that its steps see and change, which is that of the workflow.
   */
  fragment<
    Needs extends {
      readonly input: unknown
      readonly results: object
      readonly failure?: unknown
      readonly window?: unknown
    },
  >(): <B extends AnyFlow>(
    build: (
      flow: Flow<
        Needs["input"],
        resultsOf<Needs["results"]>,
        never,
        {},
        never,
        never,
        Whole<Needs["input"], failureNeeded<Needs>, windowSeen<Needs>, windowChanged<Needs>>
      >,
    ) => B,
  ) => Fragment<
    Needs["input"],
    resultsOf<Needs["results"]>,
    ownOf<B>,
    errorOf<B>,
    needOf<B>,
    failureNeeded<Needs>,
    windowSeen<Needs> & windowChanged<Needs>
  >
}

type windowSeen<Needs> = Needs extends { readonly window: infer Window } ? SeesWindow<Window> : {}
type windowChanged<Needs> = Needs extends { readonly window: infer Window } ? ChangesWindow<Window> : {}
type failureNeeded<Needs> = Needs extends { readonly failure: infer F } ? F : never

export const Workflow: WorkflowConstructors = {
  make: (name: string, options: any): any => emptyFlow(name, options),
  fragment: () => (build) => fragmentOf(build) as never,
}
