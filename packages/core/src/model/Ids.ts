/**
 * Names that are stored: namespaces, run ids, paths, idempotency keys.
 *
 * Laws kept here:
 *
 * - no two different inputs give the same stored name (escapes are injective, per UTF-16 unit);
 * - an idempotency key follows from namespace, run id, path and generation alone, never from seq, attempt or worker;
 * - a key fits an HTTP header: printable ASCII, at most 255 characters.
 */
import { createHash } from "node:crypto"
import * as Either from "effect/Either"
import { InvalidId } from "./Errors.js"

/** Longest namespace or run id, in UTF-16 units: what every store's key columns and every log line can hold. */
export const maxIdLength = 255

/** Longest idempotency key, in characters: the shortest limit among well-known providers. */
export const maxKeyLength = 255

/** The namespace of runs that name none. */
export const defaultNamespace = "default"

const isLoneSurrogate = (text: string, index: number): boolean => {
  const unit = text.charCodeAt(index)
  if (unit < 0xd800 || unit > 0xdfff) return false
  if (unit <= 0xdbff) {
    const next = text.charCodeAt(index + 1)
    return !(next >= 0xdc00 && next <= 0xdfff)
  }
  const previous = text.charCodeAt(index - 1)
  return !(previous >= 0xd800 && previous <= 0xdbff)
}

const idProblem = (id: unknown): string | null => {
  if (typeof id !== "string") return `expected a string, got ${id === null ? "null" : typeof id}`
  if (id.length === 0) return "it is empty; leave it out where you mean the default"
  if (id.length > maxIdLength) return `it has ${id.length} characters, at most ${maxIdLength} are allowed`
  for (let i = 0; i < id.length; i++) {
    if (id.charCodeAt(i) === 0) return `it holds a NUL character at ${i}`
    if (isLoneSurrogate(id, i)) return `it holds half of a surrogate pair at ${i}`
  }
  return null
}

/**
 * Checks a namespace, run id or workflow name before anything is stored under it.
 *
 * *Shape.* Any text of 1 to 255 UTF-16 units, kept byte for byte (no trimming, no Unicode normalisation); NUL and lone
 * surrogates are refused, because not every store can hold them.
 *
 * @category ids
 * @since 0.1.0
 */
export const checkId = (kind: InvalidId["kind"], id: unknown): Either.Either<string, InvalidId> => {
  const problem = idProblem(id)
  return problem === null
    ? Either.right(id as string)
    : Either.left(new InvalidId({ kind, id: typeof id === "string" ? id.slice(0, 300) : typeof id, problem }))
}

// `~` first: it is the escape itself. The others are the delimiters of a path and of a key.
const reserved = new Set(["~", "/", "[", "]", ":", "#"])

const hex4 = (unit: number): string => unit.toString(16).padStart(4, "0")

/**
 * Escapes a step name or item key for use in a path: delimiters, control characters and lone surrogates become `~hhhh`.
 *
 * @example
 * ```ts
 * import { escapeSegment } from "@cairn/core"
 *
 * escapeSegment("charge")
 * // => "charge"
 * escapeSegment("a/b")
 * // => "a~002fb"
 * ```
 *
 * @category paths
 * @since 0.1.0
 */
export const escapeSegment = (segment: string): string => {
  let out = ""
  for (let i = 0; i < segment.length; i++) {
    const unit = segment.charCodeAt(i)
    const char = segment[i]!
    out += unit < 0x20 || unit === 0x7f || reserved.has(char) || isLoneSurrogate(segment, i) ? `~${hex4(unit)}` : char
  }
  return out
}

/** The text that was escaped. */
export const unescapeSegment = (segment: string): string =>
  segment.replace(/~([0-9a-f]{4})/g, (_, unit: string) => String.fromCharCode(Number.parseInt(unit, 16)))

const headerSafe = (text: string): string => {
  let out = ""
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    out += unit > 0x20 && unit < 0x7f ? text[i]! : `~${hex4(unit)}`
  }
  return out
}

const sha256 = (text: string): string => createHash("sha256").update(text, "utf8").digest("hex")

/**
 * The key that an operation sends to its provider: the same over retries, restarts and deploys.
 *
 * *Shape.* `namespace/runId/path#generation`, printable ASCII; past 255 characters the end is replaced by a hash of the
 * whole. The generation grows only when the operation is durably known not to have happened.
 *
 * @category ids
 * @since 0.1.0
 */
export const idempotencyKey = (key: {
  readonly namespace: string
  readonly runId: string
  /** Already made of escaped segments. */
  readonly path: string
  readonly generation: number
}): string => {
  const whole = headerSafe(`${escapeSegment(key.namespace)}/${escapeSegment(key.runId)}/${key.path}#${key.generation}`)
  // 64 hexadecimal digits and the `~~` that no escape can produce.
  return whole.length <= maxKeyLength ? whole : `${whole.slice(0, maxKeyLength - 66)}~~${sha256(whole)}`
}

/**
 * A short fingerprint of encoded text.
 *
 * @category ids
 * @since 0.1.0
 */
export const fingerprint = (text: string): string => sha256(text)
