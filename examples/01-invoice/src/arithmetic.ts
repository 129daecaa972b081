/** Whether an invoice's figures agree with each other. A model that misread one of them is caught here. */

interface Figures {
  readonly lines: ReadonlyArray<{
    readonly description: string
    readonly quantity: number
    readonly unitCents: number
    readonly totalCents: number
  }>
  readonly netCents: number
  readonly vatPercent: number
  readonly vatCents: number
  readonly totalCents: number
  readonly issuedOn: string
  readonly dueOn: string
}

/** Why an invoice contradicts itself; true if it does not. */
export const addsUp = (invoice: Figures): true | string => {
  for (const line of invoice.lines) {
    if (Math.round(line.quantity * line.unitCents) !== line.totalCents)
      return `'${line.description}': ${line.quantity} times ${line.unitCents} is not ${line.totalCents}`
  }
  const sum = invoice.lines.reduce((total, line) => total + line.totalCents, 0)
  if (sum !== invoice.netCents) return `the lines add up to ${sum}, the net amount says ${invoice.netCents}`
  if (Math.abs((invoice.netCents * invoice.vatPercent) / 100 - invoice.vatCents) > 1)
    return `${invoice.vatPercent} % of ${invoice.netCents} is not ${invoice.vatCents}`
  if (invoice.netCents + invoice.vatCents !== invoice.totalCents)
    return `net ${invoice.netCents} and VAT ${invoice.vatCents} are not ${invoice.totalCents}`
  if (invoice.dueOn < invoice.issuedOn)
    return `it is due on ${invoice.dueOn}, before it was issued on ${invoice.issuedOn}`
  return true
}
