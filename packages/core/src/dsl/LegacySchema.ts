/**
 * Schemas of the old package `@effect/schema`. They have another type id, so no function of `effect/Schema` takes them;
 * what they can do is decode and encode, and that is enough.
 */
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"

/**
 * A schema of the old package, as far as Cairn looks at it.
 *
 * @category models
 * @since 0.1.0
 */
export interface LegacySchema<A, I> {
  readonly Type: A
  readonly Encoded: I
}

/**
 * The old package's own functions: pass its module, `import * as Legacy from "@effect/schema/Schema"`.
 *
 * @category models
 * @since 0.1.0
 */
export interface LegacyFunctions {
  readonly decodeUnknownEither: (schema: any) => (given: unknown) => Either.Either<any, LegacyError>
  readonly encodeUnknownEither: (schema: any) => (given: unknown) => Either.Either<any, LegacyError>
}

interface LegacyError {
  readonly issue: unknown
}

type Json = string | number | boolean | null | ReadonlyArray<Json> | { readonly [key: string]: Json }

/** The old schema cannot be asked for the shape of its encoded side; that it is JSON is checked value by value. */
const Json: Schema.Schema<Json> = Schema.Union(
  Schema.String,
  Schema.Number,
  Schema.Boolean,
  Schema.Null,
  Schema.Array(Schema.suspend(() => Json)),
  Schema.Record({ key: Schema.String, value: Schema.suspend(() => Json) }),
).annotations({ identifier: "Json", jsonSchema: {} })

/** A key whose value is undefined is an absent key in JSON; the old schema reads both alike. */
const withoutUndefined = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withoutUndefined)
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, member]) => member !== undefined)
      .map(([key, member]) => [key, withoutUndefined(member)]),
  )
}

// Both packages write their issues as the same tree of tags and paths, so that the new formatter reads the old one.
const issueOf = (error: LegacyError): ParseResult.ParseIssue => error.issue as ParseResult.ParseIssue

/**
 * Turns a schema of the old package `@effect/schema` into an `effect/Schema` with both directions.
 *
 * *Errors.* What the old schema refuses is refused with the same message and field.
 *
 * @example
 * ```ts
 * import * as Legacy from "@effect/schema/Schema"
 * import { fromLegacySchema } from "@cairn/core"
 * import { Schema } from "effect"
 *
 * const Invoice = fromLegacySchema(Legacy.Struct({ due: Legacy.Date }), Legacy)
 * Schema.encodeSync(Invoice)({ due: new Date(0) })
 * // => { due: "1970-01-01T00:00:00.000Z" }
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromLegacySchema = <A, I>(
  schema: LegacySchema<A, I>,
  { decodeUnknownEither, encodeUnknownEither }: LegacyFunctions,
): Schema.Schema<A, I> => {
  const decode = decodeUnknownEither(schema)
  const encode = encodeUnknownEither(schema)
  return Schema.transformOrFail(Schema.UndefinedOr(Json), Schema.Any, {
    strict: false,
    decode: (encoded) => Either.mapLeft(decode(encoded), issueOf),
    encode: (value) => Either.map(Either.mapLeft(encode(value), issueOf), withoutUndefined),
  }) as Schema.Schema<any> as Schema.Schema<A, I>
}
