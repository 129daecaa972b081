/** An answer for an operation whose handler is simulated: a value of its success schema, derived from a text. */
import { fingerprint, type Codec } from "@cairn/core"
import * as Either from "effect/Either"

type Shape = Readonly<Record<string, any>>

const numberOf = (shape: Shape, of: string): number => {
  const from = shape["minimum"] ?? (shape["exclusiveMinimum"] === undefined ? 0 : shape["exclusiveMinimum"] + 1)
  const to = shape["maximum"] ?? (shape["exclusiveMaximum"] === undefined ? from + 999 : shape["exclusiveMaximum"] - 1)
  return Math.ceil(from) + (Number.parseInt(of.slice(0, 8), 16) % (Math.max(0, Math.floor(to) - Math.ceil(from)) + 1))
}

/** Texts of a well-known form are text in JSON Schema: where a plain one is refused, these are tried. */
const forms = ["plain", "date", "uuid"] as const
type Form = (typeof forms)[number]

const textOf = (shape: Shape, of: string, form: Form): string => {
  if (form === "date") return new Date(Number.parseInt(of.slice(0, 8), 16) * 1_000).toISOString()
  if (form === "uuid") {
    return `${of.slice(0, 8)}-${of.slice(8, 12)}-4${of.slice(13, 16)}-8${of.slice(17, 20)}-${of.slice(20, 32)}`
  }
  return of.slice(0, Math.min(64, Math.max(shape["minLength"] ?? 0, Math.min(12, shape["maxLength"] ?? 12))))
}

const valueOf = (shape: Shape, root: Shape, of: string, form: Form): unknown => {
  if (typeof shape["$ref"] === "string") {
    const name = shape["$ref"].split("/").at(-1)!
    const target = root["$defs"]?.[name]
    return target === undefined ? null : valueOf(target, root, of, form)
  }
  if ("const" in shape) return shape["const"]
  if (Array.isArray(shape["enum"])) return shape["enum"][Number.parseInt(of.slice(0, 4), 16) % shape["enum"].length]
  const choice = shape["anyOf"] ?? shape["oneOf"]
  if (Array.isArray(choice)) return valueOf(choice[0], root, of, form)
  switch (shape["type"]) {
    case "string":
      return textOf(shape, of, form)
    case "number":
    case "integer":
      return numberOf(shape, of)
    case "boolean":
      return true
    case "array": {
      const items: ReadonlyArray<Shape> = Array.isArray(shape["items"])
        ? shape["items"]
        : Array.from({ length: shape["minItems"] ?? 1 }, () => shape["items"] ?? {})
      return items.map((item, index) => valueOf(item, root, fingerprint(`${of}/${index}`), form))
    }
    case "object":
      return Object.fromEntries(
        ((shape["required"] ?? []) as ReadonlyArray<string>).map((name) => [
          name,
          valueOf(shape["properties"]?.[name] ?? {}, root, fingerprint(`${of}/${name}`), form),
        ]),
      )
    default:
      return null
  }
}

const shapes = new WeakMap<Codec<any>, Shape>()

const shapeOf = (codec: Codec<any>): Shape => {
  const known = shapes.get(codec) ?? (codec.jsonSchema() as Shape)
  shapes.set(codec, known)
  return known
}

/**
 * A value of the schema, the same for the same text.
 *
 * *Errors.* Throws where the schema asks for more than its JSON Schema says: then the caller has to give the answer.
 */
export const sampled = (operation: string, success: Codec<any>, text: string): unknown => {
  const of = fingerprint(text)
  const shape = shapeOf(success)
  const place = `simulated answer of '${operation}'`
  // `void` is stored as nothing at all.
  const candidates = [null, ...forms.map((form) => JSON.stringify(valueOf(shape, shape, of, form)))]
  for (const candidate of candidates) {
    const decoded = success.decode(candidate, place)
    if (Either.isRight(decoded)) return decoded.right
  }
  throw new Error(
    `no answer of '${operation}' can be made from its schema: give one by \`simulate\`, or give a handler`,
  )
}
