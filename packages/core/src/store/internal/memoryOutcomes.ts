/** What becomes of an operation, by its owner's word or a person's; and parked runs (D9, D16, D19). */
import type { EffectRecord } from "../../model/Records.js"
import type { AnswerRow, CheckpointDriver, OldOutputs, OutcomeRow } from "../CheckpointDriver.js"
import { childOf, find, type Data } from "./memoryData.js"

export const recordOutcome = (data: Data, outcome: OutcomeRow, now: number): boolean => {
  const generations = find(data, outcome.namespace, outcome.runId)?.effects.get(outcome.path)
  const effect = generations?.get(outcome.generation)
  // D9
  if (
    generations === undefined ||
    effect === undefined ||
    effect.state !== "intended" ||
    effect.idempotencyKey !== outcome.idempotencyKey ||
    effect.payloadHash !== outcome.payloadHash ||
    effect.claimToken !== outcome.claimToken
  ) {
    return false
  }
  generations.set(outcome.generation, { ...effect, state: outcome.state, outcome: outcome.outcome, settledAt: now })
  return true
}

export const findEffect = (data: Data, key: Parameters<CheckpointDriver["findEffect"]>[0]): EffectRecord | null => {
  const effect = find(data, key.namespace, key.runId)?.effects.get(key.path)?.get(key.generation)
  return effect === undefined ? null : { ...effect }
}

export const unpark = (data: Data, namespace: string, runId: string, now: number): boolean => {
  const run = find(data, namespace, runId)
  if (run === undefined || run.row.status !== "review") return false
  run.row = {
    ...run.row,
    status: "pending",
    parked: null,
    recoveries: 0,
    wakeAt: null,
    leaseOwner: null,
    claimToken: null,
    updatedAt: now,
  }
  return true
}

export const answer = (data: Data, given: AnswerRow, now: number): boolean => {
  const run = find(data, given.namespace, given.runId)
  const generations = run?.effects.get(given.path)
  const effect = generations?.get(given.generation)
  // D19
  if (
    run === undefined ||
    run.row.status !== "review" ||
    run.row.seq !== given.seq ||
    effect === undefined ||
    effect.state !== "intended"
  ) {
    return false
  }
  const { attempt, outcome, path, state } = given
  generations!.set(given.generation, { ...effect, state, outcome, settledAt: now })
  if (attempt !== null) {
    const { seq } = run.row
    childOf(run.attempts, path).set(attempt.attempt, { path, ...attempt, retryAt: null, endedAt: now, seq: seq + 1 })
  }
  return unpark(data, given.namespace, given.runId, now)
}

/** D43 */
export const forgetOutputs = (data: Data, { limit, namespace, olderThanMs }: OldOutputs, now: number): number => {
  let count = 0
  for (const { attempts, row } of data.namespaces.get(namespace)?.values() ?? []) {
    if (row.status === "review") continue
    for (const byNumber of attempts.values()) {
      for (const [number, attempt] of byNumber) {
        if (count >= limit) return count
        if (attempt.output === null || attempt.kind !== "rejected" || attempt.endedAt >= now - olderThanMs) continue
        byNumber.set(number, { ...attempt, output: null })
        count += 1
      }
    }
  }
  return count
}
