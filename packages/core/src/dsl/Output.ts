/** Outputs whose shape is not known to the compiler: a model's answer, a parsed text. The gate decodes them. */
import { isMarked } from "../model/internal/untrusted.js"

/** Both survive two copies of the package. */
const TypeId: unique symbol = Symbol.for("@cairn/core/Output/Unvalidated") as never
const UnparsedTypeId: unique symbol = Symbol.for("@cairn/core/Output/UnparsedText") as never

/**
 * A value of unknown shape. The step's schema decodes it from its encoded side before anything is committed.
 *
 * @category models
 * @since 0.1.0
 */
export interface Unvalidated {
  readonly [TypeId]: true
  readonly raw: unknown
}

/**
 * Marks what a step returns as not yet checked.
 *
 * @example
 * ```ts
 * import { Output } from "@cairn/core"
 *
 * Output.unvalidated({ cents: "12" }).raw
 * // => { cents: "12" }
 * Output.json('{"cents":12}').raw
 * // => { cents: 12 }
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const Output = {
  /** A value of unknown shape, such as a model's structured answer. */
  unvalidated: (raw: unknown): Unvalidated => ({ [TypeId]: true, raw }),
  /** JSON text. Text that does not parse is refused by the gate, with its beginning in the message. */
  json: (text: string): Unvalidated => {
    try {
      return { [TypeId]: true, raw: JSON.parse(text) as unknown }
    } catch (error) {
      return { [TypeId]: true, raw: unparsedText(text, (error as Error).message) }
    }
  },
} as const

/** What stands for text that was no JSON, until the gate refuses it. */
export interface UnparsedText {
  readonly [UnparsedTypeId]: true
  readonly text: string
  readonly problem: string
}

const unparsedText = (text: string, problem: string): UnparsedText => ({ [UnparsedTypeId]: true, text, problem })

export const isUnparsedText = (value: unknown): value is UnparsedText => isMarked(value, UnparsedTypeId)

export const isUnvalidated = (value: unknown): value is Unvalidated => isMarked(value, TypeId)
