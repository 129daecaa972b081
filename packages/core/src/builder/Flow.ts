/**
 * The builder of a workflow, as users see it: every call adds a step and knows the results of all before it.
 *
 * Type parameters, in the order of `Flow`:
 *
 * - `I`: the workflow's input, as steps see it.
 * - `Outer`: results that were there before this scope (a branch, a loop's body, a fragment).
 * - `Own`: results that this scope has added; what a scope hands on.
 * - `S`: what the scope adds to the context, such as `{ state, turn }` or `{ item, key }`.
 * - `E`: failures that a client of the workflow can see: those of its operations, and its declared `failure`.
 * - `R`: what a worker must provide: handlers and services.
 * - `Given`: the workflow's input, as a caller gives it.
 */
import type * as Effect from "effect/Effect"
import type {
  AnyYield,
  declared,
  checkEffects,
  checkFragment,
  checkRun,
  freshName,
  yieldedNeeds,
} from "./internal/checks.js"
import type { AnyEffect, Transaction } from "../dsl/Effects.js"
import type { checkJson } from "../dsl/internal/jsonSide.js"
import type { AnyOperation, External, performs } from "../dsl/Operation.js"
import type { Unvalidated } from "../dsl/Output.js"
import type { RetryOptions, StepOptions } from "../dsl/StepOptions.js"
import type { AnySchema, givenOf, typeOf } from "../model/Codec.js"
import type { optionalNotMarked, undeclaredOperation } from "../model/DiagnosticCode.js"
import type { Workflow } from "./Workflow.js"

/**
 * One result: the name of its step and what later steps see.
 *
 * A scope's results are a union of these, turned into an object only where a function sees them. An intersection of
 * objects would be instantiated member by member at every step of a chain, which makes long workflows slow to check.
 *
 * @category models
 * @since 0.1.0
 */
export interface Result<Name extends PropertyKey, A> {
  readonly name: Name
  readonly type: A
}

export interface SchemaResult<Name extends PropertyKey, S extends AnySchema> {
  readonly name: Name
  readonly type: typeOf<S>
}

interface AnyResult {
  readonly name: PropertyKey
  readonly type: any
}

/** The results as functions see them: one object, one property a step. */
export type show<Rs extends AnyResult> = { readonly [R in Rs as R["name"]]: R["type"] }

/** The results that a fragment asks for, as entries. */
export type resultsOf<T> = { readonly [K in keyof T]: Result<K, T[K]> }[keyof T]

/**
 * What the functions of a step are given.
 *
 * *Shape.* `results` holds the output of every earlier step under its name. What the scope adds (`state`, `turn`,
 * `item`, `key`, `value`, `outer`) stands beside it.
 *
 * @category models
 * @since 0.1.0
 */
export type StepContext<I, Rs extends AnyResult, S> = StepInput<I, Rs> & S

export interface StepInput<I, Rs extends AnyResult> {
  readonly input: I
  readonly results: { readonly [R in Rs as R["name"]]: R["type"] }
}

interface RunFunction<Ctx, A, E, R, Y> {
  (context: Ctx): Returned<A, E, R, Y>
}

type operationsOf<Fx extends ReadonlyArray<AnyEffect>> = Extract<Fx[number], AnyOperation>
type payloadOf<Op> = Op extends { readonly perform: (payload: infer P) => any } ? P : never
type successOf<Op> = Op extends { readonly perform: (payload: any) => Effect.Effect<infer A, any, any> } ? A : never

/** `perform` in promise style, where the step declares an operation. */
type PerformContext<Name extends string, Fx extends ReadonlyArray<AnyEffect>> = [operationsOf<Fx>] extends [never]
  ? {}
  : {
      /** Promise style. The Effect style is `Op.perform(payload)`. */
      readonly perform: <Op extends AnyOperation>(
        operation: Op["name"] extends operationsOf<Fx>["name"] ? Op : undeclaredOperation<Name, Op["name"]>,
        payload: payloadOf<Op>,
      ) => Promise<successOf<Op>>
    }

/** `query` in promise style, where the step declares a transaction. */
type TransactionContext<Fx extends ReadonlyArray<AnyEffect>> = [Extract<Fx[number], Transaction>] extends [never]
  ? {}
  : {
      /** Promise style: a statement in the transaction that commits this step. */
      readonly query: <Row = unknown>(text: string, parameters?: ReadonlyArray<unknown>) => Promise<ReadonlyArray<Row>>
    }

interface SignalContext {
  /** Aborted when the step is interrupted: its timeout passed, its lease was lost, or the worker stops. */
  readonly signal: AbortSignal
}

/** What `run` is given beside input and results. Most steps declare nothing, and share one type. */
type RunContext<Name extends string, Fx extends ReadonlyArray<AnyEffect>> = Fx extends readonly []
  ? SignalContext
  : PerformContext<Name, Fx> & TransactionContext<Fx> & SignalContext

/**
 * The output of a settled operation: its success, or its declared failure as a value to branch on.
 *
 * @category models
 * @since 0.1.0
 */
export type Outcome<A, E> = { readonly ok: true; readonly value: A } | { readonly ok: false; readonly error: E }

/**
 * What a step's function may return: an Effect, a promise, a generator function's generator, or the value itself.
 *
 * @category models
 * @since 0.1.0
 */
export type Returned<A, E, R, Y = never> = Effect.Effect<A, E, R> | Promise<A> | Generator<Y, A, any> | A

/**
 * Where nothing could be inferred, `B` is its whole constraint, `undefined` included: then the payload itself is asked
 * for, so that the editor names the wrong field instead of speaking of `optional`.
 */
type checkPayload<Name extends string, P, B, Optional extends boolean> = undefined extends B
  ? P | (Optional extends true ? null : never)
  : null extends B
    ? null extends P
      ? unknown
      : Optional extends true
        ? unknown
        : optionalNotMarked<Name>
    : unknown

/**
 * Options of `.perform`.
 *
 * @category models
 * @since 0.1.0
 */
export interface PerformSpec<
  Name extends string,
  Ctx,
  P,
  A,
  F,
  B,
  Optional extends boolean,
  Settle extends boolean,
  UP,
  UN extends string,
> extends StepOptions<F> {
  /** Computed from committed results, without effects. With `optional`, null means: not this time; the result is null. */
  readonly payload: (context: Ctx) => B & checkPayload<Name, P, B, Optional>
  readonly optional?: Optional
  /** A declared failure becomes a value, and the run goes on. */
  readonly settle?: Settle
  /**
   * What takes the effect back when the run fails later. Compensations run in reverse order, each a step of its own; one
   * that fails for good (after 5 retries, unless `retry` says otherwise) parks the run with what is left undone.
   */
  readonly compensate?: {
    readonly operation: External<any, UP, any, any, UN>
    readonly payload: (context: Ctx & { readonly result: A }) => NoInfer<UP>
    readonly retry?: RetryOptions
  }
}

/**
 * A workflow under construction. It is immutable: each call gives a new one.
 *
 * @category models
 * @since 0.1.0
 */
export interface Flow<
  I,
  Outer extends AnyResult,
  Own extends AnyResult,
  S,
  E,
  R,
  Given = I,
  Names extends PropertyKey = Outer["name"],
> {
  /**
   * Adds a step.
   *
   * *Shape.* `effects` is a literal list of at most one operation or transaction, and any number of reads and locals;
   * a step that performs reads nothing. `output` is the schema of what `run` gives; it is checked before the commit.
   */
  step<
    const Name extends string,
    const Fx extends ReadonlyArray<AnyEffect>,
    Out extends AnySchema,
    const A extends givenOf<Out> | Unvalidated,
    E2 = never,
    R2 = never,
    Y extends AnyYield = never,
  >(
    name: freshName<Name, Names>,
    spec: {
      readonly effects: checkEffects<Name, Fx> & Fx
      readonly output: checkJson<`output of step '${Name}'`, Out> & Out
    } & StepOptions,
    run: checkRun<Name, Fx, R2 | yieldedNeeds<Y>> &
      RunFunction<StepContext<I, Outer | Own, S> & RunContext<Name, Fx>, A, E2, R2, Y>,
  ): Flow<I, Outer, Own | SchemaResult<Name, Out>, S, E, R | declared<Fx[number]>, Given, Names | Name>

  /**
   * Adds a step that is exactly one operation: the form to reach for. Its output is the operation's success.
   */
  perform<
    const Name extends string,
    P,
    A,
    F,
    N extends string,
    const B extends P | null | undefined,
    const Optional extends boolean = false,
    const Settle extends boolean = false,
    UP = never,
    UN extends string = never,
  >(
    name: freshName<Name, Names>,
    operation: External<any, P, A, F, N>,
    spec: PerformSpec<Name, StepContext<I, Outer | Own, S>, P, A, F, B, Optional, Settle, UP, UN>,
  ): Flow<
    I,
    Outer,
    Own | Result<Name, (Settle extends true ? Outcome<A, F> : A) | (Optional extends true ? null : never)>,
    S,
    E | (Settle extends true ? never : F),
    R | performs<N | UN>,
    Given,
    Names | Name
  >

  /** Adds a fragment that was written elsewhere: it sees what it asked for, and nothing is lost for what follows. */
  use<NI, Needs extends AnyResult, Added extends AnyResult, E2, R2>(
    fragment: checkFragment<I, NI, show<Outer | Own>, show<Needs>, show<Added>> & Fragment<NI, Needs, Added, E2, R2>,
  ): Flow<I, Outer, Own | Added, S, E | E2, R | R2, Given, Names | Added["name"]>

  /** Says what the workflow gives to who waits for it. Without it, that is nothing. */
  output<Out extends AnySchema, const A extends givenOf<Out>>(
    schema: checkJson<"output of the workflow", Out> & Out,
    select: (context: StepContext<I, Outer | Own, S>) => A,
  ): Closed<typeOf<Out>, E, R, Given>

  /** Checks the whole and lowers it to a plan. It never throws: what is wrong stands in `diagnostics`. */
  compile(): Workflow<Given, void, E, R>

  readonly _flow: true
  readonly _Own: Own
  readonly _E: E
  readonly _R: R
}

/**
 * A workflow that has its output and takes no more steps.
 *
 * @category models
 * @since 0.1.0
 */
export interface Closed<Out, E, R, Given> {
  /** Checks the whole and lowers it to a plan. It never throws: what is wrong stands in `diagnostics`. */
  compile(): Workflow<Given, Out, E, R>
}

/**
 * Any flow, as a fragment's or branch's result. Bare on purpose: with `_E: any` here, TypeScript would infer `any` from
 * the contextual return type for steps that have no error.
 *
 * @category models
 * @since 0.1.0
 */
export interface AnyFlow {
  readonly _flow: true
}

export type ownOf<B> = B extends { readonly _Own: infer X extends AnyResult } ? X : never
export type errorOf<B> = B extends { readonly _E: infer X } ? X : never
export type needOf<B> = B extends { readonly _R: infer X } ? X : never

/**
 * A piece of a workflow, written in a file of its own and added with `.use`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Fragment<NI, Needs extends AnyResult, Added extends AnyResult, E, R> {
  readonly kind: "fragment"
  readonly _: (input: NI, needs: Needs) => [Added, E, R]
}
