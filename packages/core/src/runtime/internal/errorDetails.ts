/** Any thrown value, reduced to what people read. It never throws itself, whatever it is given. */
import * as Cause from "effect/Cause"
import * as Option from "effect/Option"
import { StoreError, type ErrorDetails } from "../../model/Errors.js"

/** Longest text kept of a message or stack, in UTF-16 units: enough to read, too little to fill a store. */
const maxText = 4_000
/** Deepest chain of causes kept: a cycle ends here too. */
const maxCauses = 8

const clip = (text: string): string => (text.length > maxText ? `${text.slice(0, maxText)}…` : text)

/** A property of any thrown value; undefined where there is none, or where asking for it throws. */
export const property = (value: unknown, key: string): unknown => {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return undefined
  try {
    return (value as Record<string, unknown>)[key]
  } catch {
    // A getter or proxy that throws says nothing: the error is about another one.
    return undefined
  }
}

const textOf = (value: unknown): string => {
  try {
    return typeof value === "object" && value !== null ? (JSON.stringify(value) ?? String(value)) : String(value)
  } catch {
    return "a value that cannot be shown"
  }
}

const describe = (value: unknown, depth: number): ErrorDetails => {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) {
    const message = typeof value === "string" ? value : `${textOf(value)} was thrown`
    return { name: value === null ? "null" : typeof value, message: clip(message), tag: null, stack: null, cause: null }
  }
  const text = (key: string): string | null => {
    const found = property(value, key)
    return typeof found === "string" && found !== "" ? clip(found) : null
  }
  const cause = property(value, "cause")
  const tag = text("_tag")
  return {
    name: text("name") ?? tag ?? "Object",
    message: text("message") ?? clip(textOf(value)),
    tag,
    stack: text("stack"),
    cause: cause === undefined || cause === null || depth >= maxCauses ? null : describe(cause, depth + 1),
  }
}

export const errorDetails = (value: unknown): ErrorDetails => describe(value, 0)

/** What went wrong first: the failure if there is one, else the defect, else the interruption. */
export const primary = (cause: Cause.Cause<unknown>): { readonly defect: boolean; readonly error: unknown } =>
  Option.match(Cause.failureOption(cause), {
    onSome: (error) => ({ defect: false, error }),
    onNone: () =>
      Option.match(Cause.dieOption(cause), {
        onSome: (error) => ({ defect: true, error }),
        onNone: () => ({ defect: true, error: new Error("interrupted from within the step") }),
      }),
  })

/** What a function really threw, without the wrapper that says where. */
export const unwrapThrown = (error: unknown): unknown =>
  property(error, "_tag") === "StepThrew" ? property(error, "thrown") : error

/** Whatever a store call came to, as the store's error: a driver's exception is one as well. */
export const asStoreError =
  (operation: string) =>
  (cause: Cause.Cause<unknown>): StoreError => {
    const thrown = Cause.squash(cause)
    return thrown instanceof StoreError
      ? thrown
      : new StoreError({ reason: "Unknown", operation, problem: errorDetails(thrown).message, cause: thrown })
  }
