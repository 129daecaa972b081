/**
 * The plans that a run has come to after the one under which it was created: each a record beside its steps, in the run's own
 * scope, so that every resume has it without a further look.
 */
import type { StepRecord } from "../../model/Records.js"

export const planEffect = "plan"

/** A record of a plan, without what only its commit knows. */
export const planRecord = (seq: number, hash: string): Omit<StepRecord, "committedAt" | "seq"> => ({
  path: `:plan@${seq}`,
  scope: "",
  result: JSON.stringify(hash),
  effect: planEffect,
  idempotencyKey: null,
  attempts: 1,
  durationMs: 0,
})

/** The hash of the plan that a record tells of. */
export const recordedPlan = ({ result }: StepRecord): string => JSON.parse(result ?? '""') as string
