/** What is sent to the providers, for Cairn and for the plain retry alike. */
import type { Invoice } from "./invoice.js"
import { inMoney } from "./money.js"
import type { ChargeRequest } from "./providers/payments.js"
import type { MailRequest } from "./providers/mail.js"

export const chargeFor = (card: string, invoice: Invoice): ChargeRequest => ({
  card,
  amountCents: invoice.totalCents,
  currency: invoice.currency,
  invoice: invoice.number,
})

export const receiptFor = (to: string, invoice: Invoice, chargeId: string): MailRequest => ({
  to,
  subject: `Receipt for invoice ${invoice.number}`,
  body: `${inMoney(invoice.totalCents, invoice.currency)} to ${invoice.seller}, charged as ${chargeId}.`,
  invoice: invoice.number,
})
