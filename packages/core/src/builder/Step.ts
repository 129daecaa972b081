/** The arguments of `.step` and `.perform`. */
import type * as Effect from "effect/Effect"
import type { AnyDataVersion, DataVersion } from "../dsl/DataVersion.js"
import type { AnyEffect, Transaction } from "../dsl/Effects.js"
import type { LiveValue } from "../dsl/Live.js"
import type { AnyOperation, External } from "../dsl/Operation.js"
import type { PaidPromise } from "../dsl/Usage.js"
import type { RejectedOutput, RetryOptions, StepOptions } from "../dsl/StepOptions.js"
import type { optionalNotMarked, undeclaredData, undeclaredOperation } from "../model/DiagnosticCode.js"

/**
 * What a step's function may return: an Effect, a promise, a generator function's generator, or the value itself.
 *
 * @category models
 * @since 0.1.0
 */
export type Returned<A, E, R, Y = never> = Effect.Effect<A, E, R> | Promise<A> | Generator<Y, A, any> | A

export interface RunFunction<Ctx, A, E, R, Y> {
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

/** `read` in promise style, where the step declares data with a version. */
type DataContext<Name extends string, Fx extends ReadonlyArray<AnyEffect>> = [
  Extract<Fx[number], AnyDataVersion>,
] extends [never]
  ? {}
  : {
      /** Promise style. The Effect style is `Data.read(key)`. */
      readonly read: <N extends string, Key, A>(
        data: N extends Extract<Fx[number], AnyDataVersion>["name"]
          ? DataVersion<N, Key, A, any, any, "store" | "outside">
          : undeclaredData<Name, N>,
        key: NoInfer<Key>,
      ) => Promise<A>
    }

export interface SignalContext {
  /** Aborted when the step is interrupted: its timeout passed, its lease was lost, or the worker stops. */
  readonly signal: AbortSignal
  /** What the last attempt gave, where the output's schema has refused it: for the prompt of the next one. */
  readonly rejected: RejectedOutput | null
  /** Shows what the step has so far to those who look on (`live` of the run). It is kept nowhere. In Effect: `Live.emit`. */
  readonly emit: (chunk: LiveValue) => void
  /** Promise style: makes a call that costs money, and records what it has used. The Effect style is `Usage.call`. */
  readonly paid: PaidPromise
}

/** The window, where the step performs nothing: after a crash it would be looked at again, and may be another by then. */
type seenBeside<Fx extends ReadonlyArray<AnyEffect>, Sees> = [operationsOf<Fx>] extends [never] ? Sees : {}

/**
 * What `run` is given beside input and results; `Sees` is what the workflow's window gives. Most steps declare nothing, and
 * share one type.
 */
export type RunContext<Name extends string, Fx extends ReadonlyArray<AnyEffect>, Sees> = Fx extends readonly []
  ? SignalContext & Sees
  : PerformContext<Name, Fx> & TransactionContext<Fx> & DataContext<Name, Fx> & SignalContext & seenBeside<Fx, Sees>

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
