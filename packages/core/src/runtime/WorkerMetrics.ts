/**
 * What a worker counts, as Effect metrics: any exporter of Effect's metrics sees them.
 *
 * Labels are workflows and outcomes, never runs: their number does not grow with the work done.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Metric from "effect/Metric"
import * as MetricBoundaries from "effect/MetricBoundaries"
import type { RunRecord } from "../model/Records.js"
import type { LoopEnd } from "./internal/leave.js"

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
  claimed: Metric.counter("cairn.worker.runs.claimed", { description: "Runs claimed", incremental: true }),
  recovered: Metric.counter("cairn.worker.runs.recovered", {
    description: "Runs taken over from a worker that did not release them",
    incremental: true,
  }),
  ended: Metric.counter("cairn.worker.runs.ended", { description: "Runs that left the worker", incremental: true }),
  active: Metric.gauge("cairn.worker.runs.active", { description: "Runs that are executed now" }),
  steps: Metric.counter("cairn.worker.steps.committed", { description: "Steps committed", incremental: true }),
  stepDuration: Metric.histogram(
    "cairn.worker.step.duration",
    MetricBoundaries.exponential({ start: 1, factor: 4, count: 10 }),
    "Duration of a committed step's last attempt, in milliseconds",
  ),
  heartbeatsFailed: Metric.counter("cairn.worker.heartbeats.failed", {
    description: "Heartbeats that the store did not take",
    incremental: true,
  }),
} as const

const outcomes = {
  Final: "final",
  Parked: "parked",
  Sleeping: "sleeping",
  Drained: "released",
} as const satisfies Record<LoopEnd["_tag"], string>

const outcomeOf = (exit: Exit.Exit<LoopEnd, unknown>, lost: boolean): string =>
  Exit.isSuccess(exit) ? outcomes[exit.value._tag] : lost ? "lost" : Exit.isInterrupted(exit) ? "released" : "error"

export const countClaimed = (run: RunRecord): Effect.Effect<void> =>
  Effect.zipRight(
    Metric.increment(Metric.tagged(WorkerMetrics.claimed, "workflow", run.workflow)),
    // X12: the store counts a recovery only where the lease was not released.
    run.recoveries > 0
      ? Metric.increment(Metric.tagged(WorkerMetrics.recovered, "workflow", run.workflow))
      : Effect.void,
  )

export const countEnded = (run: RunRecord, exit: Exit.Exit<LoopEnd, unknown>, lost: boolean): Effect.Effect<void> =>
  Metric.increment(
    Metric.tagged(Metric.tagged(WorkerMetrics.ended, "workflow", run.workflow), "outcome", outcomeOf(exit, lost)),
  )

/** Made once a run: a step that is committed must not pay for labels. */
export const stepCounters = (workflow: string) => {
  const steps = Metric.tagged(WorkerMetrics.steps, "workflow", workflow)
  const duration = Metric.tagged(WorkerMetrics.stepDuration, "workflow", workflow)
  return (durationMs: number): Effect.Effect<void> =>
    Effect.zipRight(Metric.increment(steps), Metric.update(duration, durationMs))
}
