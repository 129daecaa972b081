/** What an invoice says, and what must hold before anybody is charged for it. */
import { Schema } from "effect"
import { addsUp } from "./arithmetic.js"

/** Hundredths of the currency. */
const Cents = Schema.Int

const Day = Schema.String.pipe(Schema.pattern(/^\d{4}-\d{2}-\d{2}$/, { message: () => "a day reads like 2026-11-17" }))

export const InvoiceLine = Schema.Struct({
  description: Schema.NonEmptyString,
  quantity: Schema.Number.pipe(Schema.positive()),
  unitCents: Cents,
  totalCents: Cents,
})

const Fields = Schema.Struct({
  number: Schema.NonEmptyString,
  seller: Schema.NonEmptyString,
  customer: Schema.NonEmptyString,
  issuedOn: Day,
  dueOn: Day,
  currency: Schema.Literal("EUR", "GBP", "CHF", "USD"),
  lines: Schema.Array(InvoiceLine).pipe(Schema.minItems(1)),
  netCents: Cents,
  vatPercent: Schema.Number.pipe(Schema.nonNegative()),
  vatCents: Cents,
  totalCents: Cents.pipe(Schema.positive()),
})

/** The gate in front of the commit: nothing that fails here reaches the payment step. */
export const Invoice = Fields.pipe(Schema.filter(addsUp))
export type Invoice = typeof Invoice.Type

/** The same without the arithmetic: what a model is asked for. */
export const invoiceFields = Fields
