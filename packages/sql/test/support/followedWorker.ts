/**
 * One worker process of a run that a client follows: turns and items, operations, and attempts that fail.
 *
 * *Shape.* Arguments: `point:step`, where it kills itself.
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

const Send = Operation.make("send", {
  payload: Schema.String,
  success: Schema.String,
  timeout: "300 millis",
  onUnknown: OnUnknown.retryWithKey({ keyWindow: "1 day" }),
})

const tried = new Set<string>()

/** Fails the first time in each process. */
const flaky = (what: string): Effect.Effect<string, Error> =>
  Effect.suspend(() => {
    if (tried.has(what)) return Effect.succeed(what)
    tried.add(what)
    return Effect.fail(new Error("not yet"))
  })

export const followed = Workflow.make("followed", { version: 1, input: Schema.Null })
  .step("read", { effects: [], output: Schema.String }, () => "text")
  .loop(
    "agent",
    { state: Schema.Int, initial: () => 0, maxIterations: 5, onLimit: "stop" },
    (flow) =>
      flow
        .step("think", { effects: [], output: Schema.String, retry: { times: 5, delay: "1 millis" } }, ({ turn }) =>
          flaky(`turn ${turn}`),
        )
        .perform("tell", Send, { payload: ({ results }) => results.think }),
    ({ state }) => ({ done: false, state: state + 1 }),
  )
  .forEach(
    "each",
    { items: () => ["a", "b", "c", "d", "e", "f"], key: (item) => item, concurrency: 3, onFailure: "collect" },
    (flow) =>
      flow
        .step("check", { effects: [], output: Schema.String }, ({ item }) =>
          item === "b" ? Effect.fail(new Error("no such item")) : item,
        )
        .perform("send", Send, { payload: ({ results }) => results.check }),
  )
  .output(Schema.Int, ({ results }) => results.agent)
  .compile()

/** Runs the worker until its run has ended, and prints how. */
export const follow = async (
  store: Layer.Layer<CheckpointStore, StoreError>,
  [fault = ""]: ReadonlyArray<string>,
): Promise<void> => {
  const faults = Layer.succeed(Faults, {
    reach: (point, { step }) =>
      Effect.sync(() => {
        if (`${point}:${step}` === fault) process.kill(process.pid, "SIGKILL")
      }),
  })
  const live = Worker.layer({
    workflows: [followed],
    lease: "600 millis",
    pollInterval: "50 millis",
    drain: 0,
    maxRecoveries: 50,
  }).pipe(
    Layer.provide(Send.toLayer((payload) => Effect.succeed(payload))),
    Layer.provide(faults),
    Layer.provideMerge(store),
    Layer.provide(Logger.remove(Logger.defaultLogger)),
  )
  const exit = await Effect.runPromise(
    Cairn.start(followed, null, { runId: "r" }).pipe(
      Effect.flatMap((handle) => Effect.exit(handle.result)),
      Effect.provide(live),
    ),
  )
  process.stdout.write(`${Exit.isSuccess(exit) ? String(exit.value) : String(exit.cause)}\n`)
}
