/** Trips that are canceled: what the tests of law X5 share. */
import { Effect, Schema } from "effect"
import {
  Cairn,
  Workflow,
  type AnyWorkflow,
  type CancelOptions,
  type CheckpointStoreService,
} from "../../../src/index.js"
import { storeLayer, type Bench } from "./bench.js"
import { Book, cancelling, row } from "./trips.js"

export const start = (bench: Bench, workflow: AnyWorkflow) =>
  Effect.provide(Cairn.start(workflow, null, { runId: "r" }), storeLayer(bench.store))

export const cancel = (store: CheckpointStoreService, of: Partial<CancelOptions> = {}) =>
  Effect.provide(Cairn.cancel({ runId: "r", ...of }), storeLayer(store))

export const until = (bench: Bench, so: (status: string) => boolean) =>
  Effect.repeat(Effect.zipRight(Effect.sleep(10), row(bench)), { until: ({ status }) => so(status) })

export const canceled = (reason: string | null = null) => ({ _tag: "RunCanceled", runId: "r", reason })

export const booking = (what: string, rest: object = {}) => ({
  payload: () => ({ what }),
  compensate: cancelling,
  ...rest,
})

type Make = (flow: any) => any

/** Two bookings, and whatever follows. */
export const trip = (then: Make): AnyWorkflow =>
  then(
    Workflow.make("trip", { version: 1, input: Schema.Null })
      .perform("flight", Book, booking("flight"))
      .perform("hotel", Book, booking("hotel")),
  ).compile()

export const whole = trip((flow) =>
  flow
    .perform("car", Book, booking("car"))
    .step("thanks", { effects: [], output: Schema.Null }, () => Effect.succeed(null)),
)

export const steps = (bench: Bench) =>
  Effect.map(bench.driver.load("default", "r"), (all) => all!.steps.map(({ path }) => path))
