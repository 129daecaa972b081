/**
 * One worker process of a run that carries a window. Its model writes down what it is sent.
 *
 * *Shape.* Arguments: the log, the run's id, and a pattern of `point:step`, where it kills itself.
 */
import {
  Cairn,
  Effects,
  Faults,
  Worker,
  Workflow,
  type CheckpointStore,
  type StoreError,
  type StoreWithTransactions,
} from "@cairn/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import { closeSync, fsyncSync, openSync, writeSync } from "node:fs"

/** What the model was sent, and from where. */
export interface Sent {
  readonly place: string
  readonly text: string
}

class Model extends Context.Tag("Model")<
  Model,
  { readonly ask: (place: string, window: Window) => Effect.Effect<string> }
>() {}

const Window = Schema.Struct({ notes: Schema.Array(Schema.String), scores: Schema.Array(Schema.Number) })
type Window = typeof Window.Type

/** Texts that a store could bend: control characters, half a pair, both kinds of line ends, quotes, and looks like JSON. */
const hard = ["\u0000\u0007", "\ud800", "é\u0301 😀", "a\r\nb\n", `"\\" {"a":1}`, "  "]

const ask = (place: string, window: Window) => Effect.flatMap(Model, (model) => model.ask(place, window))

const adding =
  (note: string, score: number) =>
  ({ notes, scores }: Window): Window => ({ notes: [...notes, note], scores: [...scores, score] })

export const carrying = Workflow.make("carrying", {
  version: 1,
  input: Schema.Null,
  window: {
    schema: Window,
    initial: { notes: [hard[2]!], scores: [0.1] },
    maxBytes: 120,
    compact: {
      effects: [Effects.read(Model)],
      run: ({ window }) =>
        Effect.map(ask(`compact ${window.notes.length} ${window.scores.at(-1)}`, window), (answer) => ({
          notes: [answer.slice(0, 30)],
          scores: window.scores.slice(-1),
        })),
    },
  },
})
  .step("plan", { effects: [Effects.read(Model)], output: Schema.String }, ({ window }) => ask("plan", window))
  .loop(
    "turns",
    { state: Schema.Int, initial: () => 0, maxIterations: 6, onLimit: "stop" },
    (flow) =>
      flow
        .step("think", { effects: [Effects.read(Model)], output: Schema.String }, ({ changeWindow, turn, window }) => {
          changeWindow(adding(hard[turn % hard.length]!, 1 / (turn + 3)))
          return ask(`turn ${turn}`, window)
        })
        .step(
          "book",
          { effects: [Effects.transaction], output: Schema.Void },
          async ({ changeWindow, query, turn }) => {
            await query("select 1")
            changeWindow(adding(`booked ${turn}`, -0))
          },
        ),
    ({ state }) => ({ done: false, state: state + 1 }),
  )
  .parallel("arms", {
    a: (flow) =>
      flow.step("x", { effects: [], output: Schema.Void }, ({ changeWindow }) => changeWindow(adding("x", 1))),
    b: (flow) =>
      flow.step("y", { effects: [], output: Schema.Void }, ({ changeWindow }) => changeWindow(adding("y", 1))),
  })
  .output(Schema.Int, ({ window }) => window.notes.length)
  .compile()

const model = (log: string) =>
  Layer.succeed(Model, {
    ask: (place, window) =>
      Effect.sync(() => {
        const file = openSync(log, "a")
        writeSync(file, `${JSON.stringify({ place, text: JSON.stringify(window) } satisfies Sent)}\n`)
        fsyncSync(file)
        closeSync(file)
        return `${place}: ${hard.join("")}`
      }),
  })

/** Runs the worker until its run has ended, and prints how. */
export const carry = async (
  store: Layer.Layer<CheckpointStore | StoreWithTransactions, StoreError>,
  [log = "", runId = "", fault = ""]: ReadonlyArray<string>,
): Promise<void> => {
  const faults = Layer.succeed(Faults, {
    reach: (point, { step }) =>
      Effect.sync(() => {
        if (fault !== "" && new RegExp(`^(?:${fault})$`).test(`${point}:${step}`)) process.kill(process.pid, "SIGKILL")
      }),
  })
  const live = Worker.layer({
    workflows: [carrying],
    lease: "600 millis",
    pollInterval: "50 millis",
    drain: 0,
    maxRecoveries: 50,
  }).pipe(
    Layer.provide(model(log)),
    Layer.provide(faults),
    Layer.provideMerge(store),
    Layer.provide(Logger.remove(Logger.defaultLogger)),
  )
  const exit = await Effect.runPromise(
    Cairn.start(carrying, null, { runId }).pipe(
      Effect.flatMap((handle) => Effect.exit(handle.result)),
      Effect.provide(live),
    ),
  )
  process.stdout.write(`${Exit.isSuccess(exit) ? String(exit.value) : String(exit.cause)}\n`)
}
