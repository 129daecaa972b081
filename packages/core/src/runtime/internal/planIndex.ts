/** Where each node of a plan stands, by its path; and whether what is committed can be interpreted by it (X10). */
import { effectOf, isStep, type Plan, type PlanNode } from "../../model/Plan.js"
import type { StepRecord } from "../../model/Records.js"
import type { Decision, Records } from "./decide.js"
import type { Frame } from "./frames.js"
import { prefixOf, templateOf } from "./paths.js"

interface Entry {
  readonly node: PlanNode
  /** Its place among those that come one after the other; -1 for what takes a step back or compacts the window. */
  readonly index: number
}

interface PlanIndex {
  readonly entries: ReadonlyMap<string, Entry>
  /** Only steps, one after the other. */
  readonly isFlat: boolean
  /** Some step can be taken back. */
  readonly takesBack: boolean
  /** Some step reads data that has versions. */
  readonly readsData: boolean
  /** The names of all signals that it may wait for. */
  readonly signals: ReadonlyArray<string>
}

/** The nodes that stand inside a node. */
export const bodiesOf = (node: PlanNode): ReadonlyArray<ReadonlyArray<PlanNode>> => {
  switch (node.kind) {
    case "branch":
    case "match":
      return Object.values(node.cases)
    case "parallel":
      return Object.values(node.arms)
    case "loop":
    case "forEach":
      return [node.body]
    default:
      return []
  }
}

const make = (plan: Plan): PlanIndex => {
  const entries = new Map<string, Entry>()
  let takesBack = false
  let readsData = false
  const signals = new Set<string>()
  const add = (nodes: ReadonlyArray<PlanNode>): void => {
    nodes.forEach((node, index) => {
      entries.set(node.path, { node, index })
      if (isStep(node) && node.compensate !== null) {
        entries.set(node.compensate.path, { node: node.compensate, index: -1 })
        takesBack = true
      }
      if (isStep(node) && node.onStale !== undefined) readsData = true
      if (node.kind === "signal") signals.add(node.signal)
      for (const body of bodiesOf(node)) add(body)
    })
  }
  add(plan.nodes)
  const compact = plan.window?.compact ?? null
  if (compact !== null) entries.set(compact.path, { node: compact, index: -1 })
  return { entries, isFlat: plan.nodes.every(isStep), takesBack, readsData, signals: [...signals] }
}

const indexes = new WeakMap<Plan, PlanIndex>()

export const indexOf = (plan: Plan): PlanIndex => {
  const known = indexes.get(plan) ?? make(plan)
  indexes.set(plan, known)
  return known
}

/** The node of a path, that of a compensation included; null if there is none. */
export const nodeAt = (plan: Plan, path: string): PlanNode | null =>
  indexOf(plan).entries.get(templateOf(path))?.node ?? null

/** Every step of a plan, whatever it stands in, and what takes it back. */
export const stepsOf = (plan: Plan) => [...indexOf(plan).entries.values()].map(({ node }) => node).filter(isStep)

/** Whether several things can be under way at once among nodes, or in what they stand for. */
export const goesSideBySide = (nodes: ReadonlyArray<PlanNode>): boolean =>
  nodes.some((node) => node.kind === "parallel" || node.kind === "forEach" || bodiesOf(node).some(goesSideBySide))

const problemOf = (plan: Plan, frame: Frame, step: StepRecord): string | null => {
  const entry = indexOf(plan).entries.get(templateOf(step.path))
  if (entry === undefined) {
    return `an earlier version of '${plan.workflow}' committed step '${step.path}', and this one has no such step; give the changed workflow a new version`
  }
  // A compensation stands where its step stands: it is committed after that one, whatever else is open.
  if (entry.index === -1) return null
  const prefix = prefixOf(step.path)
  const next = frame.done.get(prefix) ?? 0
  if (entry.index > next) {
    return `step '${step.path}' is committed, and ${openName(plan, prefix, next)}, which is not, now stands before it; add new steps at the end, or give the changed workflow a new version`
  }
  const now = effectOf(entry.node)
  return now === step.effect
    ? null
    : `step '${step.path}' was committed with effect '${step.effect}' and now has '${now}'; give the changed workflow a new version`
}

const openName = (plan: Plan, prefix: string, index: number): string => {
  const template = templateOf(prefix)
  for (const [path, entry] of indexOf(plan).entries) {
    if (entry.index === index && prefixOf(path) === template) return `step '${entry.node.name}'`
  }
  return "a step"
}

/** X10: what is committed and cannot be interpreted by this plan; null if there is nothing. */
export const incompatible = (plan: Plan, records: Records): Decision | null => {
  if (records.samePlan) {
    const root = records.frames.get("")!
    // Of a plan of steps alone it costs nothing to see that there is not more than is done.
    if (!indexOf(plan).isFlat || records.failure !== null || root.steps.size <= (root.done.get("") ?? 0)) return null
  }
  for (const frame of records.frames.values()) {
    for (const step of frame.steps.values()) {
      const problem = problemOf(plan, frame, step)
      if (problem !== null) return { _tag: "Incompatible", step: step.path, problem }
    }
  }
  return null
}
