/**
 * The rules of what steers a run, at type level: as in `checks.ts`, `unknown` where all is well and a message where not.
 */
import type { isJson } from "../../dsl/internal/jsonSide.js"
import type { AnySchema, givenOf, typeOf } from "../../model/Codec.js"
import type {
  caseMissing,
  caseNotLiteral,
  caseUnknown,
  endDiffers,
  endWithoutOutput,
  itemsNotJson,
  noFailureDeclared,
} from "../../model/DiagnosticCode.js"
import type { EarlyEnd } from "../Control.js"

/**
 * `On`: the cases that may be chosen. `Given`: the cases that are there. TypeScript asks a first time before it has looked
 * at functions whose parameters have no types: `On` is `never` then, or `Given` any string, and nothing must be refused.
 *
 * A message stands at the name of its case: a case may be called like a method of strings, which a text alone has.
 */
export type checkCases<Name extends string, On extends string, Given extends PropertyKey> = [On] extends [never]
  ? unknown
  : string extends Given | On
    ? unknown
    : [Exclude<On, Given>] extends [never]
      ? { readonly [C in Exclude<Given, On> & string]: caseUnknown<Name, C> }
      : { readonly [C in Exclude<On, Given>]: caseMissing<Name, C> }

/** The cases are known while the program is written. */
export type checkChoice<Name extends string, On extends string> = [On] extends [never]
  ? unknown
  : string extends On
    ? caseNotLiteral<Name>
    : unknown

/** Items are stored: as they are, if they are JSON, or by a schema. */
export type checkItems<Name extends string, T, Item extends AnySchema> = [typeOf<Item>] extends [never]
  ? isJson<T> extends true
    ? unknown
    : itemsNotJson<Name>
  : [T] extends [givenOf<Item>]
    ? unknown
    : (context: any) => ReadonlyArray<givenOf<Item>>

/** `F`: the declared failures of the workflow. */
export type failureFunction<Name extends string, Ctx, F> = [F] extends [never]
  ? noFailureDeclared<Name>
  : (context: Ctx) => F

/** The names of early ends that give something else than the workflow's output. */
type unfit<E, Given> = E extends EarlyEnd<infer Name, infer A> ? ([A] extends [Given] ? never : Name) : never

export type checkEnds<E, Out extends AnySchema> = [unfit<E, givenOf<Out>>] extends [never]
  ? unknown
  : endDiffers<unfit<E, givenOf<Out>>>

/** Without an output a workflow gives nothing, and so does an early end. */
export type checkVoidEnds<E> = [unfit<E, void>] extends [never] ? unknown : endWithoutOutput<unfit<E, void>>
