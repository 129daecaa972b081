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
 * - `W`: what holds for the whole workflow: its input as a caller gives it, its declared failures, and its window.
 * - `Names`: every name that is taken, those that leave no result included.
 */
import type * as Duration from "effect/Duration"
import type {
  AnyYield,
  declared,
  checkEffects,
  checkFragment,
  checkRun,
  freshName,
  yieldedNeeds,
} from "./internal/checks.js"
import type { AnyEffect } from "../dsl/Effects.js"
import type { checkJson } from "../dsl/internal/jsonSide.js"
import type { External, performs } from "../dsl/Operation.js"
import type { Unvalidated } from "../dsl/Output.js"
import type { StepOptions } from "../dsl/StepOptions.js"
import type { AnySchema, givenOf, NoSchema, typeOf } from "../model/Codec.js"
import type { unreachable } from "../model/DiagnosticCode.js"
import type { RunCanceled, RunFailed } from "../model/Errors.js"
import type {
  addedBy,
  AnyFlow,
  anyValue,
  BranchResult,
  Builds,
  caseNames,
  ChildSpec,
  collected,
  EarlyEnd,
  errorOf,
  errorsOf,
  failures,
  ForEachSpec,
  itemError,
  itemOf,
  ItemScope,
  ItemsResult,
  LoopSpec,
  needOf,
  needsOf,
  ownOf,
  ParallelResult,
  ReviewResult,
  ReviewSpec,
  SignalResult,
  SignalSpec,
  TagValue,
  Turned,
  TurnScope,
  valueScope,
} from "./Control.js"
import type { checkCases, checkChoice, checkEnds, failureFunction, checkVoidEnds } from "./internal/controlChecks.js"
import type { AnyResult, Outcome, Result, SchemaResult, show, StepContext } from "./Results.js"
import type { PerformSpec, RunContext, RunFunction } from "./Step.js"
import type { Workflow } from "./Workflow.js"

/**
 * What holds for the whole workflow, whatever the scope.
 *
 * @category models
 * @since 0.1.0
 */
export interface Whole<Given, Failure, Sees = {}, Changes = {}> {
  readonly given: Given
  readonly failure: Failure
  /** What functions that look are given beside input and results: the window, where there is one. */
  readonly sees: Sees
  /** What steps are given besides. */
  readonly changes: Changes
}

type AnyWhole = Whole<any, any, any, any>

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
  W extends AnyWhole = Whole<I, never>,
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
      RunFunction<StepContext<I, Outer | Own, S> & RunContext<Name, Fx, W["sees"]> & W["changes"], A, E2, R2, Y>,
  ): Flow<I, Outer, Own | SchemaResult<Name, Out>, S, E, R | declared<Fx[number]>, W, Names | Name>

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
    W,
    Names | Name
  >

  /**
   * Goes one of several ways. The choice is recorded before it is obeyed: a resume never chooses again.
   *
   * *Shape.* `on` gives the name of a case; each has a function from the flow to what it adds, `(flow) => flow` where
   * that is nothing. The result is `{ case, results }`, told apart by `case`. What a case adds is seen inside it and in
   * that result, not beside it.
   */
  branch<
    const Name extends string,
    const Cases extends Builds<Flow<I, Outer | Own, never, S, never, never, W, Names | Name>>,
    const On extends string = never,
  >(
    name: freshName<Name, Names>,
    on: checkChoice<Name, On> & ((context: StepContext<I, Outer | Own, S> & W["sees"]) => On),
    cases: checkCases<Name, On, keyof Cases> & Cases,
  ): Flow<
    I,
    Outer,
    Own | BranchResult<Name, { readonly [C in keyof Cases]: addedBy<Cases[C]> }>,
    S,
    E | errorsOf<Cases>,
    R | needsOf<Cases>,
    W,
    Names | Name
  >

  /**
   * Goes one way for each member of a tagged union, which that case sees as `value`.
   *
   * *Shape.* `tag` is the member that tells them apart; a boolean or a number stands for the case of its text. The
   * result is that of `.branch`.
   */
  match<
    const Name extends string,
    const Tag extends string,
    const Cases extends {
      readonly [C in caseNames<V, Tag>]?: (
        flow: Flow<I, Outer | Own, never, valueScope<S, V, Tag, C>, never, never, W, Names | Name>,
      ) => AnyFlow
    },
    V extends Readonly<Record<Tag, TagValue>> = never,
  >(
    name: freshName<Name, Names>,
    tag: Tag,
    value: checkChoice<Name, caseNames<V, Tag>> & ((context: StepContext<I, Outer | Own, S>) => V),
    cases: checkCases<Name, caseNames<V, Tag>, keyof Cases> & Cases,
  ): Flow<
    I,
    Outer,
    Own | BranchResult<Name, { readonly [C in keyof Cases]: addedBy<Cases[C]> }>,
    S,
    E | errorsOf<Cases>,
    R | needsOf<Cases>,
    W,
    Names | Name
  >

  /**
   * Repeats a body until `next` says that it is done. The state is stored after each turn; finished turns are not
   * loaded again (X7).
   *
   * *Shape.* The body's functions see `state`, `turn` (from 0) and `outer`; `next` sees the turn's results as well. The
   * result is the last state.
   */
  loop<
    const Name extends string,
    St extends AnySchema,
    Body extends AnyFlow,
    const First extends givenOf<St>,
    const Next extends Turned<givenOf<St>>,
  >(
    name: freshName<Name, Names>,
    spec: LoopSpec<Name, StepContext<I, Outer | Own, S> & W["sees"], St, First>,
    body: (flow: Flow<I, Outer | Own, never, TurnScope<typeOf<St>, S>, never, never, W, Names | Name>) => Body,
    next: (context: StepContext<I, Outer | Own | ownOf<Body>, TurnScope<typeOf<St>, S>> & W["sees"]) => Next,
  ): Flow<I, Outer, Own | SchemaResult<Name, St>, S, E | errorOf<Body>, R | needOf<Body>, W, Names | Name>

  /**
   * Runs a body for each item of a list, several at once.
   *
   * *Shape.* The body's functions see `item`, `key` and `outer`. The result is counts and a reader, never a list: see
   * `Items`.
   */
  forEach<
    const Name extends string,
    Body extends AnyFlow,
    T = never,
    Item extends AnySchema = NoSchema,
    const OnFailure extends "stop" | "collect" = "stop",
  >(
    name: freshName<Name, Names>,
    spec: ForEachSpec<Name, StepContext<I, Outer | Own, S> & W["sees"], T, Item, OnFailure>,
    body: (flow: Flow<I, Outer | Own, never, ItemScope<itemOf<T, Item>, S>, never, never, W, Names | Name>) => Body,
  ): Flow<
    I,
    Outer,
    Own | ItemsResult<Name, ownOf<Body>, itemError<Body, OnFailure, W["failure"]>>,
    S,
    E | collected<errorOf<Body>, OnFailure>,
    R | needOf<Body>,
    W,
    Names | Name
  >

  /** Goes several ways at once, and on when all have come to their end. The result holds each arm's results. */
  parallel<
    const Name extends string,
    const Arms extends Builds<Flow<I, Outer | Own, never, S, never, never, W, Names | Name>>,
  >(
    name: freshName<Name, Names>,
    arms: Arms,
  ): Flow<
    I,
    Outer,
    Own | ParallelResult<Name, { readonly [A in keyof Arms]: addedBy<Arms[A]> }>,
    S,
    E | errorsOf<Arms>,
    R | needsOf<Arms>,
    W,
    Names | Name
  >

  /**
   * Waits. When it ends is stored, by the store's clock: a restart does not begin again, and no worker is kept. It leaves
   * no result.
   */
  sleep<const Name extends string>(
    name: freshName<Name, Names>,
    duration:
      Duration.DurationInput | ((context: StepContext<I, Outer | Own, S> & W["sees"]) => Duration.DurationInput),
  ): Flow<I, Outer, Own, S, E, R, W, Names | Name>

  /** Waits until a time, by the store's clock; one that has passed is no wait. It leaves no result. */
  sleepUntil<const Name extends string>(
    name: freshName<Name, Names>,
    time: Date | ((context: StepContext<I, Outer | Own, S> & W["sees"]) => Date),
  ): Flow<I, Outer, Own, S, E, R, W, Names | Name>

  /** Waits for a signal, and takes one that came before. The result is its payload, checked by the schema. */
  signal<const Name extends string, P extends AnySchema, const OnTimeout extends "fail" | "continue" = "fail">(
    name: freshName<Name, Names>,
    spec: SignalSpec<Name, P, OnTimeout>,
  ): Flow<I, Outer, Own | SignalResult<Name, P, OnTimeout>, S, E, R, W, Names | Name>

  /**
   * Waits for a person's decision.
   *
   * *Shape.* `onReject` and `onTimeout` have no default. The result is `{ outcome: "approved", decision, by, at }`; with
   * `onReject: "continue"` it may be `"rejected"` as well, and with `onTimeout: "reject"` besides, `"expired"`.
   */
  review<
    const Name extends string,
    D extends AnySchema,
    const OnReject extends "fail" | "continue",
    const OnTimeout extends "fail" | "reject",
  >(
    name: freshName<Name, Names>,
    spec: ReviewSpec<Name, StepContext<I, Outer | Own, S> & W["sees"], D, OnReject, OnTimeout>,
  ): Flow<I, Outer, Own | ReviewResult<Name, D, OnReject, OnTimeout>, S, E, R, W, Names | Name>

  /**
   * Runs another workflow as a run of its own, and waits for it. Its failures are this workflow's, unless they are
   * settled; what it needs is needed here.
   */
  child<const Name extends string, Given, Out, E2, R2, const A extends Given, const Settle extends boolean = false>(
    name: freshName<Name, Names>,
    workflow: Workflow<Given, Out, E2, R2>,
    spec: ChildSpec<StepContext<I, Outer | Own, S>, A, Settle>,
  ): Flow<
    I,
    Outer,
    Own | Result<Name, Settle extends true ? Outcome<Out, E2 | RunFailed | RunCanceled> : Out>,
    S,
    E | (Settle extends true ? never : E2),
    R | R2,
    W,
    Names | Name
  >

  /** Fails the run, with a failure that the workflow declares. Nothing follows it in its scope. */
  fail<const Name extends string>(
    name: freshName<Name, Names>,
    failure: failureFunction<Name, StepContext<I, Outer | Own, S> & W["sees"], W["failure"]>,
  ): Ended<unreachable<Name>, Own, E, R, W>

  /** Ends the whole workflow here, with its output. Nothing follows it in its scope. */
  end<const Name extends string, const A extends anyValue>(
    name: freshName<Name, Names>,
    output: (context: StepContext<I, Outer | Own, S> & W["sees"]) => A,
  ): Ended<unreachable<Name>, Own, E | EarlyEnd<Name, A>, R, W>

  /** Adds a fragment that was written elsewhere: it sees what it asked for, and nothing is lost for what follows. */
  use<NI, Needs extends AnyResult, Added extends AnyResult, E2, R2, F, Context>(
    fragment: checkFragment<
      I,
      NI,
      show<Outer | Own>,
      show<Needs>,
      show<Added>,
      W["failure"],
      F,
      W["sees"] & W["changes"],
      Context
    > &
      Fragment<NI, Needs, Added, E2, R2, F, Context>,
  ): Flow<I, Outer, Own | Added, S, E | E2, R | R2, W, Names | Added["name"]>

  /** Says what the workflow gives to who waits for it. Without it, that is nothing. */
  output<Out extends AnySchema, const A extends givenOf<Out>>(
    schema: checkJson<"output of the workflow", Out> & checkEnds<E, Out> & Out,
    select: (context: StepContext<I, Outer | Own, S> & W["sees"]) => A,
  ): Closed<typeOf<Out>, failures<E>, R, W["given"]>

  /** Checks the whole and lowers it to a plan. It never throws: what is wrong stands in `diagnostics`. */
  compile(this: checkVoidEnds<E>): Workflow<W["given"], void, failures<E>, R>

  readonly _flow: true
  readonly _Own: Own
  readonly _E: E
  readonly _R: R
}

/**
 * A scope that ended with `.fail` or `.end`: it takes no more steps. `Message` says so where one is added.
 *
 * @category models
 * @since 0.1.0
 */
export interface Ended<Message extends string, Own extends AnyResult, E, R, W extends AnyWhole> {
  /** Checks the whole and lowers it to a plan. It never throws: what is wrong stands in `diagnostics`. */
  compile(this: checkVoidEnds<E>): Workflow<W["given"], void, failures<E>, R>

  readonly _flow: true
  readonly _ended: true
  readonly _message?: Message
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
 * A piece of a workflow, written in a file of its own and added with `.use`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Fragment<NI, Needs extends AnyResult, Added extends AnyResult, E, R, F = never, Context = {}> {
  readonly kind: "fragment"
  readonly _: (input: NI, needs: Needs, failure: F, context: Context) => [Added, E, R]
}
