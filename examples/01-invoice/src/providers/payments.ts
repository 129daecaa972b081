/** A payment provider: it charges cards. */
import type { Endpoint } from "./idempotentApi.js"

export interface ChargeRequest {
  readonly card: string
  readonly amountCents: number
  readonly currency: string
  readonly invoice: string
}

export interface Charge extends ChargeRequest {
  readonly id: string
}

/** Like the test cards of real providers: this one is always declined. */
export const declinedCard = "card_declined"

const isChargeRequest = (body: unknown): body is ChargeRequest => {
  const fields = Object(body) as Partial<Record<keyof ChargeRequest, unknown>>
  return (
    typeof fields.card === "string" &&
    typeof fields.invoice === "string" &&
    typeof fields.currency === "string" &&
    /^[A-Z]{3}$/.test(fields.currency) &&
    Number.isSafeInteger(fields.amountCents) &&
    (fields.amountCents as number) > 0
  )
}

export const payments: Endpoint<ChargeRequest, Charge> = {
  name: "payments",
  path: "/charges",
  parse: (body) => (isChargeRequest(body) ? body : null),
  perform: (payload, count) => {
    if (payload.card === declinedCard) {
      const error = { code: "card_declined", message: "The bank declined this card." }
      return { answer: { status: 402, body: { error } }, done: null }
    }
    const charge = { id: `ch_${String(count + 1).padStart(4, "0")}`, ...payload }
    return { answer: { status: 201, body: { id: charge.id } }, done: charge }
  },
}
