/**
 * Reads invoices by rules: German and English labels, amounts written the German, English or Swiss way.
 *
 * An item is a line with two amounts and a number by which one is the other's multiple, so that tables, bullet lists and
 * "3 x … @ …" are read alike. What is not found is left null: the schema of the step says what is missing.
 */

/** An amount has two decimals; dates (`03.11.2026`) and rates (`8.1 %`) are none. */
const amount = /(?<![\d.,])\d{1,3}(?:[.,'’]?\d{3})*[.,]\d{2}(?![\d.]*\d)/g

const labels = {
  number: /(?:rechnungsnummer|rechnung nr\.?|invoice (?:no\.?|number))\s*:?\s*(\S+)/i,
  issued: /rechnungsdatum|issued|invoice date/i,
  due: /fällig|zahlbar bis|\bdue\b/i,
  recipient: /^(?:an|bill to|rechnung an)\b\s*:?\s*(.*)$/i,
  net: /netto|zwischensumme|subtotal/i,
  vat: /(?:mwst|ust|vat)/i,
  total: /rechnungsbetrag|gesamtbetrag|\btotal\b/i,
}

const currencies: ReadonlyArray<readonly [RegExp, string]> = [
  [/€|\bEUR\b/, "EUR"],
  [/£|\bGBP\b/, "GBP"],
  [/\bCHF\b/, "CHF"],
  [/\$|\bUSD\b/, "USD"],
]

const months = [
  /^jan/i,
  /^feb/i,
  /^(?:mär|mar)/i,
  /^apr/i,
  /^(?:mai|may)/i,
  /^jun/i,
  /^jul/i,
  /^aug/i,
  /^sep/i,
  /^(?:okt|oct)/i,
  /^nov/i,
  /^(?:dez|dec)/i,
]

/** The last separator is the decimal one, whatever the country. */
const centsOf = (text: string): number => Number(text.replace(/\D/g, ""))

const day = (year: string, month: number, dayOfMonth: string): string =>
  `${year}-${String(month).padStart(2, "0")}-${dayOfMonth.padStart(2, "0")}`

/** The first date in a text, as `2026-11-17`. */
const dateIn = (text: string): string | null => {
  const numeric = /(\d{1,2})\.(\d{1,2})\.(\d{4})/.exec(text)
  if (numeric !== null) return day(numeric[3]!, Number(numeric[2]), numeric[1]!)
  const iso = /\d{4}-\d{2}-\d{2}/.exec(text)
  if (iso !== null) return iso[0]
  const written = /(\d{1,2})\.? (\p{L}{3,}) (\d{4})/u.exec(text)
  if (written === null) return null
  const month = months.findIndex((name) => name.test(written[2]!))
  return month < 0 ? null : day(written[3]!, month + 1, written[1]!)
}

const amountsIn = (line: string): ReadonlyArray<number> => (line.match(amount) ?? []).map(centsOf)

/** The amount at the end of the first line that has the label. */
const amountBy = (lines: ReadonlyArray<string>, label: RegExp): number | null => {
  for (const line of lines) {
    const last = amountsIn(line).at(-1)
    if (label.test(line) && last !== undefined) return last
  }
  return null
}

/** The date after the label, on the first line that has both. */
const dateBy = (lines: ReadonlyArray<string>, label: RegExp): string | null => {
  for (const line of lines) {
    const found = label.exec(line)
    const date = found === null ? null : dateIn(line.slice(found.index))
    if (date !== null) return date
  }
  return null
}

/** What stands between position, quantity, unit, amounts and dots. */
const descriptionIn = (line: string, quantity: string): string =>
  line
    .replace(/^\s*\*\s*/, "")
    .replace(/^\s*\d+(?:[.,]\d+)?\s*x\s+/i, "")
    .replace(/^\s*\d+\s{2,}/, "")
    .replace(/\s(?:@|à)\s.*$/, "")
    .replace(amount, "")
    .replace(new RegExp(`[,\\s]+${quantity.replace(/\W/g, "\\$&")}(?:\\s+\\S+|\\s*€)*\\s*$`), "")
    .trim()

const itemIn = (line: string) => {
  const [unitCents, totalCents, ...more] = amountsIn(line)
  if (unitCents === undefined || totalCents === undefined || more.length > 0) return null
  const numbers = line.replace(amount, " ").match(/(?<![\p{L}\d])\d+(?:[.,]\d+)?(?!\p{L}|\d)/gu) ?? []
  const quantity = numbers.find((text) => Math.round(Number(text.replace(",", ".")) * unitCents) === totalCents)
  if (quantity === undefined) return null
  return {
    description: descriptionIn(line, quantity),
    quantity: Number(quantity.replace(",", ".")),
    unitCents,
    totalCents,
  }
}

/** The seller's name opens the letter; a title that stands alone is none. */
const sellerIn = (lines: ReadonlyArray<string>): string | null => {
  const first = lines.find((line) => line !== "" && !/^(?:rechnung|invoice)$/i.test(line))
  return first?.split(/ · |,|\s{2,}/)[0] ?? null
}

const customerIn = (lines: ReadonlyArray<string>): string | null => {
  for (const [index, line] of lines.entries()) {
    const found = labels.recipient.exec(line)
    if (found !== null) return found[1] !== "" ? found[1]! : (lines[index + 1] ?? null)
  }
  return null
}

/** What the text says, in the shape of an invoice; unchecked. */
export const readByRules = (text: string): unknown => {
  const lines = text.split(/\r?\n/).map((line) => line.trim())
  const items = lines.flatMap((line) => itemIn(line) ?? [])
  const vatLine = lines.find((line) => labels.vat.test(line) && line.includes("%") && amountsIn(line).length > 0)
  const rate = vatLine === undefined ? null : /(\d+(?:[.,]\d+)?)\s?%/.exec(vatLine)
  return {
    number: labels.number.exec(text)?.[1] ?? null,
    seller: sellerIn(lines),
    customer: customerIn(lines),
    // A letter without a label dates itself: "Chur, 9. November 2026".
    issuedOn: dateBy(lines, labels.issued) ?? dateIn(text),
    dueOn: dateBy(lines, labels.due),
    currency: currencies.find(([sign]) => sign.test(text))?.[1] ?? null,
    lines: items,
    netCents: amountBy(lines, labels.net),
    vatPercent: rate === null ? null : Number(rate[1]!.replace(",", ".")),
    vatCents: vatLine === undefined ? null : (amountsIn(vatLine).at(-1) ?? null),
    totalCents: amountBy(lines, labels.total),
  }
}
