/**
 * A plan and the definition that it was made of, side by side: which function belongs to which node, and which names are
 * seen from where. Made once for all runs of a plan.
 */
import type { ControlNode, Definition, Node, WorkNode } from "../../dsl/Definition.js"
import { compensationNode } from "../../dsl/internal/compensation.js"
import { bodiesOf } from "../../dsl/internal/nested.js"
import { compactionOf } from "../../dsl/Window.js"
import type { Plan, PlanControl, PlanNode, PlanStep } from "../../model/Plan.js"
import { prefixOf, segmentOf } from "./paths.js"

/** A step with its function. */
export interface StepPair {
  readonly plan: PlanStep
  readonly node: WorkNode
}

/** Something that steers, with its functions. */
export interface ControlPair {
  readonly plan: PlanControl
  readonly node: ControlNode
}

export type Pair = StepPair | ControlPair

/** Nodes that stand one after the other: those of the workflow, of a case, an arm, a turn or an item. */
export interface Block {
  /** What they stand under, as in the plan: `route:large/`, `agent[]/`. */
  readonly prefix: string
  /** Each by its name, with its own segment. */
  readonly named: ReadonlyMap<string, { readonly segment: string; readonly pair: Pair }>
  /** What it stands in, and the block of that; null for the workflow's own. */
  readonly parent: Block | null
  readonly owner: ControlNode | null
}

export interface Program {
  readonly root: Block
  readonly blocks: ReadonlyMap<string, Block>
  readonly pairs: ReadonlyMap<string, Pair>
}

/** The nodes of a plan that stand in a node's body of that name; null for a turn or an item. */
const planned = (plan: PlanNode, name: string | null): ReadonlyArray<PlanNode> => {
  switch (plan.kind) {
    case "branch":
    case "match":
      return plan.cases[name ?? ""]!
    case "parallel":
      return plan.arms[name ?? ""]!
    case "loop":
    case "forEach":
      return plan.body
    default:
      return []
  }
}

const make = (definition: Definition, plan: Plan): Program => {
  const blocks = new Map<string, Block>()
  const pairs = new Map<string, Pair>()
  const block = (
    prefix: string,
    plans: ReadonlyArray<PlanNode>,
    nodes: ReadonlyArray<Node>,
    parent: Block | null,
    owner: ControlNode | null,
  ): Block => {
    const named = new Map<string, { readonly segment: string; readonly pair: Pair }>()
    const made: Block = { prefix, named, parent, owner }
    blocks.set(prefix, made)
    plans.forEach((plan, index) => {
      const node = nodes[index]!
      const pair = { plan, node } as Pair
      named.set(node.name, { segment: segmentOf(plan.path), pair })
      pairs.set(plan.path, pair)
      const compensation = node.kind === "perform" ? compensationNode(node) : null
      if (compensation !== null) {
        const compensate = (plan as PlanStep).compensate!
        pairs.set(compensate.path, { plan: compensate, node: compensation })
      }
      for (const body of bodiesOf(node)) {
        block(`${plan.path}${body.part}/`, planned(plan, body.name), body.nodes, made, node as ControlNode)
      }
    })
    return made
  }
  const compact = plan.window?.compact ?? null
  if (compact !== null) {
    // What compacts the window stands beside the workflow: it sees no results.
    const prefix = prefixOf(compact.path)
    blocks.set(prefix, { prefix, named: new Map(), parent: null, owner: null })
    pairs.set(compact.path, { plan: compact, node: compactionOf(definition.window)! })
  }
  return { root: block("", plan.nodes, definition.nodes, null, null), blocks, pairs }
}

const programs = new WeakMap<Plan, Program>()

export const programOf = (definition: Definition, plan: Plan): Program => {
  const known = programs.get(plan) ?? make(definition, plan)
  programs.set(plan, known)
  return known
}
