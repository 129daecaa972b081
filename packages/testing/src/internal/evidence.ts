/** What is known of a run that has ended, and what is counted of it. */
import type { EffectRecord, RunRecord, RunState } from "@cairn/core"
import type { Findings } from "./findings.js"
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
  /** Keys that had an intent when it was asked to be canceled, before it had ended; null if it never was. */
  readonly canceledAt: number | null
  readonly sameClock: boolean
}

export const effectsByOperation = (provider: SimulatedProvider): ReadonlyMap<string, number> => {
  const totals = new Map<string, number>()
  for (const { operation, effects } of provider.keys.values()) {
    totals.set(operation, (totals.get(operation) ?? 0) + effects)
  }
  return totals
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
