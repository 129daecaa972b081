/**
 * Looking at values that nobody has checked. A revoked proxy (a draft of immer is one once its recipe has ended) throws at every
 * look, a trap may throw anything, and an object without a prototype has no text.
 */

/** `instanceof`, for any value. */
export const isInstance = <C extends abstract new (...args: any) => unknown>(
  value: unknown,
  of: C,
): value is InstanceType<C> => {
  try {
    return value instanceof of
  } catch {
    return false
  }
}

/** Whether a value is an object with a mark of ours: what cannot be looked at has none. */
export const isMarked = (value: unknown, mark: PropertyKey): boolean => {
  try {
    return typeof value === "object" && value !== null && mark in value
  } catch {
    return false
  }
}

/** A value as messages show it. */
export const shownValue = (value: unknown): string => {
  try {
    return typeof value === "string" ? `'${value}'` : String(value)
  } catch {
    return "a value that cannot be shown"
  }
}
