/**
 * A plan, walked over the records that stand: whether they could have come about in the order of the plan, which nodes could
 * be under way by them, and whether the run could be over. It shares no line with the runtime that it judges.
 */
import type { Plan, PlanNode, StepRecord } from "@cairn/core"
import { segmentOf } from "./paths.js"

export type WalkedStep = Pick<StepRecord, "path" | "seq" | "effect" | "result">

/** How far one list of nodes has come: `last` is the number of its last record. */
interface Come {
  readonly done: boolean
  readonly last: number
}

const text = (result: string | null): any => JSON.parse(result ?? "null")

export class Walk {
  readonly problems: Array<string> = []
  /** Paths at which the run stands. */
  readonly open = new Set<string>()
  /** It has come to where it may end early. */
  mayEnd = false
  readonly done: boolean
  /** Everything under which a record stands. */
  private readonly touched = new Set<string>()

  constructor(
    plan: Plan,
    private readonly steps: ReadonlyMap<string, WalkedStep>,
  ) {
    for (const path of steps.keys()) {
      for (let at = 0; at < path.length; at++) {
        if (path[at] === "/" || path[at] === ":" || path[at] === "[") this.touched.add(path.slice(0, at))
      }
      this.touched.add(path)
    }
    this.done = this.all(plan.nodes, "", 0).done
  }

  private later(path: string, seq: number, after: number): void {
    if (seq <= after) this.problems.push(`'${path}' is commit number ${seq}, and what comes before it number ${after}`)
  }

  private all(nodes: ReadonlyArray<PlanNode>, prefix: string, after: number): Come {
    let last = after
    for (const [index, node] of nodes.entries()) {
      const come = this.one(node, prefix + segmentOf(node.path), last)
      last = come.last
      if (come.done) continue
      for (const skipped of nodes.slice(index + 1)) {
        const path = prefix + segmentOf(skipped.path)
        if (this.touched.has(path)) {
          this.problems.push(
            `'${path}' has begun, and '${prefix}${segmentOf(node.path)}', which stands before it, is not done`,
          )
        }
      }
      return { done: false, last }
    }
    return { done: true, last }
  }

  private recorded(path: string, after: number): Come {
    const record = this.steps.get(path)
    if (record === undefined) {
      this.open.add(path)
      return { done: false, last: after }
    }
    this.later(path, record.seq, after)
    return { done: true, last: record.seq }
  }

  private one(node: PlanNode, path: string, after: number): Come {
    switch (node.kind) {
      case "branch":
      case "match": {
        const chosen = this.recorded(path, after)
        const label: string | null = chosen.done ? text(this.steps.get(path)!.result).case : null
        let come = chosen
        for (const [name, nodes] of Object.entries(node.cases)) {
          const under = segmentOf(nodes[0]?.path ?? "")
          const prefix = nodes[0] === undefined ? null : nodes[0].path.slice(0, nodes[0].path.length - under.length)
          if (prefix === null) continue
          const own = `${path}${prefix.slice(node.path.length)}`
          if (name === label) come = this.all(nodes, own, chosen.last)
          else if (this.touched.has(own.slice(0, -1)))
            this.problems.push(`case '${own}' has begun, and '${label}' was chosen`)
        }
        return come
      }
      case "parallel": {
        let last = after
        let done = true
        for (const nodes of Object.values(node.arms)) {
          if (nodes[0] === undefined) continue
          const own = `${path}${nodes[0].path.slice(node.path.length, nodes[0].path.length - segmentOf(nodes[0].path).length)}`
          const come = this.all(nodes, own, after)
          done &&= come.done
          last = Math.max(last, come.last)
        }
        return { done, last }
      }
      case "loop":
        return this.loop(node, path, after)
      case "forEach":
        return this.each(node, path, after)
      case "end":
        this.mayEnd = true
        return { done: false, last: after }
      case "fail":
        return { done: false, last: after }
      default:
        return this.recorded(path, after)
    }
  }

  private loop(node: Extract<PlanNode, { kind: "loop" }>, path: string, after: number): Come {
    let come: Come = { done: true, last: after }
    let turn = 0
    for (; this.steps.has(`${path}[${turn}]`); turn++) {
      const { seq } = this.steps.get(`${path}[${turn}]`)!
      if (!come.done) this.problems.push(`turn ${turn} of '${path}' has begun before the one before it was done`)
      this.later(`${path}[${turn}]`, seq, come.last)
      come = this.all(node.body, `${path}[${turn}]/`, seq)
    }
    const record = this.steps.get(path)
    if (record === undefined) return { done: false, last: come.last }
    if (turn === 0 || !come.done) this.problems.push(`loop '${path}' has ended, and its last turn is not done`)
    this.later(path, record.seq, come.last)
    return { done: true, last: record.seq }
  }

  private each(node: Extract<PlanNode, { kind: "forEach" }>, path: string, after: number): Come {
    const items = this.steps.get(`${path}[]`)
    if (items === undefined) {
      if (this.steps.has(path)) this.problems.push(`forEach '${path}' has ended without items`)
      return { done: false, last: after }
    }
    this.later(items.path, items.seq, after)
    let last = items.seq
    let ended = 0
    const keys: ReadonlyArray<{ readonly key: string }> = text(items.result)
    for (const { key } of keys) {
      const come = this.all(node.body, `${path}[${key}]/`, items.seq)
      const end = this.steps.get(`${path}[${key}]`)
      last = Math.max(last, come.last, end?.seq ?? 0)
      if (end === undefined) continue
      ended++
      this.later(end.path, end.seq, come.last)
      if (!come.done && end.effect === "item") this.problems.push(`item '${end.path}' has ended, and is not done`)
    }
    const record = this.steps.get(path)
    if (record === undefined) return { done: false, last }
    if (ended < keys.length)
      this.problems.push(`forEach '${path}' has ended, and ${keys.length - ended} of its items have not`)
    this.later(path, record.seq, last)
    return { done: true, last: record.seq }
  }
}
