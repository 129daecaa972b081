/** What `bank.payOut` does: one HTTP request with the key that Cairn hands over. */
import { NotPerformed } from "@cairn/core"
import { Effect } from "effect"
import { PayOut } from "./workflow.js"

/** Nobody listened, so nobody did anything. Every other broken connection may have broken after the effect. */
const neverSent = (thrown: unknown): boolean =>
  (thrown as { cause?: { code?: unknown } } | null)?.cause?.code === "ECONNREFUSED"

export const payOutHandler = (bankUrl: string) =>
  PayOut.toLayer((payload, { idempotencyKey, signal }) =>
    Effect.tryPromise({
      try: async () => {
        const response = await fetch(`${bankUrl}/transfers`, {
          method: "POST",
          headers: { "idempotency-key": idempotencyKey },
          body: JSON.stringify(payload),
          signal,
        })
        if (!response.ok) throw new Error(`The bank answered ${response.status}: ${await response.text()}`)
        return (await response.json()) as { readonly transfer: string }
      },
      catch: (thrown) => thrown,
    }).pipe(
      Effect.catchAll((thrown) =>
        neverSent(thrown)
          ? Effect.fail(new NotPerformed({ problem: "nobody listens at the bank", cause: thrown }))
          : Effect.die(thrown),
      ),
    ),
  )
