/** Amounts for people to read. */

/** `EUR 1,748.59`, with plain spaces. */
export const inMoney = (cents: number, currency: string): string =>
  new Intl.NumberFormat("en-GB", { style: "currency", currency, currencyDisplay: "code" })
    .format(cents / 100)
    .replace(/\s/g, " ")

/** `$0.001862`: to the micro-dollar. */
export const inDollars = (microDollars: number): string => `$${(microDollars / 1_000_000).toFixed(6)}`
