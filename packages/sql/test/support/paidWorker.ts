/**
 * One worker process of a run of twenty paid steps. Its provider writes down what it bills before it answers.
 *
 * *Shape.* Arguments: the provider's log, the run's id, and a pattern of `point:step`, where it kills itself.
 */
import { Cairn, Effects, Faults, Usage, Worker, Workflow, type CheckpointStore, type StoreError } from "@cairn/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import { closeSync, fsyncSync, openSync, writeSync } from "node:fs"

/** What the provider has billed, in micro-dollars: of each step something else. */
export interface Bill {
  readonly step: string
  readonly microDollars: number
}

export const turns = 18

const bill = (log: string, line: Bill): void => {
  const file = openSync(log, "a")
  writeSync(file, `${JSON.stringify(line)}\n`)
  fsyncSync(file)
  closeSync(file)
}

const paying = (log: string) => {
  const ask = (step: string, microDollars: number) =>
    Usage.call(
      { model: "m", atMost: { microDollars: 5_000 }, usage: () => ({ microDollars }) },
      Effect.sync(() => {
        bill(log, { step, microDollars })
        return microDollars
      }),
    )
  return Workflow.make("paying", { version: 1, input: Schema.Null })
    .step("plan", { effects: [Effects.read("m")], output: Schema.Int }, () => ask("plan", 1_000))
    .loop(
      "agent",
      { state: Schema.Int, initial: () => 0, maxIterations: turns, onLimit: "stop" },
      (flow) =>
        flow.step("think", { effects: [Effects.read("m")], output: Schema.Int }, ({ turn }) =>
          ask(`agent[${turn}]/think`, 2_000 + turn),
        ),
      ({ state }) => ({ done: false, state: state + 1 }),
    )
    .step("sum", { effects: [Effects.read("m")], output: Schema.Int }, () => ask("sum", 3_000))
    .output(Schema.Int, ({ results }) => results.sum)
    .compile()
}

/** Runs the worker until its run has ended, and prints how. */
export const pay = async (
  store: Layer.Layer<CheckpointStore, StoreError>,
  [log = "", runId = "", fault = ""]: ReadonlyArray<string>,
): Promise<void> => {
  const faults = Layer.succeed(Faults, {
    reach: (point, { step }) =>
      Effect.sync(() => {
        if (fault !== "" && new RegExp(`^(?:${fault})$`).test(`${point}:${step}`)) process.kill(process.pid, "SIGKILL")
      }),
  })
  const workflow = paying(log)
  const live = Worker.layer({
    workflows: [workflow],
    lease: "1500 millis",
    pollInterval: "50 millis",
    drain: 0,
    maxRecoveries: 50,
  }).pipe(Layer.provide(faults), Layer.provideMerge(store), Layer.provide(Logger.remove(Logger.defaultLogger)))
  const exit = await Effect.runPromise(
    Cairn.start(workflow, null, { runId }).pipe(
      Effect.flatMap((handle) => Effect.exit(handle.result)),
      Effect.provide(live),
    ),
  )
  process.stdout.write(`${Exit.isSuccess(exit) ? String(exit.value) : String(exit.cause)}\n`)
}
