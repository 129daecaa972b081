/** When an attempt that did not commit is followed by another: pure, so that it can be recorded before it is obeyed. */
import type { RetryOptions } from "../../dsl/StepOptions.js"
import type { PlanNode } from "../../model/Plan.js"

/** Delays up to this are slept in the process that owns the run; longer ones are durable (law X8). */
export const inProcessMs = 1_000

/** Up to a fifth on top, so that many runs that failed together do not come back together. */
const jitter = 0.2

/** Delay before retry number `failures` (from 1), in whole milliseconds. `random` is in [0, 1). */
export const backoffMs = (retry: PlanNode["retry"], failures: number, random: number): number =>
  Math.ceil(Math.min(retry.delayMs * 2 ** (failures - 1), retry.maxDelayMs) * (1 + jitter * random))

const numberAt = (error: unknown, key: string): number | null => {
  const value = typeof error === "object" && error !== null ? (error as Record<string, unknown>)[key] : undefined
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : null
}

const saysNo = (error: unknown): boolean =>
  typeof error === "object" && error !== null && (error as { isRetryable?: unknown }).isRetryable === false

/** Delay until the next attempt, or null if this failure was the last. */
export const retryDelayMs = (options: {
  readonly node: PlanNode
  readonly when: RetryOptions["when"] | undefined
  /** Failed attempts, this one included. */
  readonly failures: number
  readonly error: unknown
  /** Defects are bugs: the same code would fail the same way. */
  readonly defect: boolean
  readonly random: number
}): number | null => {
  const { node, when, failures, error, defect, random } = options
  if (defect || failures > node.retry.times || saysNo(error)) return null
  if (when !== undefined && !when(error)) return null
  // What the other side asks for is a floor, never a ceiling.
  const floor = numberAt(error, "retryAfterMs") ?? 0
  return Math.ceil(Math.max(backoffMs(node.retry, failures, random), floor * (1 + jitter * random)))
}

/** Delay before an operation of unknown outcome is sent again: doubling from a quarter of a second to a minute. */
export const resendDelayMs = (sends: number, random: number): number =>
  Math.ceil(Math.min(250 * 2 ** (sends - 1), 60_000) * (1 + jitter * random))
