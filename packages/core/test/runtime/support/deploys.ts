/** Workflows as two deploys have them, and a run that comes from one to the other. */
import { Effect, Schema } from "effect"
import { expect } from "vitest"
import { OnUnknown, Operation, Workflow, type AnyWorkflow, type FaultPoint } from "../../../src/index.js"
import type { Bench } from "./bench.js"
import { crashAt, resumeOn } from "./paying.js"

export type Flow = (flow: any) => any

export const flow = (name = "w"): any => (Workflow.make as any)(name, { version: 1, input: Schema.Null })
/** What a deploy changes stands between two steps. */
export const around = (inner: Flow): AnyWorkflow => {
  const first = flow().step("a", { effects: [], output: Schema.Int }, () => 1)
  const workflow = inner(first)
    .step("z", { effects: [], output: Schema.Int }, () => 2)
    .output(Schema.Int, ({ results }: any) => results.z)
    .compile()
  expect(workflow.diagnostics).toEqual([])
  return workflow
}

export const operation = (name: string, onUnknown: any): any =>
  Operation.make(name, { payload: Schema.Int, success: Schema.Int, onUnknown, timeout: "1 second" })
export const op = operation("op", OnUnknown.retryWithKey({ keyWindow: "24 hours" }))
export const careful = operation("careful", OnUnknown.review())

/** Handlers of an operation, and the keys under which it was sent. */
export const sender = (of: any) => {
  const keys: Array<string> = []
  const layer = of.toLayer((_: unknown, { idempotencyKey }: any) => Effect.sync(() => keys.push(idempotencyKey)))
  return { keys, layer }
}

export const same: Flow = (flow) => flow
export const step =
  (name: string): Flow =>
  (flow) =>
    flow.step(name, { effects: [], output: Schema.Int }, () => 3)
export const perform =
  (name: string, of = op): Flow =>
  (flow) =>
    flow.perform(name, of, { payload: () => 1 })
export const both =
  (...all: ReadonlyArray<Flow>): Flow =>
  (flow) =>
    all.reduce((built, add) => add(built), flow)
export const loop =
  (name: string, body: Flow = perform("pay")): Flow =>
  (flow) =>
    flow.loop(name, { state: Schema.Int, initial: () => 0, maxIterations: 3 }, body, ({ turn }: any) => ({
      done: turn === 1,
      state: 1,
    }))
export const each =
  (name: string, body: Flow = perform("pay"), concurrency = 1): Flow =>
  (flow) =>
    flow.forEach(
      name,
      { items: () => ["k1", "k2", "k3"], item: Schema.String, key: (key: string) => key, concurrency },
      body,
    )
export const branch =
  (name: string, body: Flow, label = "x"): Flow =>
  (flow) =>
    flow.branch(name, () => label, { [label]: body })
export const match =
  (name: string, body: Flow): Flow =>
  (flow) =>
    flow.match(name, "_tag", () => ({ _tag: "x" }), { x: body })
export const parallel =
  (name: string, arms: Record<string, Flow>): Flow =>
  (flow) =>
    flow.parallel(name, arms)
export const sleep =
  (name: string): Flow =>
  (flow) =>
    flow.sleep(name, "2 hours")
export const signal =
  (name: string): Flow =>
  (flow) =>
    flow.signal(name, { schema: Schema.Int, timeout: "2 hours", onTimeout: "continue" })
export const review =
  (name: string): Flow =>
  (flow) =>
    flow.review(name, {
      ...{ decision: Schema.Int, show: () => 1, deadline: "2 hours" },
      ...{ onReject: "continue", onTimeout: "reject" },
    })
export const kid = flow("kid").sleep("nap", "2 hours").compile()
export const child =
  (name: string): Flow =>
  (flow) =>
    flow.child(name, kid, { input: () => null })

/** Runs one plan until its worker dies, then another; says how it ended, and what was sent by then and after. */
export const deployed = (
  bench: Bench,
  [before, after]: readonly [Flow, Flow],
  [point, path]: readonly [FaultPoint, string],
  of = op,
) =>
  Effect.gen(function* () {
    const { keys, layer } = sender(of)
    const [one, two] = [around(before), around(after)]
    yield* crashAt(bench, one, layer, point, path, { workflows: [one, kid], durability: "step" })
    const sent = keys.splice(0)
    const exit = yield* resumeOn(bench, two, layer, { workflows: [two, kid] })
    return { exit, sent, again: keys }
  })
