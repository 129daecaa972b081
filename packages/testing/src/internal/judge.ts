/** Holds what a run came to against what its policies promise, and against the run without trouble. */
import type { EffectRecord, RunRecord, RunState } from "@cairn/core"
import type { Findings } from "./findings.js"
import { guarantees } from "./guarantee.js"
import type { SimulatedProvider } from "./provider.js"
import type { Schedule } from "./schedule.js"
import type { Subject } from "./subject.js"
import type { CommitLog } from "./watchedStore.js"

/** How a run ended, in the parts that trouble must not change. */
export interface End {
  readonly status: string
  readonly text: string
}

export const endOf = (run: RunRecord): End => {
  const { status, output, failure, parked } = run
  const shown =
    failure !== null && status === "failed"
      ? failure.kind === "declared"
        ? ["declared", failure.step, failure.operation, failure.value]
        : ["undeclared", failure.step, failure.problem]
      : status === "review" && parked !== null
        ? [parked.reason, parked.step]
        : [output]
  return { status, text: JSON.stringify([status, ...shown]) }
}

/** What one step did outside, over all its keys. */
export interface StepEffects {
  readonly path: string
  readonly requests: number
  readonly effects: number
}

/** A run without trouble: what the others are compared with. */
export interface Baseline {
  readonly end: End
  readonly effects: ReadonlyMap<string, number>
  readonly durationMs: number
}

export interface Evidence {
  readonly subject: Subject
  readonly state: RunState
  readonly intents: ReadonlyArray<EffectRecord>
  readonly provider: SimulatedProvider
  readonly log: CommitLog
  readonly findings: Findings
  readonly schedule: Schedule
  readonly stuck: boolean
  readonly baseline: Baseline | null
  readonly sameResult: boolean
}

export const effectsByOperation = (provider: SimulatedProvider): ReadonlyMap<string, number> => {
  const totals = new Map<string, number>()
  for (const { operation, effects } of provider.keys.values()) {
    totals.set(operation, (totals.get(operation) ?? 0) + effects)
  }
  return totals
}

const judgeKeys = ({ subject, provider, intents, findings, schedule }: Evidence): void => {
  const recorded = new Set(intents.map(({ idempotencyKey }) => idempotencyKey))
  for (const { operation, key, payloads, effects } of provider.keys.values()) {
    const policy = subject.operations.get(operation)?.onUnknown.policy
    if (!recorded.has(key)) findings.add("intent", `'${operation}' was sent under a key that no intent records`)
    if (payloads.size > 1)
      findings.add("payload", `'${operation}' was sent under one key with ${payloads.size} payloads`)
    const most = policy === undefined ? 1 : guarantees[policy].mostEffects(schedule)
    if (effects > most)
      findings.add("effects", `'${operation}' had ${effects} effects under one key, at most ${most} are promised`)
  }
}

/** Whether an unknown outcome may wait for a person here. */
const mayPark = ({ subject, state, intents, schedule }: Evidence): boolean => {
  const { parked } = state.run
  if (parked?.reason !== "OutcomeUnknown" || schedule.length === 0) return false
  const intent = intents.findLast(({ path }) => path === parked.step)
  const policy = intent === undefined ? undefined : subject.operations.get(intent.operation)?.onUnknown
  if (intent === undefined || policy === undefined) return false
  if (guarantees[policy.policy].parks) return true
  const { maxSends } = policy as { readonly maxSends?: number }
  return maxSends !== undefined && intent.sends >= maxSends
}

const judgeTotals = (evidence: Evidence, baseline: Baseline, ended: boolean): void => {
  const { subject, provider, findings, schedule } = evidence
  const totals = effectsByOperation(provider)
  for (const operation of new Set([...totals.keys(), ...baseline.effects.keys()])) {
    const now = totals.get(operation) ?? 0
    const expected = baseline.effects.get(operation) ?? 0
    const policy = subject.operations.get(operation)?.onUnknown.policy
    const slack = policy === undefined ? 0 : guarantees[policy].mostEffects(schedule) - 1
    if (now > expected + slack || (ended && now < expected)) {
      findings.add("effects", `'${operation}' had ${now} effects in all, ${expected} without trouble`)
    }
  }
}

/** *Laws.* What is checked stands with `Check`. */
export const judge = (evidence: Evidence): End => {
  const { state, log, findings, stuck, baseline } = evidence
  const end = endOf(state.run)
  log.check(state)
  judgeKeys(evidence)
  if (stuck) {
    findings.add("stuck", `the run is still '${end.status}' long after it should have ended`)
    return end
  }
  if (baseline === null) return end
  const same = end.text === baseline.end.text || (!evidence.sameResult && end.status === baseline.end.status)
  if (!same) {
    if (end.status !== "review")
      findings.add("result", `it ended with ${end.text}, without trouble with ${baseline.end.text}`)
    else if (!mayPark(evidence))
      findings.add("parked", `it waits for a person: ${state.run.parked?.reason ?? "unknown"}`)
  }
  judgeTotals(evidence, baseline, same)
  return end
}

/** Requests and effects of each step, told by its keys. */
export const stepEffects = (
  provider: SimulatedProvider,
  intents: ReadonlyArray<EffectRecord>,
): ReadonlyArray<StepEffects> => {
  const pathOf = new Map(intents.map(({ idempotencyKey, path }) => [idempotencyKey, path]))
  const byPath = new Map<string, { requests: number; effects: number }>()
  for (const { key, requests, effects } of provider.keys.values()) {
    const path = pathOf.get(key)
    if (path === undefined) continue
    const known = byPath.get(path) ?? { requests: 0, effects: 0 }
    byPath.set(path, { requests: Math.max(known.requests, requests), effects: known.effects + effects })
  }
  return [...byPath].map(([path, counts]) => ({ path, ...counts }))
}
