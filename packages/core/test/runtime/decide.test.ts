/** `decide`: the same plan and records give the same decision, and never one that would do a committed step again. */
import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { AttemptRecord, EffectRecord, FailureRecord, RunStatus, StepRecord } from "../../src/index.js"
import { escapeSegment } from "../../src/index.js"
import { effectOf, type Plan, type PlanEffect, type PlanNode } from "../../src/model/Plan.js"
import { decide, type Records } from "../../src/runtime/internal/decide.js"

const node = (name: string, effects: ReadonlyArray<PlanEffect> = []): PlanNode => ({
  kind: "step",
  name,
  path: escapeSegment(name),
  effects,
  operations: [],
  optional: false,
  settle: false,
  compensate: null,
  output: {},
  timeoutMs: null,
  retry: { times: 0, delayMs: 0, maxDelayMs: 0 },
  onInvalid: { retries: 0, then: "fail" },
})

const planOf = (nodes: ReadonlyArray<PlanNode>): Plan => ({
  format: 1,
  workflow: "w",
  version: 1,
  hash: nodes.map(({ name }) => name).join(),
  input: {},
  output: null,
  failure: null,
  nodes,
})

const step = (of: PlanNode, seq = 1): StepRecord => ({
  path: of.path,
  seq,
  result: "1",
  effect: effectOf(of),
  idempotencyKey: null,
  attempts: 1,
  durationMs: 0,
  committedAt: 0,
})

const attempt = (
  of: PlanNode,
  n: number,
  kind: AttemptRecord["kind"],
  retryAt: number | null = null,
): AttemptRecord => ({
  path: of.path,
  attempt: n,
  kind,
  error: { name: "E", message: "", tag: null, stack: null, cause: null },
  output: null,
  retryAt,
  endedAt: 0,
})

const effect = (of: PlanNode, generation: number, state: EffectRecord["state"] = "intended"): EffectRecord => ({
  path: of.path,
  generation,
  operation: "op",
  idempotencyKey: `k${generation}`,
  payload: "1",
  payloadHash: "h",
  state,
  outcome: null,
  claimToken: "t",
  sends: 1,
  intentAt: 0,
  settledAt: null,
})

const group = <A extends { readonly path: string }>(rows: ReadonlyArray<A>): ReadonlyMap<string, ReadonlyArray<A>> => {
  const map = new Map<string, Array<A>>()
  for (const row of rows) map.set(row.path, [...(map.get(row.path) ?? []), row])
  return map
}

const records = (of: {
  readonly status?: RunStatus
  readonly samePlan?: boolean
  readonly failure?: FailureRecord
  readonly cancelAt?: number
  readonly steps?: ReadonlyArray<StepRecord>
  readonly effects?: ReadonlyArray<EffectRecord>
  readonly attempts?: ReadonlyArray<AttemptRecord>
}): Records => ({
  status: of.status ?? "running",
  samePlan: of.samePlan ?? true,
  failure: of.failure ?? null,
  cancelAt: of.cancelAt ?? null,
  steps: new Map((of.steps ?? []).map((row) => [row.path, row])),
  effects: group(of.effects ?? []),
  attempts: group(of.attempts ?? []),
})

const [a, b, c] = [node("a"), node("b"), node("c")]
const charge: PlanEffect = { kind: "external", name: "charge" }

describe("decide", () => {
  it("has nothing to do with a run that is final", () => {
    for (const status of ["completed", "failed", "canceled"] as const) {
      expect(decide(planOf([a]), records({ status }))).toEqual({ _tag: "Finished" })
    }
  })

  it("begins with the first step, and completes after the last", () => {
    const plan = planOf([a, b])
    expect(decide(plan, records({}))).toEqual({
      _tag: "Attempt",
      node: a,
      index: 0,
      attempt: 1,
      failures: 0,
      rejections: 0,
      generation: 0,
      effect: null,
      notBefore: null,
    })
    expect(decide(plan, records({ steps: [step(a)] }))).toMatchObject({ _tag: "Attempt", node: b, index: 1 })
    expect(decide(plan, records({ steps: [step(a), step(b)] }))).toEqual({ _tag: "Complete" })
  })

  it("completes a plan without steps", () => {
    expect(decide(planOf([]), records({}))).toEqual({ _tag: "Complete" })
  })

  it("counts failures and rejections apart, and waits for the last attempt's time", () => {
    const attempts = [attempt(a, 1, "failed"), attempt(a, 2, "rejected"), attempt(a, 3, "refused", 77)]
    expect(decide(planOf([a]), records({ attempts }))).toMatchObject({
      attempt: 4,
      failures: 2,
      rejections: 1,
      generation: 1,
      notBefore: 77,
    })
  })

  it("moves the generation only past refused attempts, and hands on that generation's intent alone", () => {
    const effects = [effect(a, 0, "failed"), effect(a, 1)]
    expect(decide(planOf([a]), records({ effects }))).toMatchObject({ generation: 0, effect: { state: "failed" } })
    const refused = records({ effects, attempts: [attempt(a, 1, "refused")] })
    expect(decide(planOf([a]), refused)).toMatchObject({ generation: 1, effect: { state: "intended" } })
    const twice = records({ effects, attempts: [attempt(a, 1, "refused"), attempt(a, 2, "refused")] })
    expect(decide(planOf([a]), twice)).toMatchObject({ generation: 2, effect: null })
    const failed = records({ effects, attempts: [attempt(a, 1, "failed")] })
    expect(decide(planOf([a]), failed)).toMatchObject({ generation: 0 })
  })

  it("looks at no other step's attempts and intents", () => {
    const of = records({ attempts: [attempt(b, 1, "failed", 5)], effects: [effect(b, 0)] })
    expect(decide(planOf([a, b]), of)).toMatchObject({ node: a, attempt: 1, effect: null, notBefore: null })
  })

  it("refuses what an earlier version committed and this one cannot place", () => {
    const of = (steps: ReadonlyArray<StepRecord>) => records({ samePlan: false, steps })
    const cases: ReadonlyArray<readonly [Plan, Records, string]> = [
      // removed, renamed, inserted before, swapped, another effect
      [planOf([b]), of([step(a)]), "a"],
      [planOf([node("renamed"), b]), of([step(a)]), "a"],
      [planOf([c, a, b]), of([step(a)]), "a"],
      [planOf([b, a]), of([step(a)]), "a"],
      [planOf([node("a", [charge]), b]), of([step(a)]), "a"],
      [planOf([node("a", [{ ...charge, name: "other" }])]), of([step(node("a", [charge]))]), "a"],
      [planOf([node("a", [{ kind: "transaction", name: "transaction" }])]), of([step(a)]), "a"],
    ]
    for (const [plan, recorded, at] of cases) {
      expect(decide(plan, recorded)).toMatchObject({ _tag: "Incompatible", step: at })
    }
  })

  it("accepts steps that were added at the end, and reads that were added to a step", () => {
    const of = records({ samePlan: false, steps: [step(a)] })
    expect(decide(planOf([a, b]), of)).toMatchObject({ _tag: "Attempt", node: b })
    const reads = node("a", [{ kind: "read", name: "model" }])
    expect(decide(planOf([reads, b]), of)).toMatchObject({ _tag: "Attempt", node: b })
  })

  it("cancels where it stands, unless something happened there or may have", () => {
    const of = (rest: Parameters<typeof records>[0]) => decide(planOf([a, b]), records({ cancelAt: 5, ...rest }))
    const cancel = { _tag: "Cancel", step: "a" }
    expect(of({})).toEqual(cancel)
    expect(of({ attempts: [attempt(a, 1, "failed", 99)] })).toEqual(cancel)
    expect(of({ effects: [effect(a, 0, "failed")] })).toEqual(cancel)
    expect(of({ effects: [effect(a, 0, "notPerformed")] })).toEqual(cancel)
    // A generation that is accounted for is not what stands open.
    expect(of({ effects: [effect(a, 0, "failed")], attempts: [attempt(a, 1, "refused")] })).toEqual(cancel)
    for (const state of ["intended", "succeeded"] as const) {
      expect(of({ effects: [effect(a, 0, state)] })).toMatchObject({ _tag: "Attempt", node: a, effect: { state } })
    }
    expect(of({ steps: [step(a)] })).toEqual({ _tag: "Cancel", step: "b" })
    expect(of({ steps: [step(a), step(b)] })).toEqual({ _tag: "Cancel", step: "" })
  })

  it("does not cancel what fails already, has ended, or cannot be interpreted", () => {
    const failure = { kind: "canceled", step: "a", problem: "" } as const
    expect(decide(planOf([a]), records({ cancelAt: 5, failure }))).toEqual({ _tag: "Failed", failure })
    expect(decide(planOf([a]), records({ cancelAt: 5, status: "completed" }))).toEqual({ _tag: "Finished" })
    const removed = records({ cancelAt: 5, samePlan: false, steps: [step(a)] })
    expect(decide(planOf([b]), removed)).toMatchObject({ _tag: "Incompatible" })
  })

  it("refuses a gap even under the same plan", () => {
    expect(decide(planOf([a, b]), records({ steps: [step(b)] }))).toMatchObject({ _tag: "Incompatible", step: "b" })
  })
})

const effectsArbitrary = fc.constantFrom<ReadonlyArray<PlanEffect>>(
  [],
  [charge],
  [{ kind: "read", name: "model" }],
  [{ kind: "transaction", name: "transaction" }],
)
const nodesArbitrary = fc
  .uniqueArray(fc.tuple(fc.string({ minLength: 1, maxLength: 6 }), effectsArbitrary), {
    selector: ([name]) => name,
    minLength: 1,
    maxLength: 8,
  })
  .map((all) => all.map(([name, effects]) => node(name, effects)))

const historyArbitrary = nodesArbitrary.chain((nodes) =>
  fc.record({
    nodes: fc.constant(nodes),
    done: fc.integer({ min: 0, max: nodes.length }),
    kinds: fc.array(fc.constantFrom<AttemptRecord["kind"]>("failed", "refused", "rejected"), { maxLength: 5 }),
    samePlan: fc.boolean(),
  }),
)

const historyOf = (of: {
  readonly nodes: ReadonlyArray<PlanNode>
  readonly done: number
  readonly kinds: ReadonlyArray<AttemptRecord["kind"]>
  readonly samePlan: boolean
}): Records => {
  const next = of.nodes[of.done]
  return records({
    samePlan: of.samePlan,
    steps: of.nodes.slice(0, of.done).map((one, seq) => step(one, seq + 1)),
    attempts: next === undefined ? [] : of.kinds.map((kind, n) => attempt(next, n + 1, kind)),
    effects: next === undefined ? [] : [0, 1, 2].map((generation) => effect(next, generation)),
  })
}

describe("for any plan and history", () => {
  it("the decision is the same each time, and is the step after the last committed one", () => {
    fc.assert(
      fc.property(historyArbitrary, (history) => {
        const plan = planOf(history.nodes)
        const once = decide(plan, historyOf(history))
        expect(decide(structuredClone(plan), historyOf(history))).toEqual(once)
        if (history.done === history.nodes.length) expect(once).toEqual({ _tag: "Complete" })
        else {
          expect(once).toMatchObject({ _tag: "Attempt", index: history.done, attempt: history.kinds.length + 1 })
          const refused = history.kinds.filter((kind) => kind === "refused").length
          expect(once).toMatchObject({ generation: refused })
        }
      }),
    )
  })

  it("appending is fine; removing, renaming, inserting before or changing the effect of a committed step is not", () => {
    fc.assert(
      fc.property(historyArbitrary, fc.nat(), (history, at) => {
        fc.pre(history.done > 0)
        const recorded = { ...historyOf(history), samePlan: false }
        const { nodes, done } = history
        const index = at % done
        const added = node("a name that no other step has")
        expect(decide(planOf([...nodes, added]), recorded)).toMatchObject({ _tag: "Attempt", index: done })
        const changed = nodes[index]!
        const other: ReadonlyArray<PlanEffect> = effectOf(changed) === "none" ? [charge] : []
        const without = nodes.filter((_, n) => n !== index)
        const bad = [
          without,
          nodes.map((one, n) => (n === index ? { ...added, effects: one.effects } : one)),
          [...nodes.slice(0, index), added, ...nodes.slice(index)],
          nodes.map((one, n) => (n === index ? { ...one, effects: other } : one)),
        ]
        for (const plan of bad) expect(decide(planOf(plan), recorded)._tag).toBe("Incompatible")
      }),
    )
  })
})
