/** Workflows whose runs carry a window: what the tests of windows share. */
import { Effect, Exit, Schema, type Layer } from "effect"
import { expect } from "vitest"
import { Cairn, Workflow, type AnyWorkflow, type StepRecord } from "../../../src/index.js"
import { startWorker, storeLayer, type Bench } from "./bench.js"
import { errorOf } from "./paying.js"

export const Notes = Schema.Struct({ notes: Schema.Array(Schema.String) })
type Notes = typeof Notes.Type

export const carrying = (window: object = {}, rest: object = {}): any =>
  (Workflow.make as any)("w", {
    version: 1,
    input: Schema.Null,
    window: { schema: Notes, initial: { notes: [] }, ...window },
    ...rest,
  })

export const none = { effects: [], output: Schema.Void } as const
export const number = { effects: [], output: Schema.Number } as const
export const text = { effects: [], output: Schema.String } as const

/** Adds a note to the window as it stands. */
export const noting =
  (note: string) =>
  ({ changeWindow }: any): void =>
    changeWindow(({ notes }: Notes) => ({ notes: [...notes, note] }))

/** The workflow, with the notes of its last window as its output. */
export const showing = (built: any): AnyWorkflow =>
  done(built.output(Schema.Array(Schema.String), ({ window }: any) => window.notes))

export const done = (built: any): AnyWorkflow => {
  const workflow = built.compile()
  expect(workflow.diagnostics).toEqual([])
  return workflow
}

export const provided = <A, E>(bench: Bench, effect: Effect.Effect<A, E, any>) =>
  Effect.provide(effect, storeLayer(bench.store)) as Effect.Effect<A, E>

export const start = (bench: Bench, workflow: AnyWorkflow, runId = "r") =>
  provided(bench, Cairn.start(workflow, null, { runId }))

/** Runs a workflow to its end on a worker of its own. */
export const ended = (bench: Bench, workflow: AnyWorkflow, needs?: Layer.Layer<any>, runId = "r") =>
  Effect.gen(function* () {
    yield* startWorker(bench.store, { workflows: [workflow] }, needs)
    return yield* Effect.exit((yield* start(bench, workflow, runId)).result)
  }).pipe(Effect.scoped) as Effect.Effect<Exit.Exit<any, any>, any>

/** What a run has put out, or how it failed. */
export const outcomeOf = (exit: Exit.Exit<any, any>): any => (Exit.isSuccess(exit) ? exit.value : errorOf(exit))

/** All states of the window, the first one first. */
export const states = (bench: Bench, runId = "r"): Effect.Effect<ReadonlyArray<StepRecord>, any> =>
  bench.driver.loadSteps({
    namespace: "default",
    runId,
    scopes: [":window["],
    newestFirst: false,
    after: null,
    limit: null,
    withResults: true,
  })

export const texts = (bench: Bench, runId = "r") =>
  Effect.map(states(bench, runId), (records) => records.map(({ result }) => result))

/** What the worker reads of steps, from its store's side. */
export const reading = (bench: Bench) => {
  const scopes: Array<string> = []
  const { loadSteps } = bench.driver
  const driver = {
    ...bench.driver,
    loadSteps: (query: Parameters<typeof loadSteps>[0]) => {
      scopes.push(`${(query.scopes ?? ["*"]).join()} ${query.limit}`)
      return loadSteps(query)
    },
  }
  return { driver, scopes }
}
