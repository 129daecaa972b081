/** Reading stored text and running schemas, with everything that may be thrown turned into a typed refusal. */
import * as Either from "effect/Either"
import { InvalidValue } from "../Errors.js"
import { thrownText } from "./thrownText.js"
import { isInstance } from "./untrusted.js"

/** Stored text as a value; null is `undefined`. */
export const parse = (text: string | null, place: string): Either.Either<unknown, InvalidValue> => {
  if (text === null) return Either.right(undefined)
  try {
    return Either.right(JSON.parse(text))
  } catch (thrown) {
    const problem = `the stored text is not JSON: ${(thrown as Error).message}`
    return Either.left(new InvalidValue({ place, field: "", reason: "NotJson", problem }))
  }
}

/** User code inside a schema may throw, and a value may be nested past the stack: neither may become a defect. */
export const guarded = <A>(
  place: string,
  run: () => Either.Either<A, InvalidValue>,
): Either.Either<A, InvalidValue> => {
  try {
    return run()
  } catch (thrown) {
    const deep = isInstance(thrown, RangeError)
    const problem = deep
      ? "it is nested too deeply for its schema; flatten it"
      : `its schema threw: ${thrownText(thrown)}`
    return Either.left(new InvalidValue({ place, field: "", reason: deep ? "NotJson" : "SchemaMismatch", problem }))
  }
}
