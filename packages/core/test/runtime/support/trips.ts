/** Bookings that can be taken back, at a provider that honours keys. */
import { Effect, Layer, Schema } from "effect"
import { OnUnknown, Operation } from "../../../src/index.js"
import type { Bench } from "./bench.js"
import { Provider } from "./operations.js"

const onUnknown = OnUnknown.retryWithKey({ keyWindow: "1 day" })
export const Book = Operation.make("book", {
  payload: Schema.Struct({ what: Schema.String }),
  success: Schema.Struct({ id: Schema.String }),
  failure: Schema.Struct({ full: Schema.String }),
  onUnknown,
  timeout: "1 second",
})
export const Cancel = Operation.make("cancel", {
  payload: Schema.Struct({ id: Schema.String }),
  success: Schema.Void,
  onUnknown,
  timeout: "1 second",
})

export const cancelling = {
  operation: Cancel,
  payload: ({ result }: { readonly result: { readonly id: string } }) => ({ id: result.id }),
}

/** Nobody guides. */
export const bookAt = (provider: Provider) =>
  Book.toLayer((payload, context) =>
    payload.what === "guide"
      ? Effect.fail({ full: "no guide left" })
      : Effect.sync(() => provider.handle(payload, context, () => ({ id: payload.what })) as { id: string }),
  )
export const cancelAt = (provider: Provider) =>
  Cancel.toLayer((payload, context) => Effect.sync(() => void provider.handle(payload, context, () => undefined)))

export const world = () => {
  const booked = new Provider()
  const cancelled = new Provider()
  return { booked, cancelled, needs: Layer.merge(bookAt(booked), cancelAt(cancelled)) as Layer.Layer<any> }
}

/** What was taken back, each once, in the order in which it was first asked for. */
export const order = (provider: Provider): ReadonlyArray<string> => [
  ...new Set(provider.calls.map(({ payload }) => (payload as { id: string }).id)),
]

export const row = (bench: Bench) => Effect.map(bench.driver.findRun("default", "r"), (run) => run!)
