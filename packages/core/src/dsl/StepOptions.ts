/** How a step is retried, timed out, and what happens to an output that its schema refuses. */
import type * as Duration from "effect/Duration"

/**
 * Retries of a step, after failures that are known not to have had an effect.
 *
 * *Shape.* `times`: retries after the first attempt; 0 is none. The delay doubles from `delay` (1 second) up to
 * `maxDelay` (5 minutes, or `delay` if that is longer), with jitter of up to a fifth on top; delays over a second survive a restart. An error's
 * `retryAfterMs` is a floor. `when` decides which failures are retried; by default all but those that say
 * `isRetryable: false`. Defects (bugs) and refused outputs are never retried here.
 *
 * @category options
 * @since 0.1.0
 */
export interface RetryOptions<E = unknown> {
  readonly times: number
  readonly delay?: Duration.DurationInput
  readonly maxDelay?: Duration.DurationInput
  readonly when?: (error: E) => boolean
}

/**
 * An output that the step's schema has refused.
 *
 * *Shape.* `raw` is what the function gave, as JSON; undefined where it has no such form, or is too large to be kept. `issues`
 * says what is wrong with it, for a person or a model to read. `attempt` counts from 1.
 *
 * @category models
 * @since 0.1.0
 */
export interface RejectedOutput {
  readonly raw: unknown
  readonly issues: string
  readonly attempt: number
}

/**
 * What to do with an output that the step's schema refuses.
 *
 * *Shape.* `repair`: mends it without any effect (text around a model's JSON, a number in quotes); what it gives is checked like
 * any output of unknown shape, and what does not fit, or throws, counts as not mended. `retries`: how often the step runs again
 * because of it, counted apart from `retry`; the function sees the last refused output as `rejected`. `then`: park the run for a
 * person (`Cairn.accept` gives the output in the step's place, `Cairn.resume` has it tried again), or fail it. Without `onInvalid`
 * the run fails at once.
 *
 * @category options
 * @since 0.1.0
 */
export interface OnInvalid {
  readonly retries: number
  readonly repair?: (rejected: RejectedOutput) => unknown
  readonly then: "review" | "fail"
}

/**
 * What to do when data that a step has read (`DataVersion`) has moved by the time the run goes on.
 *
 * *Shape.* `rerun`: the step and all that was committed after it is undone, and the run goes on from there; where something has
 * happened outside since (an operation, a transaction, a child), it is `review` instead. `review`, which is the default: the run is
 * parked as `DataStale`; `Cairn.resume` lets it go on with what it has. `fail`: it fails with `StaleData`. `accept`: it goes on.
 *
 * @category options
 * @since 0.1.0
 */
export type OnStale = "rerun" | "review" | "fail" | "accept"

/**
 * Options of every step.
 *
 * @category options
 * @since 0.1.0
 */
export interface StepOptions<E = unknown> {
  readonly retry?: RetryOptions<E>
  /** Of one attempt. When it passes, the step is interrupted: fiber and `AbortSignal`. */
  readonly timeout?: Duration.DurationInput
  readonly onInvalid?: OnInvalid
  /** Of a step that declares data with a version; `review` unless given. */
  readonly onStale?: OnStale
}
