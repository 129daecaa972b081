/** Data that a test changes while a run sleeps, and workflows that have read it. */
import { Effect, Schema, type Layer } from "effect"
import { Cairn, DataVersion, Workflow, type AnyWorkflow, type OnStale } from "../../../src/index.js"
import { quiet, startWorker, storeLayer, type Bench } from "./bench.js"

export const flow = (options: object = {}): any =>
  (Workflow.make as any)("w", { version: 1, input: Schema.Null, ...options })

export const done = (built: any, output: any, select: (context: any) => unknown): AnyWorkflow => {
  const workflow = built.output(output, select).compile()
  if (workflow.diagnostics.length > 0) throw new Error(JSON.stringify(workflow.diagnostics))
  return workflow
}

/** Amounts by key, each with a version that grows; how often each was read is counted. */
export const makeShelf = () => {
  const amounts = new Map<string, number>()
  const versions = new Map<string, number>()
  const shelf = {
    /** Captures, those of checks included. */
    looks: 0,
    /** Thrown instead of an answer. */
    trouble: null as Error | null,
    put: (key: string, amount: number): void => {
      amounts.set(key, amount)
      versions.set(key, (versions.get(key) ?? 0) + 1)
    },
    token: (key: string): string => `v${versions.get(key) ?? 0}`,
  }
  const Stock = DataVersion.make("stock", {
    capture: (key: string) =>
      Effect.suspend(() => {
        shelf.looks += 1
        if (shelf.trouble !== null) return Effect.fail(shelf.trouble)
        return Effect.succeed({ value: amounts.get(key) ?? 0, token: shelf.token(key) })
      }),
  })
  shelf.put("a", 1)
  return { shelf, Stock }
}

export const start = (bench: Bench, workflow: AnyWorkflow, runId = "r") =>
  Effect.provide(Cairn.start(workflow, null, { runId }), storeLayer(bench.store))

export const provided = <A, E>(bench: Bench, effect: Effect.Effect<A, E, any>) =>
  Effect.provide(effect, storeLayer(bench.store)) as Effect.Effect<A, E>

export const row = (bench: Bench, runId = "r") => Effect.map(bench.driver.findRun("default", runId), (run) => run!)

/** Waits until the run stands like this, at a later commit than the given one. */
export const until = (bench: Bench, status: string, after = 0) =>
  Effect.repeat(Effect.zipRight(Effect.sleep(10), row(bench)), {
    until: (run) => run.status === status && run.seq > after,
  })

export const worker = (bench: Bench, workflow: AnyWorkflow, needs?: Layer.Layer<any>) =>
  Effect.provide(startWorker(bench.store, { workflows: [workflow] }, needs), quiet)

/** What a person is asked about the run. */
export const parkedOf = (bench: Bench) =>
  Effect.map(
    row(bench),
    ({ parked }) => JSON.parse(parked ?? "null") as { reason: string; step: string; problem: string },
  )

export const number = { effects: [], output: Schema.Number } as const

/** A step that reads 'a', a sleep, a step that uses what was read, and as much of it again. */
export const quoting = (onStale: OnStale | undefined, options: object = {}) => {
  const { shelf, Stock } = makeShelf()
  const calls: Array<string> = []
  const built = flow(options)
    .step(
      "quote",
      { effects: [Stock], output: Schema.Number, ...(onStale === undefined ? {} : { onStale }) },
      function* (): any {
        calls.push("quote")
        return yield* Stock.read("a")
      },
    )
    .sleep("night", "5 seconds")
    .step("use", number, ({ results }: any) => {
      calls.push("use")
      return results.quote * 10
    })
    .sleep("day", "5 seconds")
  return { shelf, calls, workflow: done(built, Schema.Number, ({ results }) => results.use) }
}

/** What the steps of the workflow's own scope have noted: path, seq, reads. */
export const notes = (bench: Bench) =>
  Effect.map(
    bench.driver.loadSteps({
      ...{ namespace: "default", runId: "r", newestFirst: false, after: null, limit: null, withResults: true },
      scopes: [":data/"],
    }),
    (steps) => steps.map(({ path, result, seq }) => [path, seq, JSON.parse(result ?? "null")]),
  )
