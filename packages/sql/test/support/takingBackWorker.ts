/**
 * One worker process whose run has to take back what it did. Its outside world is an append-only file.
 *
 * *Shape.* Arguments: the log, `fails` or `canceled`, and `point:step`, where it kills itself.
 */
import {
  Cairn,
  Faults,
  OnUnknown,
  Operation,
  Worker,
  Workflow,
  type CheckpointStore,
  type StoreError,
} from "@cairn/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import { closeSync, fsyncSync, openSync, writeSync } from "node:fs"

export interface Sent {
  readonly operation: "book" | "unbook"
  readonly key: string
  readonly payload: { readonly what: string }
}

const of = {
  payload: Schema.Struct({ what: Schema.String }),
  onUnknown: OnUnknown.retryWithKey({ keyWindow: "1 day" }),
}
const Book = Operation.make("book", { ...of, success: Schema.Struct({ id: Schema.String }), timeout: "500 millis" })
const Unbook = Operation.make("unbook", { ...of, success: Schema.Void, timeout: "500 millis" })

const booking = (what: string) => ({
  payload: () => ({ what }),
  compensate: {
    operation: Unbook,
    payload: ({ result }: { readonly result: { readonly id: string } }) => ({ what: result.id }),
  },
})

const three = () =>
  Workflow.make("trip", { version: 1, input: Schema.Null })
    .perform("flight", Book, booking("flight"))
    .perform("hotel", Book, booking("hotel"))
    .perform("car", Book, booking("car"))

export const trips = {
  fails: three()
    .step("fails", { effects: [], output: Schema.Void }, () => Effect.fail("for good"))
    .compile(),
  canceled: three()
    .step("waits", { effects: [], output: Schema.Void }, () => Effect.never)
    .compile(),
} as const

const world = (log: string) => {
  const record = (sent: Sent) =>
    Effect.sync(() => {
      const file = openSync(log, "a")
      writeSync(file, `${JSON.stringify(sent)}\n`)
      fsyncSync(file)
      closeSync(file)
    })
  return Layer.merge(
    Book.toLayer((payload, { idempotencyKey: key }) =>
      Effect.as(record({ operation: "book", key, payload }), { id: payload.what }),
    ),
    Unbook.toLayer((payload, { idempotencyKey: key }) => record({ operation: "unbook", key, payload })),
  )
}

/** Runs the worker until its run has ended, and prints how. */
export const takeBack = async (
  store: Layer.Layer<CheckpointStore, StoreError>,
  [log = "", kind = "", fault = ""]: ReadonlyArray<string>,
): Promise<void> => {
  const trip = kind === "fails" ? trips.fails : trips.canceled
  const faults = Layer.succeed(Faults, {
    reach: (point, { step }) =>
      Effect.sync(() => {
        if (`${point}:${step}` === fault) process.kill(process.pid, "SIGKILL")
      }),
  })
  const live = Worker.layer({
    workflows: [trip],
    lease: "600 millis",
    pollInterval: "50 millis",
    drain: 0,
    maxRecoveries: 50,
  }).pipe(
    Layer.provide(world(log)),
    Layer.provide(faults),
    Layer.provideMerge(store),
    Layer.provide(Logger.remove(Logger.defaultLogger)),
  )
  const exit = await Effect.runPromise(
    Cairn.start(trip, null, { runId: "r" }).pipe(
      Effect.flatMap((handle) => Effect.exit(handle.result)),
      Effect.provide(live),
    ),
  )
  const tag = Exit.isFailure(exit) && exit.cause._tag === "Fail" ? exit.cause.error._tag : String(exit)
  process.stdout.write(`${tag}\n`)
}
