/** Whether what a schema writes to the store is JSON, at type level. */
import type { AnySchema, storedOf } from "../../model/Codec.js"
import type { notJson } from "../../model/DiagnosticCode.js"

/** What JSON carries as it is, `undefined` as an absent key. */
type scalar = string | number | boolean | null | undefined | void

// `any` would pass every comparison, so it is refused by name.
type jsonOf<T> = 0 extends 1 & T
  ? never
  : T extends scalar
    ? T
    : T extends bigint | symbol | Date | ((...args: any) => any) | Map<any, any> | Set<any> | ArrayBufferView
      ? never
      : { readonly [K in keyof T]: jsonOf<T[K]> }

export type isJson<T> = unknown extends T ? false : [T] extends [scalar] ? true : [T] extends [jsonOf<T>] ? true : false

/** `unknown` where the schema can be stored, the message of CRN105 where it can't. */
export type checkJson<Place extends string, S extends AnySchema> =
  isJson<storedOf<S>> extends true ? unknown : notJson<Place>
