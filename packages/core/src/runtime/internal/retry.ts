/** When an attempt that did not commit is followed by another: pure, so that it can be recorded before it is obeyed. */
import type { RetryOptions } from "../../dsl/StepOptions.js"
import type { PlanStep } from "../../model/Plan.js"
import { property } from "./errorDetails.js"

/** Delays up to this are slept in the process that owns the run; longer ones are durable (law X8). */
export const inProcessMs = 1_000

/** Up to a fifth on top, so that many runs that failed together do not come back together. */
const jitter = 0.2

/** A hundred years: what the other side asks for must not overflow a clock. */
const longestDelayMs = 100 * 365 * 86_400_000

/** Doublings counted: past them every delay is at its limit, and the power would overflow. */
const mostDoublings = 60

/** Delay before retry number `failures` (from 1), in whole milliseconds. `random` is in [0, 1). */
export const backoffMs = (retry: PlanStep["retry"], failures: number, random: number): number =>
  Math.ceil(
    Math.min(retry.delayMs * 2 ** Math.min(failures - 1, mostDoublings), retry.maxDelayMs) * (1 + jitter * random),
  )

const numberAt = (error: unknown, key: string): number | null => {
  const value = property(error, key)
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : null
}

/** A `when` that throws cannot say yes; the failure that it was asked about is the one to report. */
const saysYes = (when: NonNullable<RetryOptions["when"]>, error: unknown): boolean => {
  try {
    return when(error)
  } catch {
    return false
  }
}

/** Delay until the next attempt, or null if this failure was the last. */
export const retryDelayMs = (options: {
  readonly node: PlanStep
  readonly when: RetryOptions["when"] | undefined
  /** Failed attempts, this one included. */
  readonly failures: number
  readonly error: unknown
  /** Defects are bugs: the same code would fail the same way. */
  readonly defect: boolean
  readonly random: number
}): number | null => {
  const { node, when, failures, error, defect, random } = options
  if (defect || failures > node.retry.times || property(error, "isRetryable") === false) return null
  if (when !== undefined && !saysYes(when, error)) return null
  // What the other side asks for is a floor, never a ceiling.
  const floor = numberAt(error, "retryAfterMs") ?? 0
  const delayMs = Math.max(backoffMs(node.retry, failures, random), floor * (1 + jitter * random))
  return Math.min(Math.ceil(delayMs), longestDelayMs)
}

/** Delay before an operation of unknown outcome is sent again: doubling from a quarter of a second to a minute. */
export const resendDelayMs = (sends: number, random: number): number =>
  Math.ceil(Math.min(250 * 2 ** (sends - 1), 60_000) * (1 + jitter * random))
