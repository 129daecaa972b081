/** Rows that a test does not want to spell out. */
import type { CheckpointDriver, ClaimRequest, CommitRows, Lease, NewRunRow, RunRow } from "@cairn/core"
import { Effect } from "effect"

export const newRun = (runId: string): NewRunRow => ({
  namespace: "test",
  runId,
  workflow: "invoice",
  version: 1,
  planHash: "plan",
  input: '{"text":"…"}',
  inputHash: "input",
  parentRunId: null,
  parentPath: null,
  flowKey: null,
  priority: 0,
  wakeAt: null,
})

export const claimOf = (workerId: string, over: Partial<ClaimRequest> = {}): ClaimRequest => ({
  namespace: "test",
  workerId,
  claimToken: `token of ${workerId}`,
  workflows: [{ name: "invoice", version: 1 }],
  runIds: null,
  limit: 100,
  ...over,
})

export const leaseOf = ({ claimToken, fence, namespace, runId }: RunRow): Lease => ({
  namespace,
  runId,
  fence,
  claimToken: claimToken ?? "",
})

/** A commit of one step, the next after `base`. */
export const stepCommit = (lease: Lease, base: number, run: Partial<CommitRows["run"]> = {}): CommitRows => ({
  lease,
  base,
  seq: base + 1,
  run: {
    status: "running",
    cursor: `step ${base + 1}`,
    wakeInMs: null,
    output: null,
    failure: null,
    parked: null,
    release: false,
    seenInbox: null,
    ...run,
  },
  steps: [
    {
      path: `step-${base + 1}`,
      scope: "",
      seq: base + 1,
      result: `{"turn":${base + 1}}`,
      effect: "none",
      idempotencyKey: null,
      attempts: 1,
      durationMs: 1,
    },
  ],
  effects: [],
  attempts: [],
  consumes: [],
  waits: [],
  closes: [],
  wakesParent: null,
})

/** New runs that a worker owns. */
export const ownedRuns = (driver: CheckpointDriver, workerId: string, runIds: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    for (const runId of runIds) yield* driver.createRun(newRun(runId))
    yield* driver.beat(workerId, 600_000)
    const runs = yield* driver.claim(claimOf(workerId, { runIds, limit: runIds.length }))
    return runs.map(leaseOf)
  })
