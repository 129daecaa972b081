/** Where each node of a plan stands, by its path. */
import { isStep, type Plan, type PlanNode } from "../../model/Plan.js"
import { templateOf } from "./paths.js"

interface Entry {
  readonly node: PlanNode
  /** Whether it is done in its turn, between others; what takes a step back or compacts the window is not. */
  readonly isInOrder: boolean
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
    for (const node of nodes) {
      entries.set(node.path, { node, isInOrder: true })
      if (isStep(node) && node.compensate !== null) {
        entries.set(node.compensate.path, { node: node.compensate, isInOrder: false })
        takesBack = true
      }
      if (isStep(node) && node.onStale !== undefined) readsData = true
      if (node.kind === "signal") signals.add(node.signal)
      for (const body of bodiesOf(node)) add(body)
    }
  }
  add(plan.nodes)
  const compact = plan.window?.compact ?? null
  if (compact !== null) entries.set(compact.path, { node: compact, isInOrder: false })
  return { entries, isFlat: plan.nodes.every(isStep), takesBack, readsData, signals: [...signals] }
}

const indexes = new WeakMap<Plan, PlanIndex>()

export const indexOf = (plan: Plan): PlanIndex => {
  const known = indexes.get(plan) ?? make(plan)
  indexes.set(plan, known)
  return known
}

export const entryAt = (plan: Plan, path: string): Entry | undefined => indexOf(plan).entries.get(templateOf(path))

/** The node of a path, that of a compensation included; null if there is none. */
export const nodeAt = (plan: Plan, path: string): PlanNode | null => entryAt(plan, path)?.node ?? null

/** Every step of a plan, whatever it stands in, and what takes it back. */
export const stepsOf = (plan: Plan) => [...indexOf(plan).entries.values()].map(({ node }) => node).filter(isStep)

/** Whether several things can be under way at once among nodes, or in what they stand for. */
export const goesSideBySide = (nodes: ReadonlyArray<PlanNode>): boolean =>
  nodes.some((node) => node.kind === "parallel" || node.kind === "forEach" || bodiesOf(node).some(goesSideBySide))
