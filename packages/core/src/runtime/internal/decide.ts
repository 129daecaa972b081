/**
 * What a run does next: a pure function of its plan and its committed records (law X1). The loop obeys it.
 *
 * It walks the plan, and comes to a stop at the first node of each arm and item that is not done: so it finds everything
 * that can go on at once. What it would have to know and does not, it asks for (X7).
 */
import { compensationPath as compensationOf } from "../../dsl/internal/compensation.js"
import { escapeSegment } from "../../model/Ids.js"
import type { Plan, PlanControl, PlanNode, PlanStep } from "../../model/Plan.js"
import type {
  AttemptRecord,
  EffectRecord,
  FailureRecord,
  RunStatus,
  StepRecord,
  WaitRecord,
} from "../../model/Records.js"
import type { Fan, Frame } from "./frames.js"
import { casePrefix, instancePath, prefixOf, scopeOf, segmentOf, turnPrefix } from "./paths.js"
import { nodeAt } from "./planIndex.js"
import { incompatible } from "./standing.js"
import { compactionPath, statePath, type WindowState } from "./windowStates.js"

/** The records of a run. The loop adds to them what it has committed. */
export interface Records {
  readonly status: RunStatus
  /** Why the run fails: set, and durable, before the first compensation begins. */
  readonly failure: FailureRecord | null
  /** When somebody asked to cancel the run; null if nobody has. */
  readonly cancelAt: number | null
  /** By scope; that of the empty text is always there. */
  readonly frames: ReadonlyMap<string, Frame>
  /** The turn that each open loop has come to, by its path; null where none has begun. */
  readonly turns: ReadonlyMap<string, StepRecord | null>
  /** The open `forEach`s, by their paths; null where none has begun. */
  readonly fans: ReadonlyMap<string, Fan | null>
  /** What the run waits for; null where it is not known. */
  readonly waits: ReadonlyMap<string, WaitRecord> | null
  /** Items that fail while something in them may still be under way. */
  readonly failing: ReadonlyMap<string, FailureRecord>
  /** Performed steps that are not taken back yet, the last first; null where it is not known. */
  readonly undo: ReadonlyArray<StepRecord> | null
  /** Of a fork the paths at which it may find results that it goes on with; null where they are not known. */
  readonly reused: ReadonlySet<string> | null
  /** The run's window: null where it has none yet, undefined where it is not known. */
  readonly window: WindowState | null | undefined
}

/** One attempt that may begin. */
export interface Attempt {
  readonly _tag: "Attempt"
  readonly node: PlanStep
  readonly path: string
  readonly frame: Frame
  /** The run is over once it is committed. */
  readonly isLast: boolean
  /** The step that it takes back; null for a step. */
  readonly takesBack: StepRecord | null
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

/** What has to be computed and recorded before the run goes on (X1). */
export interface Steer {
  readonly _tag: "Steer"
  readonly what: "case" | "initial" | "next" | "items" | "item" | "each" | "fail" | "end"
  readonly node: PlanControl
  readonly path: string
  readonly frame: Frame
  /** Of a turn its number, of an item its key. */
  readonly of: string
}

/** Something that the run waits for; `record` is null where it does not do so yet. */
export interface Wait {
  readonly _tag: "Wait"
  readonly node: Extract<PlanControl, { readonly kind: "sleep" | "signal" | "review" | "child" }>
  readonly path: string
  readonly frame: Frame
  readonly record: WaitRecord | null
}

/** What has to be read before it can be told what comes next. */
export interface Load {
  readonly _tag: "Load"
  readonly what: "turn" | "fan" | "frame" | "open" | "waits" | "undo" | "window" | "reused"
  readonly path: string
  readonly node: PlanNode | null
}

export type Work = Attempt | Steer | Wait | Load

/** What the window asks for: that it begins, or that what is too large is made smaller, by a function or by a step. */
export type WindowWork = { readonly _tag: "Begin" } | { readonly _tag: "Shrink" } | Attempt

export type Decision =
  | { readonly _tag: "Finished" }
  | { readonly _tag: "Complete" }
  /** X5: nothing is unknown, and the run is to be canceled; `step` is the one that would come next. */
  | { readonly _tag: "Cancel"; readonly step: string }
  /** Everything that could be taken back is. */
  | { readonly _tag: "Failed"; readonly failure: FailureRecord }
  /** The code cannot interpret what is committed (law X10). */
  | { readonly _tag: "Incompatible"; readonly step: string; readonly problem: string }
  /** Before anything else of the run begins; what is under way ends first. `isAlone`: of the rest, nothing could go on. */
  | { readonly _tag: "Window"; readonly work: WindowWork; readonly isAlone: boolean }
  | { readonly _tag: "Work"; readonly work: ReadonlyArray<Work> }

const none: ReadonlyArray<never> = []

/** Nothing is known of the step yet. */
const firstAttempt = (node: PlanStep, path: string, frame: Frame, isLast: boolean): Attempt => ({
  _tag: "Attempt",
  node,
  path,
  frame,
  isLast,
  takesBack: null,
  attempt: 1,
  failures: 0,
  rejections: 0,
  generation: 0,
  effect: null,
  notBefore: null,
})

const count = (attempts: ReadonlyArray<AttemptRecord>, ...kinds: ReadonlyArray<AttemptRecord["kind"]>): number =>
  attempts.filter((attempt) => kinds.includes(attempt.kind)).length

const attemptAt = (node: PlanStep, path: string, frame: Frame, isLast: boolean): Attempt => {
  const attempts = frame.attempts.get(path) ?? none
  const effects = frame.effects.get(path) ?? none
  const first = firstAttempt(node, path, frame, isLast)
  if (attempts === none && effects === none) return first
  // Each refused attempt accounts for one generation. A generation beyond them may be settled all the same: a worker
  // that lost its lease recorded what it knew (X6), and no attempt has answered for it yet.
  const generation = count(attempts, "refused")
  // A person who has a failed run tried again grants it all its retries anew.
  const since = attempts.slice(attempts.findLastIndex(({ kind }) => kind === "retried") + 1)
  return {
    ...first,
    attempt: attempts.length + 1,
    failures: count(since, "failed", "refused"),
    rejections: count(since, "rejected"),
    generation,
    effect: effects.find((effect) => effect.generation === generation) ?? null,
    notBefore: attempts.at(-1)?.retryAt ?? null,
  }
}

/** X5: an operation that happened, or may have, is brought to its end before its run ends. */
export const isOpenAttempt = (work: Work): boolean =>
  work._tag === "Attempt" && (work.effect?.state === "intended" || work.effect?.state === "succeeded")

/** What a run that is about to end still has to see to: unknown outcomes, and children that may be at work. */
const isOpen = (work: Work): boolean =>
  isOpenAttempt(work) ||
  (work._tag === "Wait" && work.node.kind === "child" && (work.record !== null || !work.frame.settled))

const segment = (node: PlanNode, prefix: string): string => (prefix === "" ? node.path : prefix + segmentOf(node.path))

class Walk {
  readonly work: Array<Work> = []

  constructor(
    private readonly plan: Plan,
    private readonly records: Records,
  ) {}

  /** Walks nodes that come one after the other. True if all of them are done. */
  all(nodes: ReadonlyArray<PlanNode>, prefix: string, frame: Frame): boolean {
    let index = frame.done.get(prefix) ?? 0
    for (; index < nodes.length; index++) {
      const node = nodes[index]!
      const isLast = frame.scope === "" && prefix === "" && index === this.plan.nodes.length - 1
      if (!this.one(node, segment(node, prefix), frame, isLast)) break
    }
    // Only a memory of what follows from the records.
    frame.done.set(prefix, index)
    return index === nodes.length
  }

  private load(what: Load["what"], path: string, node: PlanNode | null = null): false {
    this.work.push({ _tag: "Load", what, path, node })
    return false
  }

  private steer(what: Steer["what"], node: PlanControl, path: string, frame: Frame, of = ""): false {
    this.work.push({ _tag: "Steer", what, node, path, frame, of })
    return false
  }

  private one(node: PlanNode, path: string, frame: Frame, isLast: boolean): boolean {
    const record = frame.steps.get(path)
    switch (node.kind) {
      case "step":
      case "perform":
        if (record !== undefined) return true
        if ((!frame.settled || this.records.reused!.has(path)) && !frame.looked.has(path)) {
          return this.load("open", path, node)
        }
        this.work.push(attemptAt(node, path, frame, isLast))
        return false
      case "sleep":
      case "signal":
      case "review":
      case "child": {
        if (record !== undefined) return true
        const { waits } = this.records
        if (waits === null) return this.load("waits", path)
        this.work.push({ _tag: "Wait", node, path, frame, record: waits.get(path) ?? null })
        return false
      }
      case "branch":
      case "match": {
        if (record === undefined) return this.steer("case", node, path, frame)
        const label = (JSON.parse(record.result ?? "null") as { readonly case: string }).case
        return this.all(node.cases[label] ?? none, casePrefix(path, escapeSegment(label)), frame)
      }
      case "parallel": {
        let done = true
        for (const [label, nodes] of Object.entries(node.arms)) {
          if (!this.all(nodes, casePrefix(path, escapeSegment(label)), frame)) done = false
        }
        return done
      }
      case "loop":
        return record !== undefined || this.loop(node, path, frame)
      case "forEach":
        return record !== undefined || this.each(node, path, frame)
      default:
        return this.steer(node.kind, node, path, frame)
    }
  }

  /** The frame of a turn or item; asked for where it may have left something. */
  private frame(scope: string): Frame | null {
    const frame = this.records.frames.get(scope)
    if (frame === undefined) this.load("frame", scope)
    return frame ?? null
  }

  private loop(node: Extract<PlanControl, { kind: "loop" }>, path: string, frame: Frame): false {
    const turn = this.records.turns.get(path)
    if (turn === undefined && !frame.settled) return this.load("turn", path, node)
    if (turn === undefined || turn === null) return this.steer("initial", node, path, frame)
    const body = this.frame(turn.path)
    if (body === null) return false
    const of = turn.path.slice(turn.path.lastIndexOf("[") + 1, -1)
    return this.all(node.body, turnPrefix(path, of), body) ? this.steer("next", node, path, frame, of) : false
  }

  private each(node: Extract<PlanControl, { kind: "forEach" }>, path: string, frame: Frame): false {
    const fan = this.records.fans.get(path)
    if (fan === undefined && !frame.settled) return this.load("fan", path, node)
    if (fan === undefined || fan === null) return this.steer("items", node, path, frame)
    if (fan.done === fan.items.length) return this.steer("each", node, path, frame)
    for (const index of fan.window) {
      const { key } = fan.items[index]!
      const scope = instancePath(path, key)
      const body = this.frame(scope)
      if (body === null) continue
      const from = this.work.length
      const done = this.all(node.body, turnPrefix(path, key), body)
      if (this.records.failing.has(scope)) {
        // Nothing new begins in it; what is unknown is resolved first.
        const open = this.work.splice(from).filter((work) => isOpen(work) || work._tag === "Load")
        this.work.push(...open)
        if (open.length > 0) continue
      } else if (!done) continue
      this.steer("item", node, path, frame, key)
    }
    return false
  }
}

const final: ReadonlySet<RunStatus> = new Set(["completed", "failed", "canceled"])

/** Whether a committed step has an effect that can be taken back: not if it was left out, or settled as a failure. */
export const happened = (node: PlanStep, step: StepRecord): boolean =>
  step.idempotencyKey !== null && !(node.settle && step.result?.startsWith('{"ok":false') === true)

const takeBack = (plan: Plan, failure: FailureRecord, records: Records): Decision => {
  if (records.undo === null) return work([{ _tag: "Load", what: "undo", path: "", node: null }])
  const step = records.undo[0]
  if (step === undefined) return { _tag: "Failed", failure }
  const scope = scopeOf(prefixOf(step.path))
  const frame = records.frames.get(scope)
  if (frame === undefined) return work([{ _tag: "Load", what: "frame", path: scope, node: null }])
  const compensate = (nodeAt(plan, step.path) as PlanStep).compensate!
  const path = compensationOf(step.path)
  if (!frame.settled && !frame.looked.has(path)) return work([{ _tag: "Load", what: "open", path, node: compensate }])
  return work([{ ...attemptAt(compensate, path, frame, false), takesBack: step }])
}

/** What has to become of the window before the run goes on; null where nothing has. */
const windowWork = (plan: Plan, { frames, window }: Records): WindowWork | Load | null => {
  if (plan.window === undefined) return null
  if (window === undefined) return { _tag: "Load", what: "window", path: "", node: null }
  if (window === null) return { _tag: "Begin" }
  const { compact, maxBytes } = plan.window
  if (window.bytes <= maxBytes) return null
  if (compact === null) return { _tag: "Shrink" }
  const path = compactionPath(window.record)
  const frame = frames.get(statePath(window.record))!
  return frame.settled || frame.looked.has(path)
    ? attemptAt(compact, path, frame, false)
    : { _tag: "Load", what: "open", path, node: compact }
}

const work = (work: ReadonlyArray<Work>): Decision => ({ _tag: "Work", work })

/** X1: the same plan and records give the same decision, in any process and at any time. */
export const decide = (plan: Plan, records: Records): Decision => {
  if (final.has(records.status)) return { _tag: "Finished" }
  if (records.reused === null) return work([{ _tag: "Load", what: "reused", path: "", node: null }])
  const walk = new Walk(plan, records)
  const done = walk.all(plan.nodes, "", records.frames.get("")!)
  const problem = incompatible(plan, records)
  if (problem !== null) return problem
  const window = windowWork(plan, records)
  const loads = walk.work.filter(({ _tag }) => _tag === "Load")
  if (window?._tag === "Load") loads.push(window)
  if (loads.length > 0) return work(loads)
  const settling = records.failure !== null || records.cancelAt !== null
  const ends = walk.work.find((each) => each._tag === "Steer" && (each.what === "fail" || each.what === "end"))
  if (settling || ends !== undefined) {
    const open = walk.work.filter(isOpen)
    if (open.length > 0) return work(open)
  }
  if (records.failure !== null) return takeBack(plan, records.failure, records)
  if (records.cancelAt !== null) return { _tag: "Cancel", step: done ? "" : (walk.work[0]?.path ?? "") }
  const ofWindow = (work: WindowWork): Decision => ({ _tag: "Window", work, isAlone: walk.work.length <= 1 })
  if (window?._tag === "Begin") return ofWindow(window)
  if (ends !== undefined) return work([ends])
  if (done) return { _tag: "Complete" }
  return window === null || window._tag === "Load" ? work(walk.work) : ofWindow(window)
}
