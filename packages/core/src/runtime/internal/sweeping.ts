/** A worker takes away what is kept for people and was kept long enough (D43): some time after it has begun, then once a day. */
import * as Effect from "effect/Effect"
import type { Core } from "./ownership.js"

/** Not at once: workers that are started together, or again and again, have other things to do. */
const firstMs = 3_600_000
const everyMs = 86_400_000

/** Taken away in one transaction. */
const batch = 500

const sweep = (core: Core, olderThanMs: number): Effect.Effect<void> => {
  const { namespace } = core.settings
  return core.store.forgetOutputs({ namespace, olderThanMs, limit: batch }).pipe(
    Effect.repeat({ until: (count) => count < batch }),
    Effect.catchAllCause((cause) => Effect.logWarning("the worker could not take old rejected outputs away", cause)),
    Effect.asVoid,
  )
}

/** Ends by interruption. Where they are kept for ever it does nothing. */
export const keepSweeping = (core: Core): Effect.Effect<void> => {
  const { keepRejectedMs } = core.settings
  if (keepRejectedMs === Number.POSITIVE_INFINITY) return Effect.void
  const rounds = Effect.forever(Effect.zipRight(sweep(core, keepRejectedMs), Effect.sleep(everyMs)))
  return Effect.zipRight(Effect.sleep(firstMs), rounds)
}
