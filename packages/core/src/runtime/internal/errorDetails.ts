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

/** Most fields that are named: enough to know the error by. */
const maxFields = 20

/** What every error has, and what is said of it apart. */
const told: ReadonlySet<string> = new Set(["_tag", "name", "message", "stack", "cause"])

const fieldsOf = (value: object): ReadonlyArray<string> => {
  try {
    return Array.isArray(value) ? [] : Object.keys(value).filter((key) => !told.has(key))
  } catch {
    // A proxy that throws has none to name.
    return []
  }
}

const constructorName = (value: object): string | null => {
  const name = property(property(value, "constructor"), "name")
  return typeof name === "string" && name !== "" ? name : null
}

/**
 * What an error without a message is: its fields by name. What they hold may be a request with its credentials (field case P125), and
 * nobody has said that it is to be kept.
 */
const withoutMessage = (name: string, value: object): string => {
  const fields = fieldsOf(value)
  if (fields.length === 0) return `${name} was thrown, without a message`
  const named = fields.slice(0, maxFields).join(", ")
  return `${name} was thrown, without a message; its fields are ${named}${fields.length > maxFields ? ", …" : ""}`
}

const describe = (value: unknown, depth: number): ErrorDetails => {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) {
    const message = typeof value === "string" ? value : `${String(value)} was thrown`
    return { name: value === null ? "null" : typeof value, message: clip(message), tag: null, stack: null, cause: null }
  }
  const text = (key: string): string | null => {
    const found = property(value, key)
    return typeof found === "string" && found !== "" ? clip(found) : null
  }
  const cause = property(value, "cause")
  const tag = text("_tag")
  // The name of a function is not that of an error.
  const own = typeof value === "function" ? null : text("name")
  const name = own ?? tag ?? constructorName(value) ?? "Object"
  return {
    name,
    message: text("message") ?? clip(withoutMessage(tag ?? name, value)),
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
