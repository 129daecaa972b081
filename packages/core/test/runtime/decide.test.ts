/** `decide`: the same plan and records give the same decision, and never one that would do a committed step again. */
import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { AttemptRecord, EffectRecord, FailureRecord, RunStatus, StepRecord } from "../../src/index.js"
import { escapeSegment } from "../../src/index.js"
import {
  effectOf,
  type Plan,
  type PlanControl,
  type PlanEffect,
  type PlanNode,
  type PlanStep,
} from "../../src/model/Plan.js"
import { decide, type Decision, type Records, type Work } from "../../src/runtime/internal/decide.js"
import { emptyFrame, Fan, type Frame } from "../../src/runtime/internal/frames.js"
import { scopeOf, prefixOf } from "../../src/runtime/internal/paths.js"

const node = (name: string, effects: ReadonlyArray<PlanEffect> = [], under = ""): PlanStep => ({
  kind: "step",
  name,
  path: `${under}${escapeSegment(name)}`,
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

const step = (of: PlanNode, seq = 1, path = of.path): StepRecord => ({
  path,
  scope: scopeOf(prefixOf(path)),
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

const add = <A>(map: Map<string, Array<A>>, path: string, row: A): void => {
  map.set(path, [...(map.get(path) ?? []), row])
}

const records = (of: {
  readonly status?: RunStatus
  readonly failure?: FailureRecord
  readonly cancelAt?: number
  readonly steps?: ReadonlyArray<StepRecord>
  readonly effects?: ReadonlyArray<EffectRecord>
  readonly attempts?: ReadonlyArray<AttemptRecord>
  /** Nothing is left unread. */
  readonly settled?: boolean
  readonly scopes?: ReadonlyArray<string>
  readonly turns?: Records["turns"]
  readonly fans?: Records["fans"]
  readonly waits?: Records["waits"]
}): Records => {
  const settled = of.settled ?? true
  const frames = new Map<string, Frame>(["", ...(of.scopes ?? [])].map((scope) => [scope, emptyFrame(scope, settled)]))
  for (const row of of.steps ?? []) frames.get(row.scope)!.steps.set(row.path, row)
  for (const row of of.effects ?? []) add(frames.get(scopeOf(prefixOf(row.path)))!.effects, row.path, row)
  for (const row of of.attempts ?? []) add(frames.get(scopeOf(prefixOf(row.path)))!.attempts, row.path, row)
  return {
    status: of.status ?? "running",
    failure: of.failure ?? null,
    cancelAt: of.cancelAt ?? null,
    frames,
    turns: of.turns ?? new Map(),
    fans: of.fans ?? new Map(),
    waits: of.waits === undefined ? new Map() : of.waits,
    failing: new Map(),
    undo: [],
    reused: new Set(),
    window: null,
  }
}

/** What is decided, where that is one thing alone. */
const next = (plan: Plan, of: Records): Exclude<Decision, { _tag: "Work" }> | Work => {
  const decision = decide(plan, of)
  if (decision._tag !== "Work") return decision
  expect(decision.work).toHaveLength(1)
  return decision.work[0]!
}

const work = (plan: Plan, of: Records): ReadonlyArray<Work> => {
  const decision = decide(plan, of)
  return decision._tag === "Work" ? decision.work : expect.fail(decision._tag)
}

const [a, b] = [node("a"), node("b")]
const charge: PlanEffect = { kind: "external", name: "charge" }

describe("decide", () => {
  it("has nothing to do with a run that is final", () => {
    for (const status of ["completed", "failed", "canceled"] as const) {
      expect(next(planOf([a]), records({ status }))).toEqual({ _tag: "Finished" })
    }
  })

  it("begins with the first step, and completes after the last", () => {
    const plan = planOf([a, b])
    expect(next(plan, records({}))).toEqual({
      _tag: "Attempt",
      node: a,
      path: "a",
      frame: expect.objectContaining({ scope: "" }),
      isLast: false,
      takesBack: null,
      attempt: 1,
      failures: 0,
      rejections: 0,
      generation: 0,
      effect: null,
      notBefore: null,
    })
    expect(next(plan, records({ steps: [step(a)] }))).toMatchObject({ _tag: "Attempt", node: b, isLast: true })
    expect(next(plan, records({ steps: [step(a), step(b)] }))).toEqual({ _tag: "Complete" })
  })

  it("completes a plan without steps", () => {
    expect(next(planOf([]), records({}))).toEqual({ _tag: "Complete" })
  })

  it("counts failures and rejections apart, and waits for the last attempt's time", () => {
    const attempts = [attempt(a, 1, "failed"), attempt(a, 2, "rejected"), attempt(a, 3, "refused", 77)]
    expect(next(planOf([a]), records({ attempts }))).toMatchObject({
      attempt: 4,
      failures: 2,
      rejections: 1,
      generation: 1,
      notBefore: 77,
    })
  })

  it("moves the generation only past refused attempts, and hands on that generation's intent alone", () => {
    const effects = [effect(a, 0, "failed"), effect(a, 1)]
    expect(next(planOf([a]), records({ effects }))).toMatchObject({ generation: 0, effect: { state: "failed" } })
    const refused = records({ effects, attempts: [attempt(a, 1, "refused")] })
    expect(next(planOf([a]), refused)).toMatchObject({ generation: 1, effect: { state: "intended" } })
    const twice = records({ effects, attempts: [attempt(a, 1, "refused"), attempt(a, 2, "refused")] })
    expect(next(planOf([a]), twice)).toMatchObject({ generation: 2, effect: null })
    const failed = records({ effects, attempts: [attempt(a, 1, "failed")] })
    expect(next(planOf([a]), failed)).toMatchObject({ generation: 0 })
  })

  it("looks at no other step's attempts and intents", () => {
    const of = records({ attempts: [attempt(b, 1, "failed", 5)], effects: [effect(b, 0)] })
    expect(next(planOf([a, b]), of)).toMatchObject({ node: a, attempt: 1, effect: null, notBefore: null })
  })

  it("cancels where it stands, unless something happened there or may have", () => {
    const of = (rest: Parameters<typeof records>[0]) => next(planOf([a, b]), records({ cancelAt: 5, ...rest }))
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
    expect(next(planOf([a]), records({ cancelAt: 5, failure }))).toEqual({ _tag: "Failed", failure })
    expect(next(planOf([a]), records({ cancelAt: 5, status: "completed" }))).toEqual({ _tag: "Finished" })
    const removed = records({ cancelAt: 5, steps: [step(a)] })
    expect(next(planOf([b]), removed)).toMatchObject({ _tag: "Incompatible" })
  })

  it("refuses a gap even under the same plan", () => {
    expect(next(planOf([a, b]), records({ steps: [step(b)] }))).toMatchObject({ _tag: "Incompatible", step: "b" })
  })
})

describe("decide, where things stand inside each other", () => {
  const signal = (name: string, under = ""): PlanControl => ({
    ...{ kind: "signal", name, path: `${under}${name}`, signal: name, payload: {}, timeoutMs: null, onTimeout: "fail" },
  })
  const arms: PlanControl = {
    ...{ kind: "parallel", name: "p", path: "p" },
    arms: {
      l: [node("x", [], "p:l/"), node("y", [], "p:l/")],
      r: [node("x", [charge], "p:r/")],
      s: [signal("s", "p:s/")],
    },
  }
  const loop: PlanControl = {
    ...{ kind: "loop", name: "l", path: "l", state: {}, maxIterations: 3, onLimit: "fail" },
    body: [node("x", [], "l[]/")],
  }
  const each: PlanControl = {
    ...{ kind: "forEach", name: "e", path: "e", item: null, concurrency: 2, onFailure: "stop" },
    body: [node("x", [], "e[]/"), node("y", [], "e[]/")],
  }
  const turn = (n: number): StepRecord => ({ ...step(a, 1, `l[${n}]`), scope: "l[", effect: "turn" })
  const shown = (all: ReadonlyArray<Work>) =>
    all.map((each) => `${each._tag === "Steer" || each._tag === "Load" ? each.what : each._tag} ${each.path}`)

  it("goes on in every arm at once, and past them when all are done", () => {
    const plan = planOf([arms, b])
    expect(shown(work(plan, records({})))).toEqual(["Attempt p:l/x", "Attempt p:r/x", "Wait p:s/s"])
    const some = [step(node("x", [], "p:l/")), step(node("x", [charge], "p:r/"))]
    expect(shown(work(plan, records({ steps: some })))).toEqual(["Attempt p:l/y", "Wait p:s/s"])
    const all = [...some, step(node("y", [], "p:l/")), step(signal("s", "p:s/"))]
    expect(shown(work(plan, records({ steps: all })))).toEqual(["Attempt b"])
  })

  it("has only what is open seen to once the run is to end", () => {
    const plan = planOf([arms, b])
    const open = { ...effect(b, 0), path: "p:r/x" }
    expect(shown(work(plan, records({ cancelAt: 1, effects: [open] })))).toEqual(["Attempt p:r/x"])
    expect(next(plan, records({ cancelAt: 1 }))).toMatchObject({ _tag: "Cancel" })
  })

  it("asks for the turn that a loop has come to, and for nothing of those before", () => {
    const plan = planOf([loop])
    expect(shown(work(plan, records({})))).toEqual(["initial l"])
    expect(shown(work(plan, records({ settled: false })))).toEqual(["turn l"])
    const turns = new Map([["l", turn(2)]])
    expect(shown(work(plan, records({ settled: false, turns })))).toEqual(["frame l[2]"])
    const scopes = ["l[2]"]
    expect(shown(work(plan, records({ settled: false, turns, scopes })))).toEqual(["open l[2]/x"])
    expect(shown(work(plan, records({ turns, scopes })))).toEqual(["Attempt l[2]/x"])
    const steps = [step(node("x", [], "l[]/"), 1, "l[2]/x")]
    expect(work(plan, records({ turns, scopes, steps }))).toMatchObject([{ what: "next", path: "l", of: "2" }])
  })

  it("holds so many items open, each where it stands, and asks for them alone", () => {
    const plan = planOf([each])
    const fan = new Fan(
      ["a", "b", "c", "d"].map((key) => ({ key, value: key })),
      2,
      [{ key: "a", failed: false }],
    )
    const fans = new Map([["e", fan]])
    expect(shown(work(plan, records({})))).toEqual(["items e"])
    expect(shown(work(plan, records({ fans })))).toEqual(["frame e[b]", "frame e[c]"])
    const scopes = ["e[b]", "e[c]"]
    const steps = [step(node("x", [], "e[]/"), 1, "e[c]/x")]
    expect(shown(work(plan, records({ fans, scopes, steps })))).toEqual(["Attempt e[b]/x", "Attempt e[c]/y"])
    fan.end("b", false)
    expect(fan.window.map((index) => fan.items[index]!.key)).toEqual(["c", "d"])
    fan.end("d", true)
    fan.end("c", false)
    expect([fan.window, fan.done, fan.failed]).toEqual([[], 4, 1])
    expect(shown(work(plan, records({ fans })))).toEqual(["each e"])
  })

  it("counts retries anew once a person has had a failed run tried again", () => {
    const attempts = [
      attempt(a, 1, "failed"),
      attempt(a, 2, "refused"),
      attempt(a, 3, "retried"),
      attempt(a, 4, "failed"),
    ]
    expect(next(planOf([a]), records({ attempts }))).toMatchObject({ attempt: 5, failures: 1, generation: 1 })
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
  }),
)

const historyOf = (of: {
  readonly nodes: ReadonlyArray<PlanStep>
  readonly done: number
  readonly kinds: ReadonlyArray<AttemptRecord["kind"]>
}): Records => {
  const next = of.nodes[of.done]
  return records({
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
        const once = next(plan, historyOf(history))
        expect(next(structuredClone(plan), historyOf(history))).toEqual(once)
        if (history.done === history.nodes.length) expect(once).toEqual({ _tag: "Complete" })
        else {
          expect(once).toMatchObject({
            _tag: "Attempt",
            path: history.nodes[history.done]!.path,
            attempt: history.kinds.length + 1,
          })
          const refused = history.kinds.filter((kind) => kind === "refused").length
          expect(once).toMatchObject({ generation: refused })
        }
      }),
    )
  })
})
