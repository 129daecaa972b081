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

/** Reads results by name, each once an attempt. */
class Results implements ProxyHandler<object> {
  private readonly seen = new Map<string, unknown>()

  constructor(
    private readonly available: ReadonlyMap<string, Available>,
    private readonly onUnreadable: OnUnreadable,
  ) {}

  read(name: string): unknown {
    const known = this.seen.get(name)
    if (known !== undefined || this.seen.has(name)) return known
    const found = this.available.get(name)
    if (found === undefined) return undefined
    const decoded = found.codec.decode(found.record.result, `stored output of step '${name}'`)
    if (Either.isLeft(decoded)) {
      this.onUnreadable(name, decoded.left)
      throw decoded.left
    }
    this.seen.set(name, decoded.right)
    return decoded.right
  }

  all(): Record<string, unknown> {
    return Object.fromEntries([...this.available.keys()].map((name) => [name, this.read(name)]))
  }

  get(target: object, key: string | symbol): unknown {
    return typeof key === "string" ? this.read(key) : Reflect.get(target, key)
  }

  has(_: object, key: string | symbol): boolean {
    return typeof key === "string" && this.available.has(key)
  }

  ownKeys(): Array<string> {
    return [...this.available.keys()]
  }

  getOwnPropertyDescriptor(target: object, key: string | symbol): PropertyDescriptor | undefined {
    if (typeof key !== "string") return Reflect.getOwnPropertyDescriptor(target, key)
    return this.available.has(key)
      ? { enumerable: true, configurable: true, writable: false, value: this.read(key) }
      : undefined
  }

  readonly set = readOnly
  readonly defineProperty = readOnly
  readonly deleteProperty = readOnly
  readonly preventExtensions = readOnly
  readonly setPrototypeOf = readOnly
}

/**
 * The results as one object. Values are decoded on first access and once an attempt: what a function does to its copy is
 * seen by nobody else, on the first run as on a resume (law X3), and a resume decodes only what its next step looks at.
 *
 * A proxy, not an object of getters: it costs the same for the first step and for the thousandth.
 */
export const resultsView = (
  available: ReadonlyMap<string, Available>,
  onUnreadable: OnUnreadable,
): Readonly<Record<string, unknown>> => {
  const results = new Results(available, onUnreadable)
  // Who prints a proxy is shown its target.
  const target = Object.defineProperty(Object.create(null) as Record<string, unknown>, inspect, {
    value: () => results.all(),
    configurable: true,
  })
  return new Proxy(target, results as ProxyHandler<Record<string, unknown>>)
}

/** What a function's arguments are made of. */
export interface ContextParts {
  readonly input: { readonly text: string | null; readonly codec: Codec<unknown> }
  readonly available: ReadonlyMap<string, Available>
  readonly onUnreadable: OnUnreadable
}

const inputReader = ({ input, onUnreadable }: ContextParts): (() => unknown) => {
  let read: { readonly value: unknown } | null = null
  return () => {
    if (read === null) {
      const decoded = input.codec.decode(input.text, "stored input")
      if (Either.isLeft(decoded)) {
        onUnreadable("(input)", decoded.left)
        throw decoded.left
      }
      read = { value: decoded.right }
    }
    return read.value
  }
}

const resultsReader = ({ available, onUnreadable }: ContextParts): (() => Readonly<Record<string, unknown>>) => {
  let view: Readonly<Record<string, unknown>> | null = null
  return () => (view ??= resultsView(available, onUnreadable))
}

/** The arguments of a function that only looks. Members that nobody looks at cost nothing. */
export const lookContext = (
  parts: ContextParts,
): { readonly input: unknown; readonly results: Readonly<Record<string, unknown>> } => {
  const input = inputReader(parts)
  const results = resultsReader(parts)
  return {
    get input() {
      return input()
    },
    get results() {
      return results()
    },
  }
}

/** The arguments of a step's function. */
export const stepContext = (
  parts: ContextParts,
  signal: () => AbortSignal,
): { readonly input: unknown; readonly results: Readonly<Record<string, unknown>>; readonly signal: AbortSignal } => {
  const input = inputReader(parts)
  const results = resultsReader(parts)
  return {
    get input() {
      return input()
    },
    get results() {
      return results()
    },
    get signal() {
      return signal()
    },
  }
}
