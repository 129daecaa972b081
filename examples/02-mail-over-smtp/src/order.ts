/** An order, and the letter that confirms it. Cairn and the plain retry write the same one. */
import { Schema } from "effect"

export const Order = Schema.Struct({
  number: Schema.NonEmptyString,
  email: Schema.String,
  name: Schema.String,
  lines: Schema.NonEmptyArray(
    Schema.Struct({
      title: Schema.String,
      copies: Schema.Int.pipe(Schema.positive()),
      priceCents: Schema.Int.pipe(Schema.nonNegative()),
    }),
  ),
})
export type Order = typeof Order.Type

/** What is sent. It goes to one recipient: a server may take a message for some and refuse it for others. */
export const Letter = Schema.Struct({
  order: Schema.String,
  to: Schema.String,
  subject: Schema.String,
  text: Schema.String,
})
export type Letter = typeof Letter.Type

const inEuros = (cents: number): string => `EUR ${(cents / 100).toFixed(2)}`

export const letterFor = ({ number, email, name, lines }: Order): Letter => ({
  order: number,
  to: email,
  subject: `Your order ${number}`,
  text: [
    `Dear ${name},`,
    "",
    "thank you. These are on their way to you:",
    "",
    ...lines.map(({ title, copies, priceCents }) => `  ${copies} x ${title}, ${inEuros(copies * priceCents)}`),
    "",
    `Together ${inEuros(lines.reduce((sum, { copies, priceCents }) => sum + copies * priceCents, 0))}.`,
    "",
  ].join("\n"),
})
