/** A run to create, a lease on it, and a commit that adds its first step. */
import type { CheckpointDriver, CheckpointStoreService, Commit, Lease, NewRunRow } from "@cairn/core"
import { Effect } from "effect"

export const newRun: NewRunRow = {
  namespace: "shop",
  runId: "order-1",
  workflow: "invoice",
  version: 1,
  planHash: "plan",
  input: '{"cents":1}',
  inputHash: "input",
  parentRunId: null,
  parentPath: null,
  flowKey: null,
  priority: 0,
  wakeAt: null,
}

/** Creates the run and claims it. */
export const claimed = (store: CheckpointStoreService | CheckpointDriver) =>
  Effect.gen(function* () {
    yield* store.createRun(newRun)
    yield* store.beat("worker-1", 60_000)
    const [run] = yield* store.claim({
      namespace: newRun.namespace,
      workerId: "worker-1",
      claimToken: "token-1",
      workflows: [{ name: newRun.workflow, version: newRun.version }],
      runIds: null,
      limit: 1,
    })
    const lease: Lease = { ...newRun, fence: run!.fence, claimToken: "token-1" }
    return lease
  })

export const firstStep = (lease: Lease): Commit => ({
  lease,
  base: 0,
  seq: 1,
  run: {
    status: "running",
    cursor: "charge",
    wakeInMs: null,
    output: null,
    failure: null,
    parked: null,
    release: false,
    seenInbox: null,
  },
  steps: [
    {
      path: "extract",
      scope: "",
      seq: 1,
      result: "1",
      effect: "none",
      idempotencyKey: null,
      attempts: 1,
      durationMs: 3,
    },
  ],
  effects: [],
  attempts: [
    {
      path: "charge",
      attempt: 1,
      kind: "failed",
      error: { name: "Error", message: "no \u0000\ud800", tag: null, stack: null, cause: null },
      output: null,
      retryInMs: null,
    },
  ],
  consumes: [],
  waits: [],
  closes: [],
  wakesParent: null,
})
