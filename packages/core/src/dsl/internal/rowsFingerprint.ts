/** A fingerprint of rows: the same for the same rows, whatever database, client or process has read them. */
import { fingerprint } from "../../model/Ids.js"

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** As hexadecimal digits; a typed array is the bytes that it stands for. */
const bytesOf = (value: ArrayBufferView | ArrayBuffer): string => {
  const bytes = ArrayBuffer.isView(value)
    ? Buffer.from(value.buffer, value.byteOffset, value.byteLength)
    : Buffer.from(value)
  return bytes.toString("hex")
}

/** The letter says of which kind it is: null, "null", 1, "1" and 1n are five values. What has no letter of its own is an object. */
const valueText = (value: unknown): string => {
  switch (typeof value) {
    case "string":
      return `s${JSON.stringify(value)}`
    case "number":
      return Object.is(value, -0) ? "d-0" : `d${value}`
    case "bigint":
      return `i${value}`
    case "boolean":
      return value ? "bt" : "bf"
    case "undefined":
      return "u"
    case "object":
      break
    default:
      throw new TypeError(`a ${typeof value} is no value of a column`)
  }
  if (value === null) return "n"
  if (Array.isArray(value)) return `[${value.map(valueText).join(",")}]`
  // An invalid date as well: clients give one for what JavaScript's dates do not reach.
  if (value instanceof Date) return `t${value.getTime()}`
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `x${bytesOf(value)}`
  const members = Object.entries(value).sort(([a], [b]) => byText(a, b))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${valueText(member)}`).join(",")}}`
}

/**
 * The fingerprint of rows.
 *
 * *Shape.* Every column by its name, in whatever order the columns come. `ordered`: whether the order of the rows counts; that of
 * a query without `order by` says nothing, and then rows are a bag: each counts as often as it is there.
 */
export const rowsFingerprint = (rows: ReadonlyArray<unknown>, ordered: boolean): string => {
  const texts = rows.map(valueText)
  return fingerprint((ordered ? texts : texts.sort(byText)).join("\n"))
}
