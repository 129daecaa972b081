/**
 * How a schema's values become JSON text and come back: the one place between typed values and encoded records.
 *
 * - An `effect/Schema` is trusted with both directions; the value handed on is decode(encode(value)), on the first run
 *   as on a resume (law X3).
 * - A Standard Schema (Zod, Valibot, ArkType) cannot encode: it validates once, its output must be JSON already, and a
 *   resume parses that output without validating it again.
 */
import type { StandardSchemaV1 } from "@standard-schema/spec"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as JSONSchema from "effect/JSONSchema"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import { InvalidValue } from "./Errors.js"
import { encodedProblem } from "./internal/encodedSide.js"
import { standardJsonSchema } from "./internal/standardJsonSchema.js"
import { thrownText } from "./internal/thrownText.js"
import { tooLarge } from "./internal/tooLarge.js"
import { guarded, parse } from "./internal/guarded.js"
import { findLoss, lookAt, renderField, toJsonText, type JsonProblem, type Look } from "./internal/json.js"
import { isMarked } from "./internal/untrusted.js"

/**
 * What Cairn takes wherever it asks for a schema.
 *
 * @category schemas
 * @since 0.1.0
 */
export type AnySchema = Schema.Schema<any, any, never> | StandardSchemaV1<any, any>

/** Stands for a schema that was not given: it has no values. */
export type NoSchema = StandardSchemaV1<never, never>

/** The sides of an Effect schema, read from its properties: far cheaper to check than to infer through `Schema<A, I, R>`. */
interface Sides<A, I> {
  readonly Type: A
  readonly Encoded: I
}

/** What later steps see. */
export type typeOf<S> = S extends Sides<infer A, any> ? A : S extends StandardSchemaV1<any, infer A> ? A : never

/** Every value. As a constraint it says that strings and numbers are among what is expected; `unknown` would not. */
type anyValue = string | number | bigint | boolean | symbol | object | null | undefined | void

/**
 * What is handed to the gate: the type side of an Effect schema, the input side of a Standard Schema.
 *
 * Not distributive, and with a constraint that names the primitives, so that `() => "paid"` keeps its literal type where
 * the schema lists literals: TypeScript widens a returned literal unless the expected type's constraint has strings in it.
 */
export type givenOf<S> = [S] extends [Sides<infer A extends anyValue, any>]
  ? A
  : [S] extends [StandardSchemaV1<infer I extends anyValue, any>]
    ? I
    : never

/** What is written to the store. */
export type storedOf<S> = S extends Sides<any, infer I> ? I : S extends StandardSchemaV1<any, infer A> ? A : never

/**
 * A value that has passed the gate.
 *
 * *Shape.* `value` is what later steps see; `text` is what is stored: JSON, or null for `undefined`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Gated<out A> {
  readonly value: A
  readonly text: string | null
}

/**
 * Options of a gate.
 *
 * @category models
 * @since 0.1.0
 */
export interface GateOptions {
  /** Reads like `output of step 'extract'`; it opens the error's message. */
  readonly place: string
  /** Longest text that may be stored, in UTF-16 units: 64 Mi unless given. */
  readonly maxLength?: number
}

/**
 * Both directions of one schema.
 *
 * @category models
 * @since 0.1.0
 */
export interface Codec<out A> {
  /** Checks a typed value and writes it. */
  readonly gate: (given: unknown, options: GateOptions) => Effect.Effect<Gated<A>, InvalidValue>
  /** The same for a value of unknown shape (a model's answer): decoded from the encoded side. */
  readonly gateUnvalidated: (raw: unknown, options: GateOptions) => Effect.Effect<Gated<A>, InvalidValue>
  /** Reads stored text. */
  readonly decode: (text: string | null, place: string) => Either.Either<A, InvalidValue>
  /** JSON Schema of the stored form; `{}` where the schema cannot say. */
  readonly jsonSchema: () => object
  /** Why the stored form can't be JSON, judged from the schema alone; null if nothing is known against it. */
  readonly problem: () => string | null
}

/** Longest JSON text of a value, in UTF-16 units, where nobody says another one: a store that takes it has to carry it as well. */
export const usualMaxLength = 64 * 1024 * 1024

const fromProblem = (place: string, problem: JsonProblem): InvalidValue => new InvalidValue({ place, ...problem })

const write = (encoded: unknown, options: GateOptions): Either.Either<string | null, InvalidValue> => {
  const written = toJsonText(encoded)
  if (!("text" in written)) return Either.left(fromProblem(options.place, written))
  const length = written.text?.length ?? 0
  const { maxLength = usualMaxLength } = options
  return length > maxLength ? Either.left(tooLarge(options.place, length, maxLength)) : Either.right(written.text)
}

const mismatch =
  (place: string) =>
  (error: ParseResult.ParseError): InvalidValue => {
    const issues = ParseResult.ArrayFormatter.formatErrorSync(error)
    // Of the members of a union, the one that came furthest is what was meant.
    const first = issues.reduce<(typeof issues)[number] | undefined>(
      (deepest, issue) => (deepest === undefined || issue.path.length > deepest.path.length ? issue : deepest),
      undefined,
    )
    const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : ""
    const problem = `${first?.message ?? error.message}${more}`
    return new InvalidValue({ place, field: renderField(first?.path ?? []), reason: "SchemaMismatch", problem })
  }

/** On every flow, so that a step which returns one (a step inside a step) is told apart from a step that returns nothing. */
export const flowMarker: unique symbol = Symbol.for("@cairn/core/Flow") as never

/**
 * `Schema.Void` takes every value. What such a step returns by the way (a provider's response, say) is not kept: later
 * steps see what the type says, and an answer that is no JSON cannot fail a step that asked for none.
 */
const keepNothing: Codec<any>["gate"] = (given, { place }) => {
  const nested = isMarked(given, flowMarker)
  const problem = "a workflow under construction was returned, and steps do not nest; add its steps with .step or .use"
  return nested
    ? Effect.fail(new InvalidValue({ place, field: "", reason: "SchemaMismatch", problem }))
    : Effect.succeed({ value: undefined, text: null })
}

const nothing: Codec<any> = {
  gate: keepNothing,
  gateUnvalidated: keepNothing,
  decode: () => Either.right(undefined),
  jsonSchema: () => JSONSchema.make(Schema.Void),
  problem: () => null,
}

const effectCodec = <A, I>(schema: Schema.Schema<A, I, never>): Codec<A> => {
  if (AST.isVoidKeyword(schema.ast)) return nothing
  const decodeUnknown = Schema.decodeUnknownEither(schema, { errors: "all" })
  const encodeUnknown = Schema.encodeUnknownEither(schema, { errors: "all" })

  // Once a step: without combinators, which make a function and a value for each case.
  const decoded = (text: string | null, place: string): Either.Either<A, InvalidValue> => {
    const raw = parse(text, place)
    if (Either.isLeft(raw)) return Either.left(raw.left)
    const value = decodeUnknown(raw.right)
    return Either.isLeft(value) ? Either.left(mismatch(place)(value.left)) : Either.right(value.right)
  }

  const decode: Codec<A>["decode"] = (text, place) => guarded(place, () => decoded(text, place))

  const gate = (given: unknown, options: GateOptions): Either.Either<Gated<A>, InvalidValue> =>
    guarded(options.place, () => {
      const { foreign, problem } = lookAt(given)
      if (problem !== null) return Either.left(fromProblem(options.place, problem))
      const encoded = encodeUnknown(given)
      if (Either.isLeft(encoded)) return Either.left(mismatch(options.place)(encoded.left))
      const loss = foreign.length === 0 ? null : findLoss(foreign, encoded.right)
      if (loss !== null) return Either.left(fromProblem(options.place, loss))
      const text = write(encoded.right, options)
      if (Either.isLeft(text)) return Either.left(text.left)
      const value = decoded(text.right, options.place)
      return Either.isLeft(value) ? Either.left(value.left) : Either.right({ value: value.right, text: text.right })
    })

  return {
    gate,
    gateUnvalidated: (raw, options) =>
      Either.flatMap(
        guarded(options.place, () => {
          const { foreign, problem } = lookAt(raw)
          if (problem !== null) return Either.left(fromProblem(options.place, problem))
          const value = decodeUnknown(raw)
          if (Either.isLeft(value)) return Either.left(mismatch(options.place)(value.left))
          const loss = findLoss(foreign, value.right)
          return loss === null ? Either.right(value.right) : Either.left(fromProblem(options.place, loss))
        }),
        (value) => gate(value, options),
      ),
    decode,
    jsonSchema: () => {
      try {
        return JSONSchema.make(Schema.encodedSchema(schema))
      } catch {
        // Some encoded sides have no JSON Schema (a template literal with odd parts, say): the plan then says nothing.
        return {}
      }
    },
    problem: () => encodedProblem(schema.ast),
  }
}

const issueOf = (place: string, issues: ReadonlyArray<StandardSchemaV1.Issue>): InvalidValue => {
  const first = issues[0]
  const path = (first?.path ?? []).map((segment) => (typeof segment === "object" ? segment.key : segment))
  const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : ""
  const problem = `${first?.message ?? "refused"}${more}`
  return new InvalidValue({ place, field: renderField(path), reason: "SchemaMismatch", problem })
}

/** By its method, not its class: a promise of another realm is one as well. */
const isPromise = <A>(value: A | PromiseLike<A>): value is PromiseLike<A> =>
  typeof (value as { then?: unknown } | null | undefined)?.then === "function"

const standardCodec = <A>(schema: StandardSchemaV1<unknown, A>): Codec<A> => {
  const standard = schema["~standard"]

  const decode: Codec<A>["decode"] = (text, place) => parse(text, place) as Either.Either<A, InvalidValue>

  const finish = (
    result: StandardSchemaV1.Result<A>,
    { foreign }: Look,
    options: GateOptions,
  ): Either.Either<Gated<A>, InvalidValue> => {
    if (result.issues !== undefined) return Either.left(issueOf(options.place, result.issues))
    const loss = findLoss(foreign, result.value)
    if (loss !== null) return Either.left(fromProblem(options.place, loss))
    return write(result.value, options).pipe(
      Either.flatMap((text) => Either.map(decode(text, options.place), (value) => ({ value, text }))),
    )
  }

  const gate: Codec<A>["gate"] = (given, options) => {
    const look = lookAt(given)
    const started = guarded<StandardSchemaV1.Result<A> | PromiseLike<StandardSchemaV1.Result<A>>>(options.place, () =>
      look.problem !== null
        ? Either.left(fromProblem(options.place, look.problem))
        : Either.right(standard.validate(given)),
    )
    return Either.flatMap(started, (result) =>
      isPromise(result)
        ? (Effect.tryPromise(() => Promise.resolve(result)).pipe(
            Effect.mapError((error) => {
              const problem = `its schema's promise was rejected: ${thrownText(error.error)}`
              return new InvalidValue({ place: options.place, field: "", reason: "SchemaMismatch", problem })
            }),
            Effect.flatMap((settled) => guarded(options.place, () => finish(settled, look, options))),
          ) as never)
        : guarded(options.place, () => finish(result, look, options)),
    )
  }

  return {
    gate,
    gateUnvalidated: gate,
    decode,
    jsonSchema: () => standardJsonSchema(standard).schema,
    problem: () => standardJsonSchema(standard).problem,
  }
}

/**
 * Whether a value is a schema that Cairn can use.
 *
 * @category guards
 * @since 0.1.0
 */
export const isSchema = (value: unknown): value is AnySchema =>
  Schema.isSchema(value) ||
  ((typeof value === "object" || typeof value === "function") &&
    value !== null &&
    typeof (value as { "~standard"?: { validate?: unknown } })["~standard"]?.validate === "function")

const codecs = new WeakMap<object, Codec<any>>()

/**
 * The codec of a schema. It is made once a schema.
 *
 * @example
 * ```ts
 * import { codecOf } from "@cairn/core"
 * import { Effect, Schema } from "effect"
 *
 * const codec = codecOf(Schema.Struct({ due: Schema.Date }))
 * const gated = Effect.runSync(codec.gate({ due: new Date(0) }, { place: "example" }))
 * gated.text
 * // => '{"due":"1970-01-01T00:00:00.000Z"}'
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const codecOf = <S extends AnySchema>(schema: S): Codec<typeOf<S>> => {
  const known = codecs.get(schema)
  if (known !== undefined) return known
  // Effect first: an Effect schema may offer the standard interface as well, and would lose its encode side there.
  const codec: Codec<any> = Schema.isSchema(schema)
    ? effectCodec(schema as Schema.Schema<any, any, never>)
    : standardCodec(schema as StandardSchemaV1<any, any>)
  codecs.set(schema, codec)
  return codec
}

export { casesCodec, firstOf, nullableCodec, outcomeCodec } from "./internal/composedCodecs.js"
