/**
 * The rules of the DSL at type level. Each check is `unknown` where all is well, so that an intersection with it changes
 * nothing, and a message otherwise, so that the wrong value is refused with that text. Messages live in
 * `model/DiagnosticCode.ts`, where `compile()` finds the same words.
 *
 * These types are evaluated for every step of every workflow: keep them free of recursion over results, and run
 * the type-cost test after a change.
 */
import type * as Effect from "effect/Effect"
import type * as EffectScope from "effect/Scope"
import type { YieldWrap } from "effect/Utils"
import type {
  choiceOfOperations,
  effectsNotLiteral,
  fragmentNameTaken,
  fragmentNeedsFailure,
  fragmentNeedsInput,
  fragmentNeedsResults,
  fragmentNeedsWindow,
  manyEffects,
  nameNotLiteral,
  nameTaken,
  readsAndPerforms,
  severalPerformed,
  undeclaredData,
  undeclaredOperation,
  undeclaredService,
  untypedRequirements,
} from "../../model/DiagnosticCode.js"
import type { AnyDataVersion, DataVersion, ReadsData } from "../../dsl/DataVersion.js"
import type { AnyEffect, Local, Read, StepSqlClient, Transaction } from "../../dsl/Effects.js"
import type { StoreWithTransactions } from "../../model/StoreWithTransactions.js"
import type { AnyOperation, Performs } from "../../dsl/Operation.js"

// ---- effects ---------------------------------------------------------------------------------------------------

/** What counts as a step's one external effect. */
type Exclusive = AnyOperation | Transaction

export type isUnion<T, U = T> = [T] extends [never]
  ? false
  : T extends unknown
    ? [U] extends [T]
      ? false
      : true
    : never

/** Names of the exclusive effects, in order, one an element. */
type exclusiveNames<Fx extends ReadonlyArray<AnyEffect>, Out extends ReadonlyArray<string> = []> = Fx extends readonly [
  infer Head,
  ...infer Tail extends ReadonlyArray<AnyEffect>,
]
  ? exclusiveNames<Tail, [Head] extends [Exclusive] ? [...Out, Head["name"]] : Out>
  : Out

type join<Names extends ReadonlyArray<string>> = Names extends readonly [infer Head extends string]
  ? Head
  : Names extends readonly [infer Head extends string, ...infer Tail extends ReadonlyArray<string>]
    ? `${Head} + ${join<Tail>}`
    : ""

/** Data with a version that may not be read beside what a step does: in the transaction it is, where it stands in the store. */
type notBeside<F> = [Extract<F, Transaction>] extends [never]
  ? AnyDataVersion
  : DataVersion<any, any, any, any, any, "outside">

export type checkEffects<Step extends string, Fx extends ReadonlyArray<AnyEffect>> = number extends Fx["length"]
  ? readonly [effectsNotLiteral<Step>]
  : exclusiveNames<Fx>["length"] extends 0
    ? unknown
    : exclusiveNames<Fx>["length"] extends 1
      ? isUnion<Extract<Fx[number], Exclusive>> extends true
        ? choiceOfOperations<Step>
        : [Extract<Fx[number], Read<any> | notBeside<Fx[number]>>] extends [never]
          ? unknown
          : readsAndPerforms<Step, join<exclusiveNames<Fx>>>
      : manyEffects<Step, exclusiveNames<Fx>["length"] & number, join<exclusiveNames<Fx>>>

export type needsOf<Op> = Op extends { readonly perform: (payload: any) => Effect.Effect<any, any, infer R> }
  ? R
  : never

/** The requirements that an effects list accounts for. */
export type declared<F> = F extends AnyOperation
  ? needsOf<F>
  : F extends Read<infer Id>
    ? Id
    : F extends Local<infer Id>
      ? Id
      : F extends Transaction
        ? StoreWithTransactions
        : F extends DataVersion<any, any, any, any, infer R, any>
          ? R
          : never

/** What a step is given that no worker has to provide: the client of its transaction, and what notes the data that it reads. */
export type given<F> = F extends Transaction
  ? StepSqlClient
  : F extends DataVersion<infer Name, any, any, any, any, any>
    ? ReadsData<Name>
    : never

type operationName<R> = R extends Performs<infer Name> ? Name : never

type dataName<R> = R extends ReadsData<infer Name> ? Name : never

type undeclared<Fx extends ReadonlyArray<AnyEffect>, R> = Exclude<
  R,
  declared<Fx[number]> | given<Fx[number]> | EffectScope.Scope
>

export type checkRun<Step extends string, Fx extends ReadonlyArray<AnyEffect>, R> = 0 extends 1 & R
  ? untypedRequirements<Step>
  : [undeclared<Fx, R>] extends [never]
    ? unknown
    : isUnion<operationName<R>> extends true
      ? severalPerformed<Step>
      : [operationName<undeclared<Fx, R>>] extends [never]
        ? [dataName<undeclared<Fx, R>>] extends [never]
          ? { readonly error: undeclaredService<Step>; readonly service: undeclared<Fx, R> }
          : undeclaredData<Step, dataName<undeclared<Fx, R>>>
        : undeclaredOperation<Step, operationName<undeclared<Fx, R>>>

// ---- names -----------------------------------------------------------------------------------------------------

export type freshName<Name extends string, Taken> = string extends Name
  ? nameNotLiteral
  : Name extends Taken
    ? nameTaken<Name>
    : Name

// ---- fragments -------------------------------------------------------------------------------------------------

/**
 * `Has`: what the flow has so far. `Needs`: what the fragment asks for. `Added`: what it adds. `Declared`: the failures
 * that the workflow declares. `F`: those that the fragment may fail with. `Window`: what the workflow's window gives to
 * functions. `Asked`: what the fragment takes from there.
 */
export type checkFragment<I, NI, Has, Needs, Added, Declared, F, Window, Asked> = [I] extends [NI]
  ? [Has] extends [Needs]
    ? [keyof Added & keyof Has] extends [never]
      ? [F] extends [Declared]
        ? [Window] extends [Asked]
          ? unknown
          : fragmentNeedsWindow
        : fragmentNeedsFailure
      : fragmentNameTaken<keyof Added & keyof Has & string>
    : fragmentNeedsResults<missingKeys<Has, Needs> & string>
  : fragmentNeedsInput

/** Keys that are absent, or present with another type. */
type missingKeys<Has, Needs> = {
  [K in keyof Needs]: K extends keyof Has ? ([Has[K]] extends [Needs[K]] ? never : K) : K
}[keyof Needs]

// ---- generator functions ---------------------------------------------------------------------------------------

/** What a generator function may yield. */
export type AnyYield = YieldWrap<Effect.Effect<any, any, any>>

/**
 * The requirements of everything that a generator function yields. They are read from the yield type as a whole:
 * inferring them in the signature would take those of one `yield*` and refuse the others.
 */
export type yieldedNeeds<Y> = [Y] extends [never]
  ? never
  : [Y] extends [YieldWrap<Effect.Effect<any, any, infer R>>]
    ? R
    : never
