/**
 * What of a run has begun, laid against a plan: whether this code can go on with it (X10).
 *
 * - Everything that is there must have a place: the path, and what stands at it.
 * - Nothing that has not happened may stand before something that has begun: it would be done after it.
 * - What was committed one after the other stands in that order.
 *
 * Turns and items that are over, and what stands in loops that are, keep no order any more: nothing of them is done again. They
 * must have a place all the same: what takes a step back, or reads the results of items, looks for them there.
 */
import { escapeSegment } from "../../model/Ids.js"
import { effectOf, isStep, type Plan, type PlanNode } from "../../model/Plan.js"
import type { StepRecord } from "../../model/Records.js"
import type { Decision, Records } from "./decide.js"
import { casePrefix, instanceOf, itemsPath, prefixOf, segmentOf } from "./paths.js"
import { entryAt, indexOf, nodeAt } from "./planIndex.js"

/** Something of a run. What is not committed was begun: an operation, or something that is waited for. */
export interface Fact {
  readonly path: string
  /** Null where nothing is committed. */
  readonly seq: number | null
  /** What must stand there, as `effectOf` says it; null for any step that performs. */
  readonly as: string | null
  /** The case that was chosen; null for what is no choice. */
  readonly label: string | null
}

/** What keeps a run from being gone on with. */
export interface Misfit {
  readonly step: string
  readonly problem: string
}

const caseOf = ({ effect, result }: StepRecord): string | null =>
  effect === "branch" || effect === "match" ? (JSON.parse(result ?? "null") as { readonly case: string }).case : null

export const committed = (record: StepRecord): Fact => ({
  path: record.path,
  seq: record.seq,
  as: record.effect,
  label: caseOf(record),
})

/** `as`: the kind of what is waited for; null for an operation. */
export const begun = (path: string, as: Fact["as"]): Fact => ({ path, seq: null, as, label: null })

const said = ({ as, path, seq }: Fact): string =>
  seq !== null
    ? `'${path}' is committed`
    : as === null
      ? `an operation was begun at '${path}', and may have happened`
      : `the run waits at '${path}' (${as})`

const newVersion = "or give the changed workflow a new version"
const bringBack = `bring it back as it was, ${newVersion}`
const putAfter = `put new steps after what has begun, ${newVersion}`

/** Why a fact has no place in a plan; null if it has one. */
const misplaced = (plan: Plan, fact: Fact): string | null => {
  const { as, label, path } = fact
  const instance = instanceOf(path)
  const node = nodeAt(plan, instance?.container ?? path)
  if (node === null) return `${said(fact)}, and this code has no such step`
  const now = effectOf(node)
  if (as === null)
    return isStep(node) && node.operations.length > 0 ? null : `${said(fact)}, and nothing is performed there now`
  const expected = instance === null ? as : as === "turn" ? "loop" : "forEach"
  if (now !== expected) return `${said(fact)} as '${expected}', and is '${now}' now`
  const isGone = label !== null && "cases" in node && !Object.hasOwn(node.cases, label)
  return isGone ? `${said(fact)} with case '${label}', which this code does not have` : null
}

/** What stands around a path; null around the workflow's own. */
const around = (path: string): { readonly owner: string; readonly container: string } | null => {
  const owner = prefixOf(path).slice(0, -1)
  if (owner === "") return null
  return { owner, container: instanceOf(owner)?.container ?? owner.slice(0, owner.lastIndexOf(":")) }
}

/** A run as it stands. Facts come in the order of their commits, what is not committed last. */
export class Standing {
  misfit: Misfit | null = null
  /** What is committed, with the case that was chosen. */
  private readonly done = new Map<string, string | null>()
  /** By the path of a node: the first thing that was begun at it or in it. */
  private readonly first = new Map<string, Fact>()
  /** By the path of a loop the turn that it has come to; by that of a `forEach` the items that were begun. */
  private readonly turns = new Map<string, string>()
  private readonly items = new Map<string, Set<string>>()

  constructor(private readonly plan: Plan) {}

  has(path: string): boolean {
    return this.done.has(path)
  }

  /** Something that is only to be found where its step looks for it, whenever that comes. */
  keep(fact: Fact): void {
    const problem = misplaced(this.plan, fact)
    if (problem !== null) this.refuse(fact, problem)
  }

  add(fact: Fact): void {
    this.keep(fact)
    if (this.misfit !== null) return
    const { as, path, seq } = fact
    const instance = instanceOf(path)
    if (seq !== null) this.done.set(path, fact.label)
    if (as === "turn") this.turns.set(instance!.container, path)
    const at = instance?.container ?? path
    // A compensation stands where its step stands, whatever else is open.
    if (entryAt(this.plan, at)!.isInOrder) this.note(at, fact)
  }

  /** Whether everything in order is done, or what is wrong. */
  check(): Misfit | null {
    if (this.misfit === null) this.all(this.plan.nodes, "")
    return this.misfit
  }

  private refuse({ path }: Fact, problem: string, remedy = bringBack): void {
    this.misfit ??= { step: path, problem: `${problem}; ${remedy}` }
  }

  /** It was begun, and so was everything that it stands in. */
  private note(path: string, fact: Fact): void {
    if (!this.first.has(path)) this.first.set(path, fact)
    const outer = around(path)
    if (outer === null) return
    const { container, owner } = outer
    const { kind } = nodeAt(this.plan, container)!
    if (!this.isOpen(kind, container, owner)) {
      return this.refuse(fact, `${said(fact)}, and '${container}', in which it stands, has not come to it`)
    }
    if (kind === "forEach") {
      const known = this.items.get(container)
      if (known === undefined) this.items.set(container, new Set([owner]))
      else known.add(owner)
    }
    this.note(container, fact)
  }

  /** Whether a run can have come to a case, an arm, a turn or an item. */
  private isOpen(kind: PlanNode["kind"], container: string, owner: string): boolean {
    if (kind === "loop") return this.done.has(owner)
    if (kind === "forEach") return this.done.has(itemsPath(container))
    const label = this.done.get(container)
    return (
      kind === "parallel" || (typeof label === "string" && casePrefix(container, escapeSegment(label)) === `${owner}/`)
    )
  }

  /** Nodes that come one after the other. True if all of them are done. */
  private all(nodes: ReadonlyArray<PlanNode>, prefix: string): boolean {
    let open: string | null = null
    let before: Fact | null = null
    for (const node of nodes) {
      const path = prefix + segmentOf(node.path)
      const fact = this.first.get(path)
      if (fact !== undefined) {
        const stands = (what: string) => this.refuse(fact, `${said(fact)}, and ${what}, stands before it now`, putAfter)
        if (open !== null) stands(`'${open}', which is not done`)
        else if (before !== null && fact.seq !== null && fact.seq < before.seq!)
          stands(`'${before.path}', which was committed after it`)
        before = fact
      }
      if (!this.isDone(node, path)) open ??= path
    }
    return open === null
  }

  private isDone(node: PlanNode, path: string): boolean {
    switch (node.kind) {
      case "branch":
      case "match": {
        const label = this.done.get(path)
        return typeof label === "string" && this.all(node.cases[label]!, casePrefix(path, escapeSegment(label)))
      }
      case "parallel":
        return Object.entries(node.arms)
          .map(([label, nodes]) => this.all(nodes, casePrefix(path, escapeSegment(label))))
          .every((isDone) => isDone)
      case "loop": {
        if (this.done.has(path)) return true
        const turn = this.turns.get(path)
        if (turn !== undefined) this.all(node.body, `${turn}/`)
        return false
      }
      case "forEach":
        if (this.done.has(path)) return true
        for (const item of this.items.get(path) ?? []) if (!this.done.has(item)) this.all(node.body, `${item}/`)
        return false
      default:
        return this.done.has(path)
    }
  }
}

/** Of a plan of steps alone it costs nothing to see that more is committed than is done. */
export const incompatible = (plan: Plan, { failure, frames }: Records): Decision | null => {
  const root = frames.get("")!
  if (!indexOf(plan).isFlat || failure !== null || root.steps.size <= (root.done.get("") ?? 0)) return null
  const standing = new Standing(plan)
  for (const step of root.steps.values()) standing.add(committed(step))
  const misfit = standing.check()
  return misfit === null ? null : { _tag: "Incompatible", ...misfit }
}
