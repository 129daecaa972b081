/** What callers give to a client without types to hold them: what is unknown or unusable is refused, never left out (P123). */
import * as Either from "effect/Either"
import { InvalidValue } from "../../model/Errors.js"

export const wrong = (place: string, field: string, problem: string): InvalidValue =>
  new InvalidValue({ place, field, reason: "SchemaMismatch", problem })

/** The options that were given; undefined is as good as left out. */
export const known = (
  place: string,
  given: object,
  names: ReadonlyArray<string>,
): Either.Either<void, InvalidValue> => {
  const unknown = Object.entries(given).find(([name, value]) => value !== undefined && !names.includes(name))
  return unknown === undefined
    ? Either.void
    : Either.left(wrong(place, `.${unknown[0]}`, `there is no such option; it knows ${names.join(", ")}`))
}

/** A time as the store has it; null where none is given. */
export const timeOf = (place: string, field: string, given: unknown): Either.Either<number | null, InvalidValue> => {
  if (given === undefined) return Either.right(null)
  const at = given instanceof Date ? given.getTime() : Number.NaN
  return Number.isSafeInteger(at) ? Either.right(at) : Either.left(wrong(place, field, "expected a valid Date"))
}

const defaultPage = 20
export const largestPage = 100

export const pageSize = (place: string, given: unknown): Either.Either<number, InvalidValue> => {
  if (given === undefined) return Either.right(defaultPage)
  return Number.isInteger(given) && (given as number) >= 1
    ? Either.right(Math.min(largestPage, given as number))
    : Either.left(wrong(place, ".limit", "expected a whole number from 1 up"))
}

/** Where a page ended, as text that nobody needs to read. */
export const cursorOf = (place: ReadonlyArray<string | number>): string =>
  Buffer.from(JSON.stringify(place), "utf8").toString("base64url")

/** A cursor of places of these types; null where none is given. */
export const readCursor = <A extends ReadonlyArray<string | number>>(
  place: string,
  given: unknown,
  types: ReadonlyArray<"string" | "number">,
): Either.Either<A | null, InvalidValue> => {
  if (given === undefined || given === null) return Either.right(null)
  const refused = Either.left(wrong(place, ".cursor", "it is no cursor that an earlier page gave"))
  if (typeof given !== "string") return refused
  try {
    const read: unknown = JSON.parse(Buffer.from(given, "base64url").toString("utf8"))
    const fits =
      Array.isArray(read) &&
      read.length === types.length &&
      read.every(
        (part, index) => typeof part === types[index] && (typeof part === "string" || Number.isSafeInteger(part)),
      )
    return fits && cursorOf(read as unknown as A) === given ? Either.right(read as unknown as A) : refused
  } catch {
    return refused
  }
}
