/**
 * The reference driver: every law in its plainest form, over Maps. Nothing survives the process.
 *
 * Each method reads the clock and then does its work in one synchronous function, so that no other fiber can come
 * between two of its parts (D2, D6). Rows are flat; they are copied on the way in and on the way out, so that no caller
 * holds what is stored.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { randomUUID } from "node:crypto"
import { StoreError } from "../model/Errors.js"
import type { EffectRecord, HeldLease } from "../model/Records.js"
import type { Capabilities } from "./Capabilities.js"
import type {
  AnswerRow,
  CheckpointDriver,
  ClaimRequest,
  CommitResult,
  CommitRows,
  LoadedRows,
  NewRunRow,
  OpenRows,
  OutcomeRow,
  ParkedPage,
  ParkedRow,
  RunRow,
} from "./CheckpointDriver.js"
import { find, type Data, type StoredRun } from "./internal/memoryData.js"
import { consume, loadSignals, requestCancel, send, unseen } from "./internal/memoryInbox.js"

const capabilities: Capabilities = {
  name: "memory",
  transactions: false,
  notify: false,
  multiProcess: false,
  rowSecurity: false,
}

const childOf = <K, L, V>(map: Map<K, Map<L, V>>, key: K): Map<L, V> => {
  const existing = map.get(key)
  if (existing !== undefined) return existing
  const created = new Map<L, V>()
  map.set(key, created)
  return created
}

function* allRuns(data: Data): Generator<StoredRun> {
  for (const runs of data.namespaces.values()) yield* runs.values()
}

// D8: a lease that ends now has ended.
const leaseEnded = (until: number | undefined, now: number): boolean => until === undefined || until <= now

const newRow = (run: NewRunRow, now: number): RunRow => ({
  namespace: run.namespace,
  runId: run.runId,
  workflow: run.workflow,
  version: run.version,
  planHash: run.planHash,
  status: "pending",
  seq: 0,
  input: run.input,
  inputHash: run.inputHash,
  output: null,
  failure: null,
  parked: null,
  cursor: null,
  leaseOwner: null,
  fence: 0,
  claimToken: null,
  previousUntil: 0,
  wakeAt: null,
  inbox: 0,
  recoveries: 0,
  cancelAt: null,
  cancelReason: null,
  createdAt: now,
  updatedAt: now,
})

const createRun = (data: Data, run: NewRunRow, now: number): { readonly created: boolean; readonly run: RunRow } => {
  const runs = childOf(data.namespaces, run.namespace)
  const existing = runs.get(run.runId)
  // D1: an existing row is not changed.
  if (existing !== undefined) return { created: false, run: { ...existing.row } }
  const row = newRow(run, now)
  runs.set(run.runId, { row, steps: new Map(), effects: new Map(), attempts: new Map(), signals: new Map() })
  return { created: true, run: { ...row } }
}

const load = (data: Data, namespace: string, runId: string): LoadedRows | null => {
  const run = find(data, namespace, runId)
  if (run === undefined) return null
  const steps = [...run.steps.values()].sort((a, b) => a.seq - b.seq).map((step) => ({ ...step }))
  return { run: { ...run.row }, steps }
}

/** The rows of the given paths, each in order of its number (D11). */
const rowsAt = <A extends object>(
  byPath: ReadonlyMap<string, ReadonlyMap<number, A>>,
  paths: ReadonlyArray<string>,
): ReadonlyArray<A> =>
  [...new Set(paths)].flatMap((path) =>
    [...(byPath.get(path) ?? [])].sort(([a], [b]) => a - b).map(([, row]) => ({ ...row })),
  )

const loadOpen = (data: Data, namespace: string, runId: string, paths: ReadonlyArray<string>): OpenRows => {
  const run = find(data, namespace, runId)
  return run === undefined
    ? { effects: [], attempts: [] }
    : { effects: rowsAt(run.effects, paths), attempts: rowsAt(run.attempts, paths) }
}

/** Since when a run could have been claimed, or null if it cannot be claimed now (D7). */
const dueSince = (data: Data, row: RunRow, now: number): number | null => {
  const until = row.leaseOwner === null ? undefined : data.workers.get(row.leaseOwner)
  // Whatever its status: a run that a live worker holds is that worker's.
  if (row.leaseOwner !== null && !leaseEnded(until, now)) return null
  switch (row.status) {
    case "pending":
      return row.updatedAt
    case "sleeping":
    case "waiting":
      return row.wakeAt !== null && row.wakeAt <= now ? row.wakeAt : null
    case "running":
      return until ?? row.updatedAt
    default:
      return null
  }
}

const takenOver = (data: Data, row: RunRow, request: ClaimRequest, now: number): RunRow => {
  // D15: an owner that is still written there never released the run.
  const unreleased = row.leaseOwner !== null
  return {
    ...row,
    status: "running",
    wakeAt: null,
    leaseOwner: request.workerId,
    fence: row.fence + 1,
    claimToken: request.claimToken,
    previousUntil: row.leaseOwner === null ? row.previousUntil : (data.workers.get(row.leaseOwner) ?? now),
    recoveries: unreleased ? row.recoveries + 1 : row.recoveries,
    updatedAt: now,
  }
}

const claim = (data: Data, request: ClaimRequest, now: number): ReadonlyArray<RunRow> => {
  // D8: who may have lost its own runs to others takes none from them.
  if (leaseEnded(data.workers.get(request.workerId), now)) return []
  const due: Array<{ readonly since: number; readonly run: StoredRun }> = []
  for (const run of data.namespaces.get(request.namespace)?.values() ?? []) {
    const { row } = run
    if (request.runIds !== null && !request.runIds.includes(row.runId)) continue
    if (!request.workflows.some(({ name, version }) => name === row.workflow && version === row.version)) continue
    const since = dueSince(data, row, now)
    if (since !== null) due.push({ since, run })
  }
  // The sort is stable: runs due since the same millisecond come in the order of their creation.
  due.sort((a, b) => a.since - b.since)
  return due.slice(0, Math.max(0, request.limit)).map(({ run }) => {
    run.row = takenOver(data, run.row, request, now)
    return { ...run.row }
  })
}

/** D3 and D4; a released run belongs to nobody, so that nobody can commit to it. */
const accepts = (row: RunRow, commit: CommitRows): boolean =>
  row.leaseOwner !== null &&
  row.fence === commit.lease.fence &&
  row.claimToken === commit.lease.claimToken &&
  row.seq === commit.base &&
  commit.seq > commit.base

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
  for (const step of commit.steps) {
    run.steps.set(step.path, {
      path: step.path,
      seq: step.seq,
      result: step.result,
      effect: step.effect,
      idempotencyKey: step.idempotencyKey,
      attempts: step.attempts,
      durationMs: step.durationMs,
      committedAt: now,
    })
  }
  for (const attempt of commit.attempts) {
    childOf(run.attempts, attempt.path).set(attempt.attempt, {
      path: attempt.path,
      attempt: attempt.attempt,
      kind: attempt.kind,
      error: attempt.error,
      output: attempt.output,
      retryAt: attempt.retryInMs === null ? null : now + Math.ceil(attempt.retryInMs),
      endedAt: now,
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
  return { _tag: "Committed", at: now, status: run.row.status }
}

const commit = (
  data: Data,
  batch: ReadonlyArray<CommitRows>,
  now: number,
): Effect.Effect<ReadonlyArray<CommitResult>, StoreError> => {
  const problem = brokenKey(data, batch)
  return problem === null
    ? Effect.succeed(batch.map((one) => commitOne(data, one, now)))
    : Effect.fail(new StoreError({ reason: "Constraint", operation: "commit", problem }))
}

const recordOutcome = (data: Data, outcome: OutcomeRow, now: number): boolean => {
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

const findEffect = (data: Data, key: Parameters<CheckpointDriver["findEffect"]>[0]): EffectRecord | null => {
  const effect = find(data, key.namespace, key.runId)?.effects.get(key.path)?.get(key.generation)
  return effect === undefined ? null : { ...effect }
}

const beat = (data: Data, workerId: string, leaseMs: number, now: number) => {
  const until = now + Math.ceil(leaseMs)
  data.workers.set(workerId, until)
  const leases: Array<HeldLease> = []
  for (const { row } of allRuns(data)) {
    if (row.leaseOwner !== workerId || row.claimToken === null) continue
    const { claimToken, fence, inbox, namespace, runId } = row
    leases.push({ namespace, runId, fence, claimToken, inbox })
  }
  return { until, now, leases }
}

const releaseWorker = (data: Data, workerId: string, now: number): void => {
  for (const run of allRuns(data)) {
    if (run.row.leaseOwner !== workerId) continue
    // A run that sleeps goes on sleeping: only what was running is due at once.
    const running = run.row.status === "running"
    run.row = {
      ...run.row,
      status: running ? "pending" : run.row.status,
      leaseOwner: null,
      claimToken: null,
      // D12: an operation that was cut off may still be under way.
      previousUntil: running ? now : run.row.previousUntil,
      updatedAt: now,
    }
  }
  data.workers.delete(workerId)
}

const unpark = (data: Data, namespace: string, runId: string, now: number): boolean => {
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

const answer = (data: Data, given: AnswerRow, now: number): boolean => {
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
    childOf(run.attempts, path).set(attempt.attempt, { path, ...attempt, retryAt: null, endedAt: now })
  }
  return unpark(data, given.namespace, given.runId, now)
}

const byRunId = (a: ParkedRow, b: ParkedRow): number => (a.runId < b.runId ? -1 : 1)

const listParked = (data: Data, { namespace, after, limit }: ParkedPage): ReadonlyArray<ParkedRow> =>
  [...(data.namespaces.get(namespace)?.values() ?? [])]
    .flatMap(({ row }): ReadonlyArray<ParkedRow> => {
      const { runId, workflow, version, seq, status, parked, updatedAt } = row
      const listed = status === "review" && parked !== null && (after === null || runId > after)
      return listed ? [{ namespace, runId, workflow, version, seq, parked, updatedAt }] : []
    })
    .sort(byRunId)
    .slice(0, Math.max(0, limit))

const atNow = <A>(act: (now: number) => A): Effect.Effect<A> => Effect.map(Clock.currentTimeMillis, act)

const driverOver = (data: Data): CheckpointDriver => ({
  capabilities,
  storeId: Effect.succeed(data.storeId),
  now: Clock.currentTimeMillis,
  createRuns: (runs) => atNow((now) => runs.map((run) => createRun(data, run, now))),
  createRun: (run) => atNow((now) => createRun(data, run, now)),
  findRun: (namespace, runId) =>
    Effect.sync(() => {
      const run = find(data, namespace, runId)
      return run === undefined ? null : { ...run.row }
    }),
  findRuns: (keys) =>
    Effect.sync(() =>
      keys.map(({ namespace, runId }) => {
        const run = find(data, namespace, runId)
        if (run === undefined) return null
        const { input: _, ...row } = run.row
        return row
      }),
    ),
  load: (namespace, runId) => Effect.sync(() => load(data, namespace, runId)),
  loadOpen: (namespace, runId, paths) => Effect.sync(() => loadOpen(data, namespace, runId, paths)),
  claim: (request) => atNow((now) => claim(data, request, now)),
  commit: (batch) => Effect.flatten(atNow((now) => commit(data, batch, now))),
  recordOutcome: (outcome) => atNow((now) => recordOutcome(data, outcome, now)),
  findEffect: (key) => Effect.sync(() => findEffect(data, key)),
  beat: (workerId, leaseMs) => atNow((now) => beat(data, workerId, leaseMs, now)),
  leaseHasEnded: (workerId) => atNow((now) => leaseEnded(data.workers.get(workerId), now)),
  releaseWorker: (workerId) => atNow((now) => releaseWorker(data, workerId, now)),
  unpark: (namespace, runId) => atNow((now) => unpark(data, namespace, runId, now)),
  answer: (given) => atNow((now) => answer(data, given, now)),
  listParked: (page) => Effect.sync(() => listParked(data, page)),
  send: (signal) => atNow((now) => send(data, signal, now)),
  loadSignals: (namespace, runId, names) => Effect.sync(() => loadSignals(data, namespace, runId, names)),
  requestCancel: (namespace, runId, reason) => atNow((now) => requestCancel(data, namespace, runId, reason, now)),
})

/**
 * The driver that keeps runs in the memory of one process: for tests, and for learning what a driver has to do.
 *
 * @category drivers
 * @since 0.1.0
 */
export const MemoryDriver = {
  /**
   * Makes an empty store of its own. Its clock is Effect's, so that `TestClock` moves leases and wake times.
   *
   * *Laws.* D1 to D26.
   */
  make: (): Effect.Effect<CheckpointDriver> =>
    Effect.sync(() => driverOver({ storeId: randomUUID(), namespaces: new Map(), workers: new Map() })),
}
