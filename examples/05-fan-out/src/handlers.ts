/** What `mail.send` does: one HTTP request with the key that Cairn hands over. */
import { NotPerformed } from "@cairn/core"
import { Effect } from "effect"
import { AddressRefused, SendMail } from "./workflow.js"

/** Nobody listened, so nobody did anything. Every other broken connection may have broken after the effect. */
const neverSent = (thrown: unknown): boolean =>
  (thrown as { cause?: { code?: unknown } } | null)?.cause?.code === "ECONNREFUSED"

/** `onAnswer` hears of each answer before anything of it is stored. */
export const mailHandler = (apiUrl: string, onAnswer: () => void = () => {}) =>
  SendMail.toLayer((payload, { idempotencyKey, signal }) =>
    Effect.tryPromise({
      try: async () => {
        const response = await fetch(`${apiUrl}/mails`, {
          method: "POST",
          headers: { "idempotency-key": idempotencyKey },
          body: JSON.stringify(payload),
          signal,
        })
        const body = (await response.json()) as { readonly mail: string }
        onAnswer()
        return { status: response.status, body }
      },
      catch: (thrown) => thrown,
    }).pipe(
      Effect.catchAll((thrown) =>
        neverSent(thrown)
          ? Effect.fail(new NotPerformed({ problem: "nobody listens at the mail API", cause: thrown }))
          : Effect.die(thrown),
      ),
      Effect.flatMap(({ status, body }) => {
        if (status === 202) return Effect.succeed(body)
        if (status === 550) return Effect.fail(new AddressRefused({ address: payload.to }))
        // Whatever else it says, it does not say that nothing was sent.
        return Effect.die(new Error(`The mail API answered ${status}: ${JSON.stringify(body)}`))
      }),
    ),
  )
