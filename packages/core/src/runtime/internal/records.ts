/**
 * What this process knows of a run, as `decide` reads it: what was committed, in the scopes that are open. What is over is let go
 * as soon as it is (X7).
 */
import { compensationPath } from "../../dsl/internal/compensation.js"
import type { Plan } from "../../model/Plan.js"
import type {
  AttemptRecord,
  EffectRecord,
  FailureRecord,
  OpenState,
  RunRecord,
  RunState,
  StepRecord,
  WaitRecord,
} from "../../model/Records.js"
import type { EffectWrite } from "../../store/CheckpointDriver.js"
import { DataNotes, isDataScope } from "./dataNotes.js"
import type { Records } from "./decide.js"
import { emptyFrame, Fan, type FanItem, type Frame } from "./frames.js"
import { instanceOf, instancePath, prefixOf, scopeOf } from "./paths.js"
import { indexOf, nodeAt } from "./planIndex.js"
import { planEffect, recordedPlan } from "./planRecords.js"
import { statePath, windowScope, windowState, type WindowState } from "./windowStates.js"

const append = <V>(map: Map<string, Array<V>>, key: string, value: V): void => {
  const list = map.get(key)
  if (list === undefined) map.set(key, [value])
  else list.push(value)
}

const nowhere: ReadonlySet<string> = new Set()

export abstract class RunRecords implements Records {
  status: RunRecord["status"]
  failure: FailureRecord | null
  cancelAt: number | null
  /** The plan under which it was last worked on. */
  planHash: string
  /** Nothing of it was done under any other plan than this one. */
  private hasOnePlan: boolean
  readonly frames = new Map<string, Frame>()
  readonly turns = new Map<string, StepRecord | null>()
  /** Turns that have ended, where something in them is taken back. */
  readonly pastTurns = new Map<string, StepRecord>()
  readonly fans = new Map<string, Fan | null>()
  waits: Map<string, WaitRecord> | null
  readonly failing = new Map<string, FailureRecord>()
  undo: Array<StepRecord> | null
  /** Scopes of items that an earlier owner may have begun, and that were not read. */
  readonly unread = new Set<string>()
  readonly data: DataNotes
  window: WindowState | null | undefined
  /** A fork finds results that it goes on with at paths that come later: each is looked at before its step begins. */
  reused: ReadonlySet<string> | null

  constructor(
    private readonly plan: Plan,
    { run, steps }: RunState,
    isNew: boolean,
  ) {
    this.reused = run.forkedFrom === null ? nowhere : null
    this.status = run.status
    this.failure = run.failure
    this.cancelAt = run.cancelAt
    this.planHash = run.planHash
    this.hasOnePlan = run.planHash === plan.hash
    this.waits = isNew ? new Map() : null
    this.undo = indexOf(plan).takesBack ? null : []
    this.data = new DataNotes(indexOf(plan).readsData && !isNew)
    this.window = plan.window === undefined || isNew ? null : undefined
    this.frames.set("", emptyFrame("", isNew))
    for (const step of steps) this.note(step)
  }

  /** Nothing of that scope is looked at again. */
  protected abstract onDropped(scope: string): void

  /** Adds what earlier owners left of paths that are not committed. */
  addOpen(paths: ReadonlyArray<string>, open: OpenState): void {
    for (const path of paths) this.frameAt(path).looked.add(path)
    for (const effect of open.effects) append(this.frameAt(effect.path).effects, effect.path, effect)
    for (const attempt of open.attempts) append(this.frameAt(attempt.path).attempts, attempt.path, attempt)
  }

  /** The frame of a scope; made where there is none yet. */
  frame(scope: string, settled = true): Frame {
    const known = this.frames.get(scope)
    if (known !== undefined) return known
    const made = emptyFrame(scope, settled)
    this.frames.set(scope, made)
    return made
  }

  private frameAt(path: string): Frame {
    return this.frame(scopeOf(prefixOf(path)))
  }

  /** Everything that may have been left in the store was read: what is not known is not there. */
  settle(): void {
    for (const frame of this.frames.values()) frame.settled = true
  }

  /** The state with which a turn has begun. */
  turnAt(scope: string): StepRecord | null {
    const turn = this.turns.get(instanceOf(scope)!.container) ?? null
    return turn?.path === scope ? turn : (this.pastTurns.get(scope) ?? null)
  }

  /** Takes in a committed record. */
  note(record: StepRecord): void {
    const { path, scope } = record
    if (isDataScope(scope)) return this.data.note(record)
    if (scope === windowScope) return this.noteWindow(record)
    if (scope.endsWith("[")) return this.noteInstance(record)
    if (scope.endsWith("[]")) return this.openFan(path, record.result)
    if (record.effect === planEffect) return this.noteSecondPlan(record)
    const frame = this.frame(scope)
    frame.steps.set(path, record)
    frame.effects.delete(path)
    frame.attempts.delete(path)
    if (record.effect === "loop" || record.effect === "forEach") this.forget(path)
    const [undone] = this.undo ?? []
    if (undone !== undefined && path === compensationPath(undone.path)) this.undo!.shift()
  }

  private noteSecondPlan(record: StepRecord): void {
    this.planHash = recordedPlan(record)
    this.hasOnePlan = false
  }

  /** The window is another one now. `settled`: nothing can have been left of a step that compacts it. */
  protected noteWindow(record: StepRecord, settled = true): void {
    const known = this.window ?? null
    if (known !== null && known.record.seq >= record.seq) return
    this.drop(known === null ? undefined : statePath(known.record))
    this.window = windowState(record)
    this.frame(statePath(record), settled)
  }

  /** The window as the store has it. */
  openWindowState(latest: StepRecord | null): void {
    if (latest === null) this.window = null
    else this.noteWindow(latest, false)
  }

  /** A turn has begun, or an item has come to its end. */
  private noteInstance(record: StepRecord): void {
    const { container, key } = instanceOf(record.path)!
    if (record.effect === "turn") {
      this.drop(this.turns.get(container)?.path)
      this.turns.set(container, record)
      this.frame(record.path)
    } else {
      const fan = this.fans.get(container)
      fan?.end(key, record.effect === "item:failed")
      this.failing.delete(record.path)
      this.drop(record.path)
      if (fan !== undefined && fan !== null) this.openWindow(container, fan)
    }
  }

  /** The items of a `forEach` are known; those of the given ends are done. */
  openFan(
    path: string,
    items: string | null,
    ended: ReadonlyArray<{ readonly key: string; readonly failed: boolean }> = [],
    settled = true,
  ): void {
    const container = path.endsWith("[]") ? path.slice(0, -2) : path
    const node = nodeAt(this.plan, container)
    const concurrency = node?.kind === "forEach" ? node.concurrency : 1
    const fan = new Fan(JSON.parse(items ?? "[]") as ReadonlyArray<FanItem>, concurrency, ended)
    this.fans.set(container, fan)
    if (!settled) {
      // What was in the window of an earlier owner may have left something. Under another plan that was another window.
      const done = new Set(ended.map(({ key }) => key))
      const begun = this.hasOnePlan ? fan.window.map((index) => fan.items[index]!) : fan.items
      for (const { key } of begun) if (!done.has(key)) this.unread.add(instancePath(container, key))
    }
    this.openWindow(container, fan)
  }

  /** Items that come under way have left nothing yet, unless an earlier owner may have begun them. */
  private openWindow(container: string, fan: Fan): void {
    for (const index of fan.window) {
      const scope = instancePath(container, fan.items[index]!.key)
      if (!this.unread.has(scope)) this.frame(scope)
    }
  }

  /** A loop or a `forEach` is over: nothing of its turns and items is looked at again. */
  private forget(path: string): void {
    this.drop(this.turns.get(path)?.path)
    this.turns.delete(path)
    this.fans.delete(path)
  }

  private drop(scope: string | undefined): void {
    if (scope === undefined) return
    for (const known of [...this.frames.keys()])
      if (known === scope || known.startsWith(`${scope}/`)) this.frames.delete(known)
    for (const map of [this.turns, this.fans]) {
      for (const key of [...map.keys()]) if (key.startsWith(`${scope}/`)) map.delete(key)
    }
    this.data.drop(scope)
    this.onDropped(scope)
  }

  protected noteAttempt(attempt: AttemptRecord): void {
    append(this.frameAt(attempt.path).attempts, attempt.path, attempt)
  }

  /** Takes in an intent or what became of it. */
  protected noteEffect(write: EffectWrite, at: number): void {
    const { effects } = this.frameAt(write.path)
    const list = effects.get(write.path) ?? []
    const known = list.find((effect) => effect.generation === write.generation)
    // D17: what is settled stays as it is.
    if (known !== undefined && known.state !== "intended") return
    const record: EffectRecord = {
      ...write,
      intentAt: known?.intentAt ?? at,
      settledAt: write.state === "intended" ? null : at,
    }
    effects.set(write.path, [...list.filter((effect) => effect !== known), record])
  }
}
