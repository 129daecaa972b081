/**
 * What the operations do: an HTTP request with the key that Cairn hands over.
 *
 * A handler sorts what comes back into Cairn's three endings: a success; a failure after which nothing has happened
 * (declared, or `NotPerformed`); anything else is thrown, and means that nobody knows.
 */
import { NotPerformed } from "@cairn/core"
import { Effect, Layer } from "effect"
import { CardDeclined, ChargeCard, SendEmail } from "./workflow.js"

/** A provider's answer, for the handlers and for who watches them. */
export interface Answered {
  readonly status: number
  readonly replayed: boolean
  readonly id: string
}

export interface Addresses {
  readonly paymentsUrl: string
  readonly mailUrl: string
}

type OnAnswer = (step: "charge" | "email", invoice: string, answered: Answered) => void

interface Problem {
  readonly error?: { readonly code: string; readonly message: string }
}

/** Nobody listened, so nobody did anything. Every other broken connection may have broken after the effect. */
const neverSent = (thrown: unknown): boolean =>
  ((thrown as { cause?: { code?: unknown } } | null)?.cause?.code ?? null) === "ECONNREFUSED"

const retryAfter = (response: Response): { retryAfterMs?: number } => {
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN)
  return Number.isFinite(seconds) ? { retryAfterMs: seconds * 1000 } : {}
}

const post = (
  url: string,
  payload: unknown,
  { idempotencyKey, signal }: { readonly idempotencyKey: string; readonly signal: AbortSignal },
): Effect.Effect<{ readonly response: Response; readonly body: unknown }, NotPerformed> =>
  Effect.tryPromise({
    try: async () => {
      const response = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json", "idempotency-key": idempotencyKey },
        body: JSON.stringify(payload),
        signal,
      })
      return { response, body: (await response.json()) as unknown }
    },
    catch: (thrown) => thrown,
  }).pipe(
    Effect.catchAll((thrown) =>
      neverSent(thrown)
        ? Effect.fail(new NotPerformed({ problem: `${url} refused the connection`, cause: thrown }))
        : Effect.die(thrown),
    ),
    Effect.filterOrFail(
      // Both providers document these two as "turned away before anything was done".
      ({ response }) => response.status !== 429 && response.status !== 503,
      ({ response }) => new NotPerformed({ problem: `${url} answered ${response.status}`, ...retryAfter(response) }),
    ),
  )

/**
 * The id in a success. Everything else is thrown. That goes for 409 and 422 too: they say that *this* request did
 * nothing, but with the same key an earlier one may have, so a new key would be wrong.
 */
const idOf = ({ response, body }: { readonly response: Response; readonly body: unknown }): Effect.Effect<Answered> =>
  response.ok
    ? Effect.succeed({
        status: response.status,
        replayed: response.headers.get("idempotent-replayed") === "true",
        id: (body as { readonly id: string }).id,
      })
    : Effect.die(new Error(`${response.url} answered ${response.status}: ${JSON.stringify(body)}`))

export const handlers = ({ paymentsUrl, mailUrl }: Addresses, onAnswer: OnAnswer = () => {}) =>
  Layer.mergeAll(
    ChargeCard.toLayer((payload, context) =>
      Effect.gen(function* () {
        const answer = yield* post(`${paymentsUrl}/charges`, payload, context)
        const { error } = answer.body as Problem
        if (answer.response.status === 402 && error !== undefined) return yield* new CardDeclined(error)
        const answered = yield* idOf(answer)
        onAnswer("charge", payload.invoice, answered)
        return { id: answered.id }
      }),
    ),
    SendEmail.toLayer((payload, context) =>
      Effect.gen(function* () {
        const answered = yield* Effect.flatMap(post(`${mailUrl}/mails`, payload, context), idOf)
        onAnswer("email", payload.invoice, answered)
        return { id: answered.id }
      }),
    ),
  )
