import { InvalidValue } from "../Errors.js"

/** A value whose JSON is longer than may be stored. */
export const tooLarge = (place: string, length: number, most: number, field = ""): InvalidValue =>
  new InvalidValue({
    place,
    field,
    reason: "TooLarge",
    problem: `it takes ${length} characters as JSON and at most ${most} are allowed; store it elsewhere and hand on a reference`,
  })
