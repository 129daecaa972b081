/** What the workers of these tests run: a step, an operation, a step; and the trouble that a test asks for. */
import { OnUnknown, Operation, Workflow } from "@cairn/core"
import { Clock, Effect, Schema } from "effect"
import { appendFileSync, existsSync, readFileSync } from "node:fs"

/** What the outside world has seen. */
export interface Sent {
  readonly key: string
  readonly order: number
  readonly by: string
  /** By the clock of who sent it. */
  readonly at: number
}

export const Charge = Operation.make("payments.charge", {
  payload: Schema.Struct({ order: Schema.Int }),
  success: Schema.Struct({ id: Schema.String }),
  onUnknown: OnUnknown.retryWithKey({ keyWindow: "1 day", maxSends: 100 }),
  // An unknown outcome is resolved after lease and timeout.
  timeout: "300 millis",
})

/** An append-only file: it outlives who writes to it. */
export const chargesTo = (log: string, by: string) =>
  Charge.toLayer(({ order }, { idempotencyKey }) =>
    Effect.map(Clock.currentTimeMillis, (at) => {
      appendFileSync(log, `${JSON.stringify({ key: idempotencyKey, order, by, at } satisfies Sent)}\n`)
      return { id: `charge of ${order}` }
    }),
  )

export const sentTo = (log: string): ReadonlyArray<Sent> =>
  existsSync(log)
    ? readFileSync(log, "utf8")
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line) as Sent)
    : []

const input = Schema.Struct({ order: Schema.Int })

const nameOfProcess = (): string =>
  (JSON.parse(process.env["CHAOS_ORDERS"] ?? "{}") as { name?: string }).name ?? "test"

export const order = Workflow.make("order", { version: 1, input })
  .step("price", { effects: [], output: Schema.Int }, ({ input }) => input.order * 100)
  .perform("charge", Charge, { payload: ({ input }) => ({ order: input.order }) })
  .step("close", { effects: [], output: Schema.String }, ({ results }) => `closed ${results.charge.id}`)
  .output(Schema.String, ({ results }) => results.close)
  .compile()

export const orderSteps = ["price", "charge", "close"]

/** Its first step keeps the event loop busy: no timer of the process fires, no heartbeat leaves it. */
export const stalling = Workflow.make("stalling", { version: 1, input })
  .step("stall", { effects: [], output: Schema.String }, () => {
    const { stallUntil } = JSON.parse(process.env["CHAOS_ORDERS"] ?? "{}") as { stallUntil?: string }
    if (stallUntil !== undefined) process.stdout.write(`{"event":"stalls"}\n`)
    while (stallUntil !== undefined && !existsSync(stallUntil));
    return nameOfProcess()
  })
  .perform("charge", Charge, { payload: ({ input }) => ({ order: input.order }) })
  .step("close", { effects: [], output: Schema.String }, ({ results }) => results.stall)
  .output(Schema.String, ({ results }) => results.close)
  .compile()

/** A clock that is off by so much, and goes as fast as the real one. */
export const clockOff = (ms: number): Clock.Clock => {
  const real = Clock.make()
  return {
    [Clock.ClockTypeId]: Clock.ClockTypeId,
    sleep: (duration) => real.sleep(duration),
    unsafeCurrentTimeMillis: () => real.unsafeCurrentTimeMillis() + ms,
    unsafeCurrentTimeNanos: () => real.unsafeCurrentTimeNanos() + BigInt(ms) * 1_000_000n,
    currentTimeMillis: Effect.map(real.currentTimeMillis, (now) => now + ms),
    currentTimeNanos: Effect.map(real.currentTimeNanos, (now) => now + BigInt(ms) * 1_000_000n),
  }
}

/** Takes what is sent to it and what people decide, in the midst of whatever else it does. */
export const mailed = Workflow.make("mailed", { version: 1, input: Schema.Struct({ napMs: Schema.Int }) })
  .step("before", { effects: [], output: Schema.Null }, ({ input }) => Effect.as(Effect.sleep(input.napMs), null))
  .signal("first", { schema: Schema.Int, signal: "number" })
  .review("approve", {
    decision: Schema.Struct({ note: Schema.String }),
    show: ({ results }) => results.first,
    deadline: "1 hour",
    onReject: "continue",
    onTimeout: "fail",
  })
  .signal("second", { schema: Schema.Int, signal: "number" })
  .output(Schema.Struct({ numbers: Schema.Array(Schema.Int), by: Schema.String }), ({ results }) => ({
    numbers: [results.first, results.second],
    by: results.approve.by,
  }))
  .compile()
