/**
 * What was thrown, in its own words where it has some. It never throws: `String(value)` fails for objects without a
 * prototype and runs the `toString` of all others.
 */
export const thrownText = (thrown: unknown): string => {
  try {
    if (thrown instanceof Error) return String(thrown.message)
    return typeof thrown === "object" || typeof thrown === "function" ? "a value that is no Error" : String(thrown)
  } catch {
    return "a value that cannot be read"
  }
}
