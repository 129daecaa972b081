/**
 * JSON text that loses nothing: what JSON.stringify would drop, round or rename is refused with the field's path.
 *
 * Kept as it was: key order, unusual keys, NUL and lone surrogates (as escapes), and minus zero.
 */

import { thrownText } from "./thrownText.js"
import { isInstance } from "./untrusted.js"

/** What is wrong with a value, and where. `field` reads like `.lines[3].due`. */
export interface JsonProblem {
  readonly reason: "NotJson" | "Circular"
  readonly field: string
  readonly problem: string
}

const identifier = /^[A-Za-z_$][\w$]*$/

/** Renders a path for people: `.a["odd key"][3]`. */
export const renderField = (path: ReadonlyArray<PropertyKey>): string =>
  path
    .map((key) =>
      typeof key === "number"
        ? `[${key}]`
        : typeof key === "symbol"
          ? `[${String(key)}]`
          : identifier.test(key)
            ? `.${key}`
            : `[${JSON.stringify(key)}]`,
    )
    .join("")

const isPlain = (value: object): boolean => {
  const prototype = Object.getPrototypeOf(value)
  // The second test accepts plain objects of another realm (vm contexts, test runners).
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null
}

const className = (value: object): string => {
  const name = (Object.getPrototypeOf(value) as { constructor?: { name?: unknown } } | null)?.constructor?.name
  return typeof name === "string" && name !== "" ? name : "an object with a prototype of its own"
}

class Refusal {
  constructor(
    readonly reason: JsonProblem["reason"],
    readonly path: Array<PropertyKey>,
    readonly problem: string,
  ) {}
}

const refuse = (reason: JsonProblem["reason"], path: ReadonlyArray<PropertyKey>, problem: string): never => {
  throw new Refusal(reason, [...path], problem)
}

const caught = (thrown: unknown): JsonProblem => {
  if (isInstance(thrown, Refusal)) {
    return { reason: thrown.reason, field: renderField(thrown.path), problem: thrown.problem }
  }
  if (isInstance(thrown, RangeError)) {
    return { reason: "NotJson", field: "", problem: "it is nested too deeply to be written; flatten it" }
  }
  return { reason: "NotJson", field: "", problem: `it could not be read: ${thrownText(thrown)}` }
}

interface Walk {
  /** JSON.stringify would change something: a minus zero, or a `toJSON` that it would call. */
  needsExact: boolean
}

const walkEncoded = (value: unknown, path: Array<PropertyKey>, above: Set<object>, walk: Walk): void => {
  switch (typeof value) {
    case "string":
    case "boolean":
      return
    case "number":
      if (!Number.isFinite(value)) refuse("NotJson", path, `${value} would become null in JSON`)
      if (value === 0 && Object.is(value, -0)) walk.needsExact = true
      return
    case "undefined":
      refuse("NotJson", path, "undefined would become null in JSON; use Schema.NullOr or leave the key out")
      return
    case "bigint":
      refuse("NotJson", path, "a bigint has no JSON form; use Schema.BigInt")
      return
    case "function":
    case "symbol":
      refuse("NotJson", path, `a ${typeof value} has no JSON form`)
      return
  }
  if (value === null) return
  const object = value as object
  if (above.has(object)) refuse("Circular", path, "it contains itself")
  above.add(object)
  // An enumerable one is refused as a function below; this one is hidden or inherited.
  if (typeof (object as { toJSON?: unknown }).toJSON === "function") walk.needsExact = true
  if (Array.isArray(object)) {
    for (let i = 0; i < object.length; i++) {
      path.push(i)
      walkEncoded(object[i], path, above, walk)
      path.pop()
    }
  } else {
    if (!isPlain(object)) {
      refuse("NotJson", path, `${className(object)} has no JSON form; use a schema that encodes it`)
    }
    if (Object.getOwnPropertySymbols(object).length > 0) refuse("NotJson", path, "a symbol key has no JSON form")
    for (const key of Object.keys(object)) {
      const member = (object as Record<string, unknown>)[key]
      // A key whose value is undefined is written as an absent key, which every schema reads the same way.
      if (member === undefined) continue
      path.push(key)
      walkEncoded(member, path, above, walk)
      path.pop()
    }
  }
  above.delete(object)
}

// JSON.stringify writes -0 as 0, though JSON.parse reads "-0" back, and calls `toJSON`. Slower, so used only where needed.
const writeExact = (value: unknown): string => {
  if (typeof value === "number") return Object.is(value, -0) ? "-0" : JSON.stringify(value)
  if (value === null || typeof value !== "object") return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(writeExact).join(",")}]`
  const members: Array<string> = []
  for (const key of Object.keys(value)) {
    const member = (value as Record<string, unknown>)[key]
    if (member !== undefined) members.push(`${JSON.stringify(key)}:${writeExact(member)}`)
  }
  return `{${members.join(",")}}`
}

/**
 * Writes an encoded value, or says why it cannot be written without loss. `undefined` as a whole is null (no text).
 */
export const toJsonText = (value: unknown): { readonly text: string | null } | JsonProblem => {
  if (value === undefined) return { text: null }
  // Nothing can be lost of these.
  if (typeof value === "string" || typeof value === "boolean" || value === null) return { text: JSON.stringify(value) }
  try {
    const walk: Walk = { needsExact: false }
    walkEncoded(value, [], new Set(), walk)
    return { text: walk.needsExact ? writeExact(value) : JSON.stringify(value) }
  } catch (thrown) {
    return caught(thrown)
  }
}

/** What is left to the schema, and where it stands. */
interface Foreign {
  readonly value: object
  readonly path: ReadonlyArray<PropertyKey>
}

/** What a look at a given value has found: what is wrong with it, and what only its schema knows how to write. */
export interface Look {
  readonly problem: JsonProblem | null
  readonly foreign: ReadonlyArray<Foreign>
}

const nothingFound: Look = { problem: null, foreign: [] }

interface Visit {
  readonly above: Set<object>
  foreign: Array<Foreign> | null
}

const walkGiven = (value: unknown, path: Array<PropertyKey>, visit: Visit): void => {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return
  const array = Array.isArray(value)
  if (!array && (typeof value === "function" || !isPlain(value))) {
    ;(visit.foreign ??= []).push({ value, path: [...path] })
    return
  }
  const { above } = visit
  if (above.has(value)) refuse("Circular", path, "it contains itself")
  above.add(value)
  if (array) {
    for (let i = 0; i < value.length; i++) {
      const member: unknown = value[i]
      if ((typeof member !== "object" && typeof member !== "function") || member === null) continue
      path.push(i)
      walkGiven(member, path, visit)
      path.pop()
    }
  } else {
    for (const key of Object.keys(value)) {
      path.push(key)
      // Schemas build their results by assignment, and an assignment to this key sets the prototype instead.
      if (key === "__proto__") refuse("NotJson", path, "a key named __proto__ cannot be carried; rename it")
      walkGiven((value as Record<string, unknown>)[key], path, visit)
      path.pop()
    }
  }
  above.delete(value)
}

/**
 * Finds, before a schema sees the value, what would make it loop for ever or lose a key in silence: cycles and own keys
 * named `__proto__`, in plain objects and arrays. Instances of classes are left to their schema; `findLoss` says what that made
 * of them.
 */
export const lookAt = (value: unknown): Look => {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return nothingFound
  try {
    const visit: Visit = { above: new Set(), foreign: null }
    walkGiven(value, [], visit)
    return visit.foreign === null ? nothingFound : { problem: null, foreign: visit.foreign }
  } catch (thrown) {
    return { problem: caught(thrown), foreign: [] }
  }
}

/** By what they are, not by their class: those of another realm count, and what extends them. */
const keptInside =
  /^\[object (?:Date|Map|Set|Weak\w+|Promise|RegExp|URL|URLSearchParams|DataView|Number|String|Boolean|Symbol|BigInt|\w*Function|\w*Generator|\w*ArrayBuffer|\w+ Iterator|Headers|FormData|Request|Response|Blob|File)\]$/

/** An error of a class of its own says by its fields what it is; of these the message is all. */
const bareErrors: ReadonlySet<unknown> = new Set(
  [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError, AggregateError].map(
    ({ prototype }) => prototype as unknown,
  ),
)

/** Whether all that an object says is kept elsewhere than in its fields, by the language or its host. */
const isOpaque = (value: object): boolean =>
  ArrayBuffer.isView(value) ||
  bareErrors.has(Object.getPrototypeOf(value)) ||
  keptInside.test(Object.prototype.toString.call(value))

const at = (value: unknown, path: ReadonlyArray<PropertyKey>): unknown =>
  path.reduce<unknown>(
    (found, key) =>
      typeof found === "object" && found !== null ? (found as Record<PropertyKey, unknown>)[key] : undefined,
    value,
  )

/** Whether nothing of it was written, or its own fields alone, as of any object. */
const isCopied = (value: object, written: object): boolean => {
  const keys = Object.keys(written)
  if (keys.length === 0) return !("size" in value && value.size === 0)
  return keys.length === Object.keys(value).length && keys.every((key) => Object.hasOwn(value, key))
}

/**
 * Finds what a schema took for an object of fields although it is none: a Map under a record is written as `{}`, and a Buffer as its
 * bytes by number. What a schema for it has written looks otherwise.
 */
export const findLoss = (foreign: ReadonlyArray<Foreign>, written: unknown): JsonProblem | null => {
  for (const { path, value } of foreign) {
    const found = at(written, path)
    if (typeof found !== "object" || found === null || Array.isArray(found) || !isPlain(found)) continue
    if (isOpaque(value) && isCopied(value, found)) {
      const problem = `${className(value)} would be written as a plain object, without what it holds; use a schema that encodes it`
      return { reason: "NotJson", field: renderField(path), problem }
    }
  }
  return null
}

const canonical = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(canonical)
  if (typeof value !== "object" || value === null) return value
  // Entries, not assignment: a key named __proto__ must stay a key.
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
      .map(([key, member]) => [key, canonical(member)]),
  )
}

/** The same text for equal JSON whatever the order of its keys: what fingerprints are taken of. */
export const canonicalText = (text: string | null): string => {
  if (text === null) return "undefined"
  return writeExact(canonical(JSON.parse(text)))
}
