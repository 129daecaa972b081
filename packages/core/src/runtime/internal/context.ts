/** What a step's functions are given: input and results, decoded when they are looked at, afresh for each attempt. */
import * as Either from "effect/Either"
import type { Codec } from "../../model/Codec.js"
import type { InvalidValue } from "../../model/Errors.js"
import type { StepRecord } from "../../model/Records.js"

/** A committed result that functions may ask for. */
export interface Available {
  readonly record: StepRecord
  readonly codec: Codec<unknown>
}

/** Called when stored text cannot be read: the attempt must not commit, whatever its function makes of the exception. */
export type OnUnreadable = (step: string, error: InvalidValue) => void

const inspect = Symbol.for("nodejs.util.inspect.custom")

const readOnly = (): never => {
  throw new TypeError("results are read-only: a change would be lost on resume; return what later steps need")
}

/**
 * The results as one object. Values are decoded on first access and once an attempt: what a function does to its copy is
 * seen by nobody else, on the first run as on a resume (law X3), and a resume decodes only what its next step looks at.
 */
export const resultsView = (
  available: ReadonlyMap<string, Available>,
  onUnreadable: OnUnreadable,
): Readonly<Record<string, unknown>> => {
  const seen = new Map<string, unknown>()
  const read = (name: string): unknown => {
    const known = seen.get(name)
    if (known !== undefined || seen.has(name)) return known
    const found = available.get(name)
    if (found === undefined) return undefined
    const decoded = found.codec.decode(found.record.result, `stored output of step '${name}'`)
    if (Either.isLeft(decoded)) {
      onUnreadable(name, decoded.left)
      throw decoded.left
    }
    seen.set(name, decoded.right)
    return decoded.right
  }
  const all = (): Record<string, unknown> => Object.fromEntries([...available.keys()].map((name) => [name, read(name)]))
  // A proxy, not an object of getters: it costs the same for the first step and for the thousandth.
  const target = Object.defineProperty(Object.create(null) as Record<string, unknown>, inspect, {
    value: all,
    configurable: true,
  })
  return new Proxy(target, {
    get: (target, key) => (typeof key === "string" ? read(key) : Reflect.get(target, key)),
    has: (_, key) => typeof key === "string" && available.has(key),
    ownKeys: () => [...available.keys()],
    getOwnPropertyDescriptor: (target, key) =>
      typeof key === "string"
        ? available.has(key)
          ? { enumerable: true, configurable: true, writable: false, value: read(key) }
          : undefined
        : Reflect.getOwnPropertyDescriptor(target, key),
    set: readOnly,
    defineProperty: readOnly,
    deleteProperty: readOnly,
    preventExtensions: readOnly,
    setPrototypeOf: readOnly,
  })
}

/** The arguments of a step's function. Members that nobody looks at cost nothing. */
export const stepContext = (parts: {
  readonly input: { readonly text: string | null; readonly codec: Codec<unknown> }
  readonly available: ReadonlyMap<string, Available>
  readonly onUnreadable: OnUnreadable
}): { readonly input: unknown; readonly results: Readonly<Record<string, unknown>> } => {
  const { input, available, onUnreadable } = parts
  let decodedInput: { readonly value: unknown } | null = null
  const results = resultsView(available, onUnreadable)
  return {
    get input() {
      if (decodedInput === null) {
        const decoded = input.codec.decode(input.text, "stored input")
        if (Either.isLeft(decoded)) {
          onUnreadable("(input)", decoded.left)
          throw decoded.left
        }
        decodedInput = { value: decoded.right }
      }
      return decodedInput.value
    },
    results,
  }
}
