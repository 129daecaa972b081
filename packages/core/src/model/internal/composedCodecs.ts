/** Codecs made of codecs: settled outcomes, choices of operations, results that may be left out, declared failures. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { Codec } from "../Codec.js"
import { InvalidValue } from "../Errors.js"
import { guarded, parse } from "./guarded.js"
import { toJsonText } from "./json.js"

/** A part of composed text. `undefined` is an absent key, as everywhere. */
const member = (key: string, text: string | null): string => (text === null ? "" : `,${JSON.stringify(key)}:${text}`)

const memberText = (raw: unknown, key: string): string | null => {
  const value = (raw as Record<string, unknown> | null)?.[key]
  return value === undefined ? null : (toJsonText(value) as { text: string | null }).text
}

interface Variant {
  /** The value of the discriminating member, and the key and codec of what it carries. */
  readonly on: string | boolean
  readonly key: string
  readonly codec: Codec<unknown>
}

/** A union told apart by one member, each variant with the codec of its content. */
const variantsCodec = (tag: string, variants: ReadonlyArray<Variant>): Codec<any> => {
  const find = (value: unknown, place: string): Either.Either<Variant, InvalidValue> => {
    const on = (value as Record<string, unknown> | null | undefined)?.[tag]
    const found = variants.find((variant) => variant.on === on)
    return found !== undefined
      ? Either.right(found)
      : Either.left(
          new InvalidValue({
            place,
            field: `.${tag}`,
            reason: "SchemaMismatch",
            problem: `expected one of ${variants.map((v) => JSON.stringify(v.on)).join(", ")}, got ${typeof on === "string" ? JSON.stringify(on) : typeof on}`,
          }),
        )
  }
  const readVariant = (given: unknown, place: string) =>
    Either.map(find(given, place), (variant) => ({
      variant,
      content: (given as Record<string, unknown>)[variant.key],
    }))
  const through =
    (which: "gate" | "gateUnvalidated"): Codec<any>["gate"] =>
    (given, options) =>
      Effect.flatMap(
        guarded(options.place, () => readVariant(given, options.place)),
        ({ variant, content }) =>
          Effect.map(
            variant.codec[which](content, { ...options, place: `${options.place}, at .${variant.key}` }),
            ({ text, value }) => ({
              value: { [tag]: variant.on, [variant.key]: value },
              text: `{${JSON.stringify(tag)}:${JSON.stringify(variant.on)}${member(variant.key, text)}}`,
            }),
          ),
      )
  return {
    gate: through("gate"),
    gateUnvalidated: through("gateUnvalidated"),
    decode: (text, place) =>
      Either.gen(function* () {
        const raw = yield* parse(text, place)
        const variant = yield* find(raw, place)
        const value = yield* variant.codec.decode(memberText(raw, variant.key), place)
        return { [tag]: variant.on, [variant.key]: value }
      }),
    jsonSchema: () => ({
      anyOf: variants.map((variant) => ({
        type: "object",
        required: [tag],
        properties: { [tag]: { const: variant.on }, [variant.key]: variant.codec.jsonSchema() },
      })),
    }),
    problem: () => variants.map((variant) => variant.codec.problem()).find((problem) => problem !== null) ?? null,
  }
}

/** `{ ok: true, value }` or `{ ok: false, error }`: the output of a settled operation. */
export const outcomeCodec = <A, E>(success: Codec<A>, failure: Codec<E> | null): Codec<any> =>
  variantsCodec("ok", [
    { on: true, key: "value", codec: success },
    ...(failure === null ? [] : [{ on: false, key: "error", codec: failure } as const]),
  ])

/** `{ case, payload }` or `{ case, result }`: one of several operations. */
export const casesCodec = (
  key: "payload" | "result",
  cases: ReadonlyArray<readonly [string, Codec<any>]>,
): Codec<any> =>
  variantsCodec(
    "case",
    cases.map(([name, codec]) => ({ on: name, key, codec })),
  )

/** The codec of an operation that may be left out: null as well. */
export const nullableCodec = <A>(codec: Codec<A>): Codec<A | null> => ({
  ...codec,
  gate: (given, options) =>
    given === null ? Effect.succeed({ value: null, text: "null" }) : codec.gate(given, options),
  gateUnvalidated: (raw, options) =>
    raw === null ? Effect.succeed({ value: null, text: "null" }) : codec.gateUnvalidated(raw, options),
  decode: (text, place) => (text === "null" ? Either.right(null) : codec.decode(text, place)),
  jsonSchema: () => ({ anyOf: [codec.jsonSchema(), { type: "null" }] }),
})

/** The first codec that takes the value: how a failure finds the schema that declares it. */
export const firstOf = (codecs: ReadonlyArray<Codec<any>>): Codec<any> | null =>
  codecs.length === 0
    ? null
    : codecs.length === 1
      ? codecs[0]!
      : {
          gate: (given, options) => Effect.firstSuccessOf(codecs.map((codec) => codec.gate(given, options))),
          gateUnvalidated: (raw, options) =>
            Effect.firstSuccessOf(codecs.map((codec) => codec.gateUnvalidated(raw, options))),
          decode: (text, place) =>
            codecs.reduce<Either.Either<any, InvalidValue>>(
              (result, codec) => Either.orElse(result, () => codec.decode(text, place)),
              Either.left(
                new InvalidValue({ place, field: "", reason: "SchemaMismatch", problem: "no schema takes it" }),
              ),
            ),
          jsonSchema: () => ({ anyOf: codecs.map((codec) => codec.jsonSchema()) }),
          problem: () => codecs.map((codec) => codec.problem()).find((problem) => problem !== null) ?? null,
        }
