/** A plan's hash: the same for the same workflow, whatever the order of keys in it. */
import { fingerprint } from "../../model/Ids.js"
import type { Plan } from "../../model/Plan.js"

/** The order of a schema's fields shows in its list of required ones, and means nothing. */
const isUnordered = (key: string, value: unknown): value is ReadonlyArray<unknown> =>
  key === "required" && Array.isArray(value)

/**
 * Plain data with its keys in order: so `JSON.stringify` writes the canonical text at its own speed. Steps have much in common
 * (schemas, operations), and `known` is gone through once.
 */
const ordered = (value: unknown, known: Map<unknown, unknown>): unknown => {
  if (typeof value !== "object" || value === null) return value
  const before = known.get(value)
  if (before !== undefined) return before
  if (Array.isArray(value)) {
    const made = value.map((each) => ordered(each, known))
    known.set(value, made)
    return made
  }
  const made: Record<string, unknown> = {}
  for (const key of Object.keys(value).sort()) {
    const member: unknown = (value as Record<string, unknown>)[key]
    const is = ordered(isUnordered(key, member) ? [...member].sort() : member, known)
    // An assignment to this key would set the prototype.
    if (key === "__proto__") Object.defineProperty(made, key, { value: is, enumerable: true })
    else made[key] = is
  }
  known.set(value, made)
  return made
}

export const hashOf = (plan: Omit<Plan, "hash">): string => fingerprint(JSON.stringify(ordered(plan, new Map())))
