/** The arguments of the methods that steer a run, what their scopes add, and what they leave for later steps. */
import type * as Duration from "effect/Duration"
import type { checkJson } from "../dsl/internal/jsonSide.js"
import type { AnySchema, givenOf, typeOf } from "../model/Codec.js"
import type { ErrorDetails } from "../model/Errors.js"
import type { checkItems } from "./internal/controlChecks.js"
import type { AnyResult, Outcome } from "./Results.js"

/**
 * Any flow, as the result of a function that builds a body. Bare on purpose: with `_E: any` here, TypeScript would infer
 * `any` from the contextual return type for steps that have no error.
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

/** Functions that build bodies, by case or arm. */
export interface Builds<F> {
  readonly [name: string]: (flow: F) => AnyFlow
}

type AnyBuilds = { readonly [K in string]?: (flow: any) => AnyFlow }
type builtBy<Bs> = Bs[keyof Bs] extends (flow: any) => infer B ? B : never
export type errorsOf<Bs extends AnyBuilds> = errorOf<builtBy<Bs>>
export type needsOf<Bs extends AnyBuilds> = needOf<builtBy<Bs>>

// ---- branch, match, parallel -----------------------------------------------------------------------------------

// Results are spelled out here instead of by `show`: an editor then shows the object and not that name. And what bodies add
// is taken out of their functions at once: those hold everything around them, and would stand in every declaration file.

/**
 * What one body adds.
 *
 * @category models
 * @since 0.1.0
 */
export interface Adds<Rs extends AnyResult> {
  readonly adds: Rs
}

/** A body that ends the run leaves nothing for later steps. */
type addedIn<B> = B extends { readonly _ended: true }
  ? never
  : B extends { readonly _Own: infer X extends AnyResult }
    ? Adds<X>
    : never
export type addedBy<Build> = Build extends (flow: any) => infer B ? addedIn<B> : never

type wayOf<C, A> =
  A extends Adds<infer X>
    ? { readonly case: C; readonly results: { readonly [R in X as R["name"]]: R["type"] } }
    : never

/**
 * What a branch leaves: which case was taken, and the results of that case. A case that ends the run is no member.
 *
 * @category models
 * @since 0.1.0
 */
export interface BranchResult<Name extends string, Cases> {
  readonly name: Name
  readonly type: { [C in keyof Cases]: wayOf<C, Cases[C]> }[keyof Cases]
}

/**
 * What a parallel leaves: the results of each arm under its name.
 *
 * @category models
 * @since 0.1.0
 */
export interface ParallelResult<Name extends string, Arms> {
  readonly name: Name
  readonly type: {
    readonly [A in keyof Arms]: Arms[A] extends Adds<infer X> ? { readonly [R in X as R["name"]]: R["type"] } : never
  }
}

/** What may tell the members of a union apart. */
export type TagValue = string | number | boolean

/** The names of the cases of a tagged union. */
export type caseNames<V, Tag extends string> =
  V extends Readonly<Record<Tag, infer T extends TagValue>> ? `${T}` : never

/** The members of a tagged union that a case stands for. */
type memberOf<V, Tag extends string, C> =
  V extends Readonly<Record<Tag, infer T extends TagValue>> ? (C extends `${T}` ? V : never) : never

/** A match inside a match shadows the outer `value`; everything else of the scope stays. */
export type valueScope<S, V, Tag extends string, C> = {
  readonly [K in keyof S | "value"]: K extends "value" ? memberOf<V, Tag, C> : S[K & keyof S]
}

// ---- loop ------------------------------------------------------------------------------------------------------

/**
 * What a loop adds to the context of its body.
 *
 * @category models
 * @since 0.1.0
 */
export interface TurnScope<State, S> {
  readonly state: State
  /** From 0. */
  readonly turn: number
  /** What the scope around the loop adds. */
  readonly outer: S
}

/**
 * Options of `.loop`.
 *
 * *Shape.* `maxIterations` is a whole number from 1. `onLimit`: what happens when a turn of that number is not the last
 * one: the run fails (the default), or goes on with the state reached.
 *
 * @category options
 * @since 0.1.0
 */
export interface LoopSpec<Name extends string, Ctx, St extends AnySchema, First extends givenOf<St>> {
  /** What a turn hands to the next: it is stored after each. */
  readonly state: checkJson<`state of loop '${Name}'`, St> & St
  readonly initial: (context: Ctx) => First
  readonly maxIterations: number
  readonly onLimit?: "fail" | "stop"
}

/**
 * What `next` of a loop says after each turn. With `done`, `state` is the loop's result.
 *
 * @category models
 * @since 0.1.0
 */
export interface Turned<State> {
  readonly done: boolean
  readonly state: State
}

// ---- forEach ---------------------------------------------------------------------------------------------------

/** The item as the body sees it: what `items` gives, or, with a schema, that schema's type. */
export type itemOf<T, Item extends AnySchema> = [typeOf<Item>] extends [never] ? T : typeOf<Item>

/**
 * What a list adds to the context of its body.
 *
 * @category models
 * @since 0.1.0
 */
export interface ItemScope<T, S> {
  readonly item: T
  readonly key: string
  /** What the scope around the list adds. */
  readonly outer: S
}

/**
 * Options of `.forEach`.
 *
 * *Shape.* `items` is asked once, and what it gives is stored. `key` names an item, unique in the list: its results are
 * found under it, whatever the order. Write `items` first: `key` gets its type from there. `concurrency`: how many items are under way at once, 1 to 10,000; 10 by default.
 * `onFailure`: `"stop"` (the default) fails the run with the first item that fails; `"collect"` goes on and keeps the
 * failure as that item's result.
 *
 * @category options
 * @since 0.1.0
 */
export interface ForEachSpec<
  Name extends string,
  Ctx,
  T,
  Item extends AnySchema,
  OnFailure extends "stop" | "collect",
> {
  readonly items: checkItems<Name, T, Item> & ((context: Ctx) => ReadonlyArray<T>)
  readonly key: (item: NoInfer<T>) => string
  readonly concurrency?: number
  readonly onFailure?: OnFailure
  /** For items that are no JSON as they are: how one is stored. */
  readonly item?: checkJson<`item of forEach '${Name}'`, Item> & Item
}

/**
 * Why an item failed, with `onFailure: "collect"`.
 *
 * *Shape.* `step` is the path of the step that failed. `failure` is what the operation or the workflow declares, null where
 * it is nothing declared; `details` is the error as it was stored then.
 *
 * @category models
 * @since 0.1.0
 */
export interface ItemError<E = never> {
  readonly step: string
  readonly problem: string
  readonly failure: E | null
  readonly details: ErrorDetails | null
}

/**
 * One item of a `.forEach` that has come to its end: its results, or why it failed.
 *
 * @category models
 * @since 0.1.0
 */
export type Item<Results, Error = never> =
  | { readonly key: string; readonly ok: true; readonly results: Results }
  | ([Error] extends [never] ? never : { readonly key: string; readonly ok: false; readonly error: Error })

/**
 * What a `.forEach` leaves for later steps: counts, and a reader of the items that never holds more than a page of them.
 *
 * *Shape.* Items come in the order in which they came to their end. Read them in the `run` of a step, with `for await` or
 * `Stream.fromAsyncIterable`; each reading begins anew. In functions that cannot wait (`payload`, `on`, `show`, the
 * workflow's output) only the counts are of use. `Error` is `never` unless failures are collected.
 *
 * *Laws.* X7: what it costs to resume a run does not grow with its finished items.
 *
 * @category models
 * @since 0.1.0
 */
export interface Items<Results, Error = never> extends AsyncIterable<Item<Results, Error>> {
  readonly total: number
  readonly succeeded: number
  readonly failed: number
}

/**
 * What a list leaves: its items, each with what the body adds.
 *
 * @category models
 * @since 0.1.0
 */
export interface ItemsResult<Name extends string, Rs extends AnyResult, Error> {
  readonly name: Name
  readonly type: Items<{ readonly [R in Rs as R["name"]]: R["type"] }, Error>
}

/** `F`: what the workflow declares to fail with. */
export type itemError<Body, OnFailure extends "stop" | "collect", F> = OnFailure extends "collect"
  ? ItemError<failures<errorOf<Body>> | F>
  : never

// ---- signal, review --------------------------------------------------------------------------------------------

/**
 * Options of `.signal`.
 *
 * *Shape.* `signal`: the name under which it is sent; that of the step unless given. `timeout` and `onTimeout` come
 * together: when it passes, the run fails, or goes on with `{ ok: false, error: "timeout" }`.
 *
 * @category options
 * @since 0.1.0
 */
export type SignalSpec<Name extends string, P extends AnySchema, OnTimeout extends "fail" | "continue"> = {
  readonly schema: checkJson<`payload of signal '${Name}'`, P> & P
  readonly signal?: string
} & (
  | { readonly timeout: Duration.DurationInput; readonly onTimeout: OnTimeout }
  | { readonly timeout?: never; readonly onTimeout?: never }
)

/**
 * What a signal leaves: its payload, or an outcome where the run goes on without it.
 *
 * @category models
 * @since 0.1.0
 */
export interface SignalResult<Name extends string, P extends AnySchema, OnTimeout extends "fail" | "continue"> {
  readonly name: Name
  readonly type: [OnTimeout] extends ["continue"] ? Outcome<typeOf<P>, "timeout"> : typeOf<P>
}

/**
 * Options of `.review`.
 *
 * *Shape.* `decision` is the schema of what an approval brings, `show` what the reviewer sees (it is stored). `deadline`
 * counts from when the review is asked for. `escalate`: whom to ask after which time, ascending. `validFor`: how long an
 * approval may still be acted on. `onReject` and `onTimeout` have no default: a forgotten one charges the card.
 *
 * @category options
 * @since 0.1.0
 */
export interface ReviewSpec<
  Name extends string,
  Ctx,
  D extends AnySchema,
  OnReject extends "fail" | "continue",
  OnTimeout extends "fail" | "reject",
> {
  readonly decision: checkJson<`decision of review '${Name}'`, D> & D
  readonly show: (context: Ctx) => unknown
  readonly deadline: Duration.DurationInput
  readonly onReject: OnReject
  readonly onTimeout: OnTimeout
  readonly who?: string
  readonly escalate?: ReadonlyArray<{ readonly after: Duration.DurationInput; readonly who: string }>
  readonly validFor?: Duration.DurationInput
}

/**
 * A review that was approved, by whom and when.
 *
 * @category models
 * @since 0.1.0
 */
export interface Approved<D> {
  readonly outcome: "approved"
  readonly decision: D
  readonly by: string
  readonly at: Date
}

/**
 * A review that was rejected, by whom and when.
 *
 * @category models
 * @since 0.1.0
 */
export interface Rejected {
  readonly outcome: "rejected"
  readonly reason: string | null
  readonly by: string
  readonly at: Date
}

/**
 * A review that nobody answered in time.
 *
 * @category models
 * @since 0.1.0
 */
export interface Expired {
  readonly outcome: "expired"
  readonly at: Date
}

/**
 * What a review leaves: only what its options let a run go on with.
 *
 * @category models
 * @since 0.1.0
 */
export interface ReviewResult<
  Name extends string,
  D extends AnySchema,
  OnReject extends "fail" | "continue",
  OnTimeout extends "fail" | "reject",
> {
  readonly name: Name
  readonly type:
    | Approved<typeOf<D>>
    | ("continue" extends OnReject ? Rejected | ("reject" extends OnTimeout ? Expired : never) : never)
}

// ---- child -----------------------------------------------------------------------------------------------------

/**
 * Options of `.child`.
 *
 * *Shape.* With `settle`, the result is an outcome: whatever the child's end, the run goes on.
 *
 * @category options
 * @since 0.1.0
 */
export interface ChildSpec<Ctx, Given, Settle extends boolean> {
  readonly input: (context: Ctx) => Given
  readonly settle?: Settle
}

// ---- end -------------------------------------------------------------------------------------------------------

/** Every value; as a constraint it keeps literals, which `unknown` would widen. */
export type anyValue = string | number | bigint | boolean | symbol | object | null | undefined | void

/**
 * Stands among the failures until `.output` has seen that the early result is of the workflow's type.
 *
 * @category models
 * @since 0.1.0
 */
export interface EarlyEnd<Name extends string, A> {
  readonly _earlyEnd: Name
  readonly _A: A
}

/** The failures of a workflow, without its early ends. */
export type failures<E> = Exclude<E, EarlyEnd<any, any>>

/** What is left of the failures where those of an item become its result. */
export type collected<E, OnFailure extends "stop" | "collect"> = OnFailure extends "collect"
  ? Extract<E, EarlyEnd<any, any>>
  : E
