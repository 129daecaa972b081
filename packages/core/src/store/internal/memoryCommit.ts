/** Commits (D2 to D5, D16, D17, D23, D24, D27, D29). */
import * as Effect from "effect/Effect"
import { StoreError } from "../../model/Errors.js"
import { committedStep } from "../../model/Records.js"
import type { CommitResult, CommitRows, RunRow } from "../CheckpointDriver.js"
import { childOf, find, isHeldUnder, type Data, type StoredRun } from "./memoryData.js"
import { consume, unseen } from "./memoryInbox.js"
import { wakeParent, writeWaits } from "./memoryWaits.js"

/** D3 and D4 */
const accepts = (row: RunRow, commit: CommitRows): boolean =>
  isHeldUnder(row, commit.lease) && row.seq === commit.base && commit.seq > commit.base

/** What a database's keys would refuse. Found before anything is written, because it fails the whole batch. */
const brokenKey = (data: Data, batch: ReadonlyArray<CommitRows>): string | null => {
  const seen = new Set<StoredRun>()
  for (const commit of batch) {
    const run = find(data, commit.lease.namespace, commit.lease.runId)
    if (run === undefined) continue
    if (seen.has(run)) return `run '${run.row.runId}' stands in the batch twice`
    seen.add(run)
    if (!accepts(run.row, commit)) continue
    const paths = new Set<string>()
    for (const { path } of commit.steps) {
      if (run.steps.has(path) || paths.has(path)) return `step '${path}' of run '${run.row.runId}' is committed already`
      paths.add(path)
    }
  }
  return null
}

const writeEffects = (run: StoredRun, commit: CommitRows, now: number): void => {
  for (const write of commit.effects) {
    const generations = childOf(run.effects, write.path)
    const known = generations.get(write.generation)
    // D17
    if (known !== undefined && known.state !== "intended") continue
    generations.set(write.generation, {
      path: write.path,
      generation: write.generation,
      operation: write.operation,
      idempotencyKey: write.idempotencyKey,
      payload: write.payload,
      payloadHash: write.payloadHash,
      state: write.state,
      outcome: write.outcome,
      claimToken: write.claimToken,
      sends: write.sends,
      // The window of a key opens with the first intent; sending again must not widen it.
      intentAt: known?.intentAt ?? now,
      settledAt: write.state === "intended" ? null : now,
    })
  }
}

const writeStepsAndAttempts = (run: StoredRun, commit: CommitRows, now: number): void => {
  for (const step of commit.steps) run.steps.set(step.path, committedStep(step, now))
  for (const attempt of commit.attempts) {
    childOf(run.attempts, attempt.path).set(attempt.attempt, {
      path: attempt.path,
      attempt: attempt.attempt,
      kind: attempt.kind,
      error: attempt.error,
      output: attempt.output,
      retryAt: attempt.retryInMs === null ? null : now + Math.ceil(attempt.retryInMs),
      endedAt: now,
      seq: attempt.seq ?? commit.seq,
    })
  }
}

const commitOne = (data: Data, commit: CommitRows, now: number): CommitResult => {
  const run = find(data, commit.lease.namespace, commit.lease.runId)
  if (run === undefined) return { _tag: "Refused", run: null }
  if (!accepts(run.row, commit)) {
    const { seq, fence, claimToken, status, updatedAt } = run.row
    return { _tag: "Refused", run: { seq, fence, claimToken, status, updatedAt } }
  }
  const patch = commit.run
  run.row = {
    ...run.row,
    status: patch.status,
    seq: commit.seq,
    cursor: patch.cursor,
    output: patch.output,
    failure: patch.failure,
    parked: patch.parked,
    wakeAt: patch.wakeInMs === null ? null : now + Math.ceil(patch.wakeInMs),
    leaseOwner: patch.release ? null : run.row.leaseOwner,
    claimToken: patch.release ? null : run.row.claimToken,
    // D16
    recoveries: commit.steps.length > 0 ? 0 : run.row.recoveries,
    updatedAt: now,
    ...unseen(run.row, patch, now),
  }
  consume(run, commit.consumes)
  writeStepsAndAttempts(run, commit, now)
  writeEffects(run, commit, now)
  writeWaits(run, commit, now)
  wakeParent(data, commit, now)
  return { _tag: "Committed", at: now, status: run.row.status }
}

export const commit = (
  data: Data,
  batch: ReadonlyArray<CommitRows>,
  now: number,
): Effect.Effect<ReadonlyArray<CommitResult>, StoreError> => {
  const problem = brokenKey(data, batch)
  return problem === null
    ? Effect.succeed(batch.map((one) => commitOne(data, one, now)))
    : Effect.fail(new StoreError({ reason: "Constraint", operation: "commit", problem }))
}
