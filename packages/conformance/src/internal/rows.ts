/** Rows to write, with every column that a case does not care for. */
import type { CommitRows, EffectWrite, Lease, RunPatch, RunRow, StepsQuery, WaitRecord, WaitWrite } from "@cairn/core"

export const patch = (over: Partial<RunPatch> = {}): RunPatch => ({
  status: "running",
  cursor: null,
  wakeInMs: null,
  output: null,
  failure: null,
  parked: null,
  release: false,
  seenInbox: null,
  ...over,
})

export type StepWrite = CommitRows["steps"][number]

export type AttemptWrite = CommitRows["attempts"][number]

export const step = (path: string, seq: number, over: Partial<StepWrite> = {}): StepWrite => ({
  path,
  scope: "",
  seq,
  result: JSON.stringify({ path }),
  effect: "none",
  idempotencyKey: null,
  attempts: 1,
  durationMs: 5,
  ...over,
})

export const intent = (lease: Lease, path: string, over: Partial<EffectWrite> = {}): EffectWrite => ({
  path,
  generation: 0,
  operation: "payments.charge",
  idempotencyKey: `key-of-${path}`,
  payload: '{"cents":4200}',
  payloadHash: "payload-hash",
  state: "intended",
  outcome: null,
  claimToken: lease.claimToken,
  sends: 1,
  ...over,
})

export const attempt = (path: string, over: Partial<AttemptWrite> = {}): AttemptWrite => ({
  path,
  attempt: 1,
  kind: "failed",
  error: '{"name":"Error","message":"refused","tag":null,"stack":null,"cause":null}',
  output: null,
  retryInMs: null,
  ...over,
})

/** A wait for a person's word that nothing ends by itself, unless told otherwise. */
export const wait = (path: string, over: Partial<WaitWrite> = {}): WaitWrite => ({
  path,
  kind: "review",
  name: `name of ${path}`,
  data: JSON.stringify({ path }),
  wake: null,
  ...over,
})

/** How a wait stands that a commit has opened. */
export const standing = (
  { data, kind, name, path }: WaitWrite,
  over: Partial<WaitRecord> & Pick<WaitRecord, "openedAt">,
): WaitRecord => ({ path, kind, name, wakeAt: null, state: "open", data, decision: null, decidedAt: null, ...over })

/** All steps of these scopes of a run, with their results, unless told otherwise. */
export const stepsQuery = (
  { namespace, runId }: Pick<RunRow, "namespace" | "runId">,
  scopes: StepsQuery["scopes"],
  over: Partial<StepsQuery> = {},
): StepsQuery => ({
  namespace,
  runId,
  scopes,
  newestFirst: false,
  after: null,
  limit: null,
  withResults: true,
  ...over,
})
