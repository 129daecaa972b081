/**
 * What a run does next: a pure function of its plan and its committed records (law X1). The loop obeys it.
 */
import { effectOf, type Plan, type PlanNode } from "../../model/Plan.js"
import type { AttemptRecord, EffectRecord, FailureRecord, RunStatus, StepRecord } from "../../model/Records.js"

/** The records of a run, by path. The loop adds to them what it has committed. */
export interface Records {
  readonly status: RunStatus
  /** Why the run fails: set, and durable, before the first compensation begins. */
  readonly failure: FailureRecord | null
  /** When somebody asked to cancel the run; null if nobody has. */
  readonly cancelAt: number | null
  /** Whether the run was last committed under this very plan: nothing needs to be compared then. */
  readonly samePlan: boolean
  readonly steps: ReadonlyMap<string, StepRecord>
  /** A place of the plan before which every step is committed, if one is known. */
  readonly from?: number
  readonly effects: ReadonlyMap<string, ReadonlyArray<EffectRecord>>
  readonly attempts: ReadonlyMap<string, ReadonlyArray<AttemptRecord>>
}

/** One attempt that may begin. */
export interface Attempt {
  readonly _tag: "Attempt"
  readonly node: PlanNode
  /** Place in the plan; -1 for a compensation. */
  readonly index: number
  /** Counts from 1. */
  readonly attempt: number
  readonly failures: number
  readonly rejections: number
  /** Names the key: it grows only past an operation that is durably known not to have happened. */
  readonly generation: number
  /** The intent of this generation, with what is known of it; null if there is none yet. */
  readonly effect: EffectRecord | null
  /** Not before this time, by the store's clock; null for at once. */
  readonly notBefore: number | null
}

export type Decision =
  | { readonly _tag: "Finished" }
  | { readonly _tag: "Complete" }
  /** X5: nothing is unknown, and the run is to be canceled; `step` is the one that would come next. */
  | { readonly _tag: "Cancel"; readonly step: string }
  /** Everything that could be taken back is. */
  | { readonly _tag: "Failed"; readonly failure: FailureRecord }
  /** The code cannot interpret what is committed (law X10). */
  | { readonly _tag: "Incompatible"; readonly step: string; readonly problem: string }
  | Attempt

const incompatible = (plan: Plan, next: number, records: Records): Decision | null => {
  // A compensation stands where its step stands: it is committed after that one, whatever else is open.
  const places = new Map(
    plan.nodes.flatMap((node, index): Array<[string, number]> => [
      [node.path, index],
      ...(node.compensate === null ? [] : [[node.compensate.path, -1] as [string, number]]),
    ]),
  )
  for (const step of records.steps.values()) {
    const index = places.get(step.path)
    if (index === undefined) {
      const problem = `an earlier version of '${plan.workflow}' committed step '${step.path}', and this one has no such step; give the changed workflow a new version`
      return { _tag: "Incompatible", step: step.path, problem }
    }
    if (index > next) {
      const problem = `step '${step.path}' is committed, and step '${plan.nodes[next]!.name}', which is not, now stands before it; add new steps at the end, or give the changed workflow a new version`
      return { _tag: "Incompatible", step: step.path, problem }
    }
    if (index === -1) continue
    const now = effectOf(plan.nodes[index]!)
    if (now !== step.effect) {
      const problem = `step '${step.path}' was committed with effect '${step.effect}' and now has '${now}'; give the changed workflow a new version`
      return { _tag: "Incompatible", step: step.path, problem }
    }
  }
  return null
}

const count = (attempts: ReadonlyArray<AttemptRecord>, ...kinds: ReadonlyArray<AttemptRecord["kind"]>): number =>
  attempts.filter((attempt) => kinds.includes(attempt.kind)).length

const none: ReadonlyArray<never> = []

/** Nothing is known of the node yet. */
const firstAttempt = (node: PlanNode, index: number): Attempt => ({
  _tag: "Attempt",
  node,
  index,
  attempt: 1,
  failures: 0,
  rejections: 0,
  generation: 0,
  effect: null,
  notBefore: null,
})

const attemptAt = (node: PlanNode, index: number, records: Records): Attempt => {
  const attempts = records.attempts.get(node.path) ?? none
  const effects = records.effects.get(node.path) ?? none
  if (attempts === none && effects === none) return firstAttempt(node, index)
  // Each refused attempt accounts for one generation. A generation beyond them may be settled all the same: a worker
  // that lost its lease recorded what it knew (X6), and no attempt has answered for it yet.
  const generation = count(attempts, "refused")
  return {
    _tag: "Attempt",
    node,
    index,
    attempt: attempts.length + 1,
    failures: count(attempts, "failed", "refused"),
    rejections: count(attempts, "rejected"),
    generation,
    effect: effects.find((effect) => effect.generation === generation) ?? null,
    notBefore: attempts.at(-1)?.retryAt ?? null,
  }
}

const final: ReadonlySet<RunStatus> = new Set(["completed", "failed", "canceled"])

/** Whether a committed step has an effect that can be taken back: not if it was left out, or settled as a failure. */
const happened = (node: PlanNode, step: StepRecord): boolean =>
  step.idempotencyKey !== null && !(node.settle && step.result?.startsWith('{"ok":false') === true)

/** The compensation of the last performed step that is not taken back yet; null if there is none left. */
export const compensable = (plan: Plan, records: Pick<Records, "steps">): PlanNode | null => {
  for (const node of [...plan.nodes].reverse()) {
    const step = records.steps.get(node.path)
    if (node.compensate === null || step === undefined || records.steps.has(node.compensate.path)) continue
    if (happened(node, step)) return node.compensate
  }
  return null
}

const takeBack = (plan: Plan, failure: FailureRecord, records: Records): Decision => {
  const node = compensable(plan, records)
  return node === null ? { _tag: "Failed", failure } : attemptAt(node, -1, records)
}

/** X5: an operation that happened, or may have, is brought to its end before its run is canceled. */
export const isOpen = (decision: Decision): boolean =>
  decision._tag === "Attempt" && (decision.effect?.state === "intended" || decision.effect?.state === "succeeded")

/** X1: the same plan and records give the same decision, in any process and at any time. */
export const decide = (plan: Plan, records: Records): Decision => {
  if (final.has(records.status)) return { _tag: "Finished" }
  let next = records.from ?? 0
  while (next < plan.nodes.length && records.steps.has(plan.nodes[next]!.path)) next++
  const whole = records.samePlan && records.failure === null && records.steps.size <= next
  const problem = whole ? null : incompatible(plan, next, records)
  if (problem !== null) return problem
  if (records.failure !== null) return takeBack(plan, records.failure, records)
  const decision: Decision =
    next === plan.nodes.length ? { _tag: "Complete" } : attemptAt(plan.nodes[next]!, next, records)
  if (records.cancelAt === null || isOpen(decision)) return decision
  return { _tag: "Cancel", step: plan.nodes[next]?.path ?? "" }
}
