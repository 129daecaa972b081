/** What is known of a run that has ended, and what is counted of it. */
import type { EffectRecord, RunRecord, RunState, StepRecord, WaitRecord } from "@cairn/core"
import type { CommitLog } from "./commitLog.js"
import type { Findings } from "./findings.js"
import type { SimulatedProvider } from "./provider.js"
import type { Schedule } from "./schedule.js"
import type { Subject } from "./subject.js"
import type { RunLogs } from "./watchedStore.js"

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
        : failure.kind === "child"
          ? ["child", failure.step]
          : ["undeclared", failure.step, failure.problem]
      : status === "review" && parked !== null
        ? [parked.reason, parked.step]
        : [output]
  return { status, text: JSON.stringify([status, ...shown]) }
}

/** What one step did outside, over all its keys. */
export interface StepEffects {
  readonly runId: string
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

/** One run as the store holds it in the end, beside what it has acknowledged. */
export interface RunEvidence {
  readonly runId: string
  readonly log: CommitLog
  readonly state: RunState
  /** Of all scopes. */
  readonly steps: ReadonlyArray<StepRecord>
  readonly waits: ReadonlyArray<WaitRecord>
  readonly intents: ReadonlyArray<EffectRecord>
}

export interface Evidence {
  readonly subject: Subject
  /** That of the explored run. */
  readonly state: RunState
  /** The explored run and all that it has started. */
  readonly runs: ReadonlyArray<RunEvidence>
  readonly provider: SimulatedProvider
  readonly logs: RunLogs
  readonly findings: Findings
  readonly schedule: Schedule
  readonly stuck: boolean
  readonly baseline: Baseline | null
  readonly sameResult: boolean
  readonly sameEnd: boolean
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
  runs: ReadonlyArray<Pick<RunEvidence, "intents" | "runId">>,
): ReadonlyArray<StepEffects> => {
  const stepOf = new Map(
    runs.flatMap(({ intents, runId }) =>
      intents.map(({ idempotencyKey, path }) => [idempotencyKey, { runId, path }] as const),
    ),
  )
  const bySteps = new Map<string, { -readonly [K in keyof StepEffects]: StepEffects[K] }>()
  for (const { key, requests, effects } of provider.keys.values()) {
    const step = stepOf.get(key)
    if (step === undefined) continue
    const name = `${step.runId} ${step.path}`
    const known = bySteps.get(name) ?? { ...step, requests: 0, effects: 0 }
    bySteps.set(name, { ...step, requests: Math.max(known.requests, requests), effects: known.effects + effects })
  }
  return [...bySteps.values()]
}
