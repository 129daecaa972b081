/**
 * What a worker counts, as Effect metrics: any exporter of Effect's metrics sees them.
 *
 * Labels are workflows and outcomes, never runs: their number does not grow with the work done.
 */
import * as Exit from "effect/Exit"
import * as Metric from "effect/Metric"
import * as MetricBoundaries from "effect/MetricBoundaries"
import * as MetricKey from "effect/MetricKey"
import type * as MetricKeyType from "effect/MetricKeyType"
import * as MetricLabel from "effect/MetricLabel"
import type { RunRecord } from "../model/Records.js"
import type { LoopEnd } from "./internal/leave.js"

const claimedKey = MetricKey.counter("cairn.worker.runs.claimed", { description: "Runs claimed", incremental: true })
const recoveredKey = MetricKey.counter("cairn.worker.runs.recovered", {
  description: "Runs taken over from a worker that did not release them",
  incremental: true,
})
const endedKey = MetricKey.counter("cairn.worker.runs.ended", {
  description: "Runs that left the worker",
  incremental: true,
})
const stepsKey = MetricKey.counter("cairn.worker.steps.committed", {
  description: "Steps committed",
  incremental: true,
})
const durationKey = MetricKey.histogram(
  "cairn.worker.step.duration",
  MetricBoundaries.exponential({ start: 1, factor: 4, count: 10 }),
  "Duration of a committed step's last attempt, in milliseconds",
)

/**
 * The metrics of workers.
 *
 * *Shape.* `claimed`, `recovered` (claims that took over an unreleased lease) and `ended` count runs, by `workflow`;
 * `ended` also by `outcome`: `final`, `parked`, `sleeping`, `released`, `lost` or `error`. `active` is the number of runs
 * that this process executes now. `steps` counts committed steps, by `workflow`; `stepDuration` is the time of their last
 * attempt, in milliseconds. `heartbeatsFailed` counts heartbeats that the store did not take.
 *
 * @category metrics
 * @since 0.1.0
 */
export const WorkerMetrics = {
  claimed: Metric.fromMetricKey(claimedKey),
  recovered: Metric.fromMetricKey(recoveredKey),
  ended: Metric.fromMetricKey(endedKey),
  active: Metric.gauge("cairn.worker.runs.active", { description: "Runs that are executed now" }),
  steps: Metric.fromMetricKey(stepsKey),
  stepDuration: Metric.fromMetricKey(durationKey),
  heartbeatsFailed: Metric.counter("cairn.worker.heartbeats.failed", {
    description: "Heartbeats that the store did not take",
    incremental: true,
  }),
} as const

const outcomes = {
  Final: "final",
  Parked: "parked",
  Sleeping: "sleeping",
  Waiting: "waiting",
  Drained: "released",
} as const satisfies Record<LoopEnd["_tag"], string>

const outcomeOf = (exit: Exit.Exit<LoopEnd, unknown>, lost: boolean): string =>
  Exit.isSuccess(exit) ? outcomes[exit.value._tag] : lost ? "lost" : Exit.isInterrupted(exit) ? "released" : "error"

/** By what is counted, then by workflow and outcome: found without a text being put together for each count. */
const counters = new Map<MetricKey.MetricKey<any>, Map<string, (amount: number) => void>>()

const counterOf = <Type extends MetricKeyType.MetricKeyType<number, any>>(
  key: MetricKey.MetricKey<Type>,
  workflow: string,
  outcome?: string,
): ((amount: number) => void) => {
  const labels = [
    MetricLabel.make("workflow", workflow),
    ...(outcome === undefined ? [] : [MetricLabel.make("outcome", outcome)]),
  ]
  const metric = Metric.fromMetricKey(MetricKey.taggedWithLabels(key, labels))
  return (amount) => metric.unsafeUpdate(amount as never, [])
}

/**
 * Counts without an effect of its own, and finds the labelled metric once, not at each count: whoever commits a step or
 * claims a run must not pay for its labels.
 */
const count = <Type extends MetricKeyType.MetricKeyType<number, any>>(
  key: MetricKey.MetricKey<Type>,
  amount: number,
  workflow: string,
  outcome?: string,
): void => {
  let known = counters.get(key)
  if (known === undefined) counters.set(key, (known = new Map()))
  const name = outcome === undefined ? workflow : `${outcome} ${workflow}`
  let add = known.get(name)
  if (add === undefined) known.set(name, (add = counterOf(key, workflow, outcome)))
  add(amount)
}

export const countClaimed = (run: RunRecord): void => {
  count(claimedKey, 1, run.workflow)
  // X12: the store counts a recovery only where the lease was not released.
  if (run.recoveries > 0) count(recoveredKey, 1, run.workflow)
}

export const countEnded = (run: RunRecord, exit: Exit.Exit<LoopEnd, unknown>, lost: boolean): void =>
  count(endedKey, 1, run.workflow, outcomeOf(exit, lost))

export const countStep = (workflow: string, durationMs: number): void => {
  count(stepsKey, 1, workflow)
  count(durationKey, durationMs, workflow)
}

export const countActive = (runs: number): void => WorkerMetrics.active.unsafeUpdate(runs, [])

/**
 * The metrics of write-behind buffers.
 *
 * *Shape.* `depth`: commits that are accepted and not durable. `flushRuns`: runs in a flush. `flushDuration`: how long a
 * flush takes, and `oldest`: how long its oldest commit has waited for it to begin, both in milliseconds. `replayed` and `discarded` count commits that
 * were found in the logs of workers which are gone.
 *
 * @category metrics
 * @since 0.1.0
 */
export const WriteBehindMetrics = {
  depth: Metric.gauge("cairn.writeBehind.depth", { description: "Commits that are accepted and not durable" }),
  flushRuns: Metric.histogram(
    "cairn.writeBehind.flush.runs",
    MetricBoundaries.exponential({ start: 1, factor: 4, count: 8 }),
    "Runs in a flush",
  ),
  flushDuration: Metric.histogram(
    "cairn.writeBehind.flush.duration",
    MetricBoundaries.exponential({ start: 0.25, factor: 4, count: 10 }),
    "Duration of a flush, in milliseconds",
  ),
  oldest: Metric.histogram(
    "cairn.writeBehind.flush.oldest",
    MetricBoundaries.exponential({ start: 0.25, factor: 4, count: 10 }),
    "How long the oldest commit of a flush has waited for it, in milliseconds",
  ),
  replayed: Metric.counter("cairn.writeBehind.replayed", {
    description: "Commits that a worker which is gone had in its local log, and nowhere else",
    incremental: true,
  }),
  discarded: Metric.counter("cairn.writeBehind.discarded", {
    description: "Commits in the local log of a worker which is gone, whose runs have gone on without them",
    incremental: true,
  }),
} as const

/** Counts one flush. */
export const countFlush = (flush: {
  readonly runs: number
  readonly depth: number
  readonly oldestMs: number
  readonly durationMs: number
}): void => {
  WriteBehindMetrics.depth.unsafeUpdate(flush.depth, [])
  WriteBehindMetrics.flushRuns.unsafeUpdate(flush.runs, [])
  WriteBehindMetrics.flushDuration.unsafeUpdate(flush.durationMs, [])
  WriteBehindMetrics.oldest.unsafeUpdate(flush.oldestMs, [])
}
