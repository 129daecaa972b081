/** What the functions of a workflow see: its input, the results so far, and what the scope adds. */
import type { AnySchema, typeOf } from "../model/Codec.js"

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

/**
 * The result of what has a schema, which is looked into only where the result is.
 *
 * @category models
 * @since 0.1.0
 */
export interface SchemaResult<Name extends PropertyKey, S extends AnySchema> {
  readonly name: Name
  readonly type: typeOf<S>
}

export interface AnyResult {
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

/**
 * The part of a context that every scope has.
 *
 * @category models
 * @since 0.1.0
 */
export interface StepInput<I, Rs extends AnyResult> {
  readonly input: I
  readonly results: { readonly [R in Rs as R["name"]]: R["type"] }
}

/**
 * An output that may be a failure: its success, or its failure as a value to branch on.
 *
 * @category models
 * @since 0.1.0
 */
export type Outcome<A, E> = { readonly ok: true; readonly value: A } | { readonly ok: false; readonly error: E }
