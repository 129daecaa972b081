/** Values of callers without types, made readable without running any of their code. */

/** A name as text: itself, or what kind of value stands in its place. */
export const nameText = (name: unknown): string => (typeof name === "string" ? name : shown(name))

/** A value in a few characters. It never throws: `String(value)` would call a `toString` that may. */
export const shown = (value: unknown): string => {
  try {
    if (typeof value === "number" || typeof value === "bigint" || value === undefined) return String(value)
    if (typeof value === "function" || typeof value === "symbol") return `a ${typeof value}`
    const text = JSON.stringify(value)
    return typeof text !== "string" ? typeof value : text.length > 80 ? `${text.slice(0, 80)}..` : text
  } catch {
    return `an unreadable ${typeof value}`
  }
}
