/** What a step's functions are given: input and results, decoded when they are looked at, afresh for each attempt. */
import * as Either from "effect/Either"
import type { PaidPromise } from "../../dsl/Usage.js"
import type { RejectedOutput } from "../../dsl/StepOptions.js"
import type { Codec } from "../../model/Codec.js"
import type { InvalidValue } from "../../model/Errors.js"
import { joinedMembers, lookedAt, type Members } from "./lookedAt.js"

/** Results by name, as they are seen from one place. */
export interface Source {
  /** How to read one; undefined where there is none. */
  readonly get: (name: string) => (() => unknown) | undefined
  readonly names: () => ReadonlyArray<string>
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

  constructor(private readonly source: Source) {}

  read(name: string): unknown {
    const known = this.seen.get(name)
    if (known !== undefined || this.seen.has(name)) return known
    const read = this.source.get(name)
    if (read === undefined) return undefined
    const value = read()
    this.seen.set(name, value)
    return value
  }

  all(): Record<string, unknown> {
    return Object.fromEntries(this.source.names().map((name) => [name, this.read(name)]))
  }

  get(target: object, key: string | symbol): unknown {
    return typeof key === "string" ? this.read(key) : Reflect.get(target, key)
  }

  has(_: object, key: string | symbol): boolean {
    return typeof key === "string" && this.source.get(key) !== undefined
  }

  ownKeys(): Array<string> {
    return [...this.source.names()]
  }

  getOwnPropertyDescriptor(target: object, key: string | symbol): PropertyDescriptor | undefined {
    if (typeof key !== "string") return Reflect.getOwnPropertyDescriptor(target, key)
    return this.source.get(key) !== undefined
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
export const resultsView = (source: Source): Readonly<Record<string, unknown>> => {
  const results = new Results(source)
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
  readonly source: Source
  /** What scopes add; null where there is nothing. */
  readonly extras: object | null
  readonly onUnreadable: OnUnreadable
}

/** What a function may look at, each read when somebody does, and once an attempt. */
export class Seen implements Members {
  private decoded: { readonly value: unknown } | null = null
  private view: Readonly<Record<string, unknown>> | null = null
  readonly names: ReadonlyArray<string> = seenNames

  constructor(private readonly parts: ContextParts) {}

  look(name: string): unknown {
    return name === "input" ? this.input : this.results
  }

  get input(): unknown {
    if (this.decoded === null) {
      const { input, onUnreadable } = this.parts
      const read = input.codec.decode(input.text, "stored input")
      if (Either.isLeft(read)) {
        onUnreadable("(input)", read.left)
        throw read.left
      }
      this.decoded = { value: read.right }
    }
    return this.decoded.value
  }

  get results(): Readonly<Record<string, unknown>> {
    return (this.view ??= resultsView(this.parts.source))
  }
}

const seenNames = ["input", "results"]

/** The arguments of a function, with what scopes add beside them. */
export const contextOf = <A extends object>(members: Members, extras: object | null): A => {
  const context = lookedAt<A>(null, members)
  return extras === null ? context : joinedMembers(context, extras)
}

/** The arguments of a function that only looks. Members that nobody looks at cost nothing. */
export const lookContext = (
  parts: ContextParts,
): { readonly input: unknown; readonly results: Readonly<Record<string, unknown>> } =>
  contextOf(new Seen(parts), parts.extras)

/** The arguments of a step's function. */
export interface StepContext {
  readonly input: unknown
  readonly results: Readonly<Record<string, unknown>>
  readonly signal: AbortSignal
  readonly rejected: RejectedOutput | null
  readonly emit: (chunk: unknown) => void
  readonly paid: PaidPromise
}
