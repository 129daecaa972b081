/** Workflows of computed steps: names and lists that are not known before the program runs. */
import type * as Effect from "effect/Effect"
import type * as EffectScope from "effect/Scope"
import type { YieldWrap } from "effect/Utils"
import type { Durability, Node } from "../dsl/Definition.js"
import type { AnyDataVersion } from "../dsl/DataVersion.js"
import type { AnyEffect, Local, Read } from "../dsl/Effects.js"
import type { AnyOperation, External, performs } from "../dsl/Operation.js"
import type { Unvalidated } from "../dsl/Output.js"
import type { RejectedOutput, StepOptions } from "../dsl/StepOptions.js"
import type { AnySchema, givenOf, NoSchema, typeOf } from "../model/Codec.js"
import { notAStep } from "../model/DiagnosticCode.js"
import type { Plan as CompiledPlan } from "../model/Plan.js"
import type { Returned } from "./Step.js"
import type { declared, given } from "./internal/checks.js"
import { close, emptyDefinition } from "./internal/flow.js"
import * as nodes from "./internal/nodes.js"
import type { CompactContext } from "./Window.js"
import type { Workflow } from "./Workflow.js"

/**
 * A compiled workflow, as plain data.
 *
 * @category models
 * @since 0.1.0
 */
export type Plan = CompiledPlan

/**
 * What the functions of a computed step are given: names are not known to the compiler, so results have no types.
 *
 * @category models
 * @since 0.1.0
 */
export interface ComputedContext {
  readonly input: any
  readonly results: Readonly<Record<string, any>>
  /** Where the workflow has a window, and the function is none whose value a crash would have computed again. */
  readonly window: any
}

/**
 * The window of a computed workflow: as of `Workflow.make`, without its types.
 *
 * @category options
 * @since 0.1.0
 */
export interface ComputedWindow<Fx extends ReadonlyArray<Read<any> | Local<any>>> {
  readonly schema: AnySchema
  readonly initial: unknown
  readonly maxBytes?: number
  readonly compact?:
    | ((window: any) => unknown)
    | ({
        readonly effects: Fx
        readonly run: (
          context: CompactContext<any, any>,
        ) => Returned<
          unknown,
          unknown,
          declared<Fx[number]> | EffectScope.Scope,
          YieldWrap<Effect.Effect<any, any, declared<Fx[number]> | EffectScope.Scope>>
        >
      } & StepOptions)
}

interface ComputedRunContext extends ComputedContext {
  /** Promise style. The Effect style is `Op.perform(payload)`. */
  readonly perform: (operation: AnyOperation, payload: any) => Promise<any>
  /** Promise style: a statement in the transaction that commits this step. */
  readonly query: <Row = unknown>(text: string, parameters?: ReadonlyArray<unknown>) => Promise<ReadonlyArray<Row>>
  /** Changes the workflow's window when this step is committed. */
  readonly changeWindow: (change: (window: any) => unknown) => void
  /** Promise style. The Effect style is `Data.read(key)`. */
  readonly read: (data: AnyDataVersion, key: any) => Promise<any>
  /** Aborted when the step is interrupted: its timeout passed, its lease was lost, or the worker stops. */
  readonly signal: AbortSignal
  /** What the last attempt gave, where the output's schema has refused it: for the prompt of the next one. */
  readonly rejected: RejectedOutput | null
}

/**
 * One computed step. `E`: failures that a client can see; `R`: what a worker must provide.
 *
 * @category models
 * @since 0.1.0
 */
export interface ComputedStep<out E, out R> {
  readonly node: Node
  readonly _types?: () => [E, R]
}

type errorsOf<Step> = Step extends ComputedStep<infer E, any> ? E : never
type needsOf<Step> = Step extends ComputedStep<any, infer R> ? R : never

/**
 * Builds workflows of computed steps. The rules are the same, kept by `compile()` alone where types can't see: look at
 * `diagnostics` before you start anything.
 *
 * @category constructors
 * @since 0.1.0
 */
export interface PlanConstructors {
  /** A step; what `run` needs must be in `effects`. */
  step<const Fx extends ReadonlyArray<AnyEffect>, Out extends AnySchema>(
    name: string,
    spec: { readonly effects: Fx; readonly output: Out } & StepOptions,
    run: (
      context: ComputedRunContext,
    ) => Returned<
      givenOf<Out> | Unvalidated,
      unknown,
      declared<Fx[number]> | given<Fx[number]> | EffectScope.Scope,
      YieldWrap<Effect.Effect<any, any, declared<Fx[number]> | given<Fx[number]> | EffectScope.Scope>>
    >,
  ): ComputedStep<never, declared<Fx[number]>>

  /** A step that is exactly one operation. */
  perform<P, A, F, N extends string>(
    name: string,
    operation: External<any, P, A, F, N>,
    spec: StepOptions<F> & {
      readonly payload: (context: ComputedContext) => NoInfer<P> | null
      readonly optional?: boolean
      readonly settle?: boolean
    },
  ): ComputedStep<F, performs<N>>

  /**
   * A workflow of computed steps, compiled.
   *
   * @example
   * ```ts
   * import { Plan } from "@cairn/core"
   * import { Schema } from "effect"
   *
   * const greet = Plan.make("greet", {
   *   version: 1,
   *   input: Schema.Struct({ name: Schema.String }),
   *   steps: ["Hello", "Goodbye"].map((word) =>
   *     Plan.step(word, { effects: [], output: Schema.String }, ({ input }) => `${word}, ${input.name}`)),
   * })
   * greet.diagnostics
   * // => []
   * ```
   */
  make<
    In extends AnySchema,
    const Steps extends ReadonlyArray<ComputedStep<any, any>>,
    FS extends AnySchema = NoSchema,
    Out extends AnySchema = AnySchema,
    const Fx extends ReadonlyArray<Read<any> | Local<any>> = [],
  >(
    name: string,
    options: {
      readonly version: number
      readonly input: In
      readonly failure?: FS
      readonly durability?: Durability
      readonly window?: ComputedWindow<Fx>
      readonly steps: Steps
      /** Says what the workflow gives to who waits for it. Without it, that is nothing. */
      readonly output?: { readonly schema: Out; readonly select: (context: ComputedContext) => givenOf<Out> }
    },
  ): Workflow<
    givenOf<In>,
    AnySchema extends Out ? void : typeOf<Out>,
    typeOf<FS> | errorsOf<Steps[number]>,
    needsOf<Steps[number]> | declared<Fx[number]>
  >
}

export const Plan: PlanConstructors = {
  step: (name, spec, run) => ({ node: nodes.step(name, spec, run) }),
  perform: (name, operation, spec) => ({ node: nodes.perform(name, operation, spec) }),
  make: (name: string, options: any): any => {
    const steps: ReadonlyArray<unknown> = Array.isArray(options?.steps) ? Array.from(options.steps) : [null]
    const built = steps.map((step) => (step as ComputedStep<never, never> | null | undefined)?.node)
    return close({
      ...emptyDefinition(name, options),
      nodes: built.filter((node) => node !== undefined),
      output: options?.output ?? null,
      ...(built.includes(undefined) && { misuses: [{ code: "CRN107", step: null, message: notAStep }] }),
    })
  },
}
