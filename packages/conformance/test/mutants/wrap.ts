/** Ways to plant one fault into a driver without opening it: what it is given, or what it gives, is changed. */
import type { CheckpointDriver, ClaimRequest, CommitRows, LoadedRows, OpenRows, RunRow, StoreError } from "@cairn/core"
import { Clock, Effect } from "effect"
import type { Mutation } from "../harnesses.js"

export interface Mutant {
  readonly fault: string
  /** The beginning of the title of the case that must fail. */
  readonly caughtBy: string
  readonly mutate: Mutation
}

export const mutant = (
  fault: string,
  caughtBy: string,
  change: (driver: CheckpointDriver) => Partial<CheckpointDriver>,
): Mutant => ({ fault, caughtBy, mutate: (driver) => ({ ...driver, ...change(driver) }) })

/** Changes every run row on its way out. */
export const viewRun = (driver: CheckpointDriver, view: (row: RunRow) => RunRow): Partial<CheckpointDriver> => ({
  createRun: (run) => Effect.map(driver.createRun(run), (result) => ({ ...result, run: view(result.run) })),
  findRun: (namespace, runId) =>
    Effect.map(driver.findRun(namespace, runId), (row) => (row === null ? null : view(row))),
  load: (namespace, runId) =>
    Effect.map(driver.load(namespace, runId), (rows) => (rows === null ? null : { ...rows, run: view(rows.run) })),
  claim: (request) => Effect.map(driver.claim(request), (rows) => rows.map(view)),
})

/** Changes what a load gives. */
export const viewLoad = (
  driver: CheckpointDriver,
  view: (rows: LoadedRows) => LoadedRows,
): Partial<CheckpointDriver> => ({
  load: (namespace, runId) => Effect.map(driver.load(namespace, runId), (rows) => (rows === null ? null : view(rows))),
})

/** Changes what is read of open paths, knowing of which run. */
export const viewOpen = (
  driver: CheckpointDriver,
  view: (rows: OpenRows, run: Pick<RunRow, "namespace" | "runId">) => OpenRows,
): Partial<CheckpointDriver> => ({
  loadOpen: (namespace, runId, paths) =>
    Effect.map(driver.loadOpen(namespace, runId, paths), (rows) => view(rows, { namespace, runId })),
})

/** Changes each commit on its way in, knowing the row that it meets. */
export const editCommit = (
  driver: CheckpointDriver,
  edit: (commit: CommitRows, row: RunRow) => CommitRows,
): Partial<CheckpointDriver> => ({
  commit: (batch) =>
    Effect.flatMap(
      Effect.forEach(batch, (commit) =>
        Effect.map(driver.findRun(commit.lease.namespace, commit.lease.runId), (row) =>
          row === null ? commit : edit(commit, row),
        ),
      ),
      driver.commit,
    ),
})

/** Runs a call with the clock moved. */
export const shifted = <A>(call: Effect.Effect<A, StoreError>, byMs: number): Effect.Effect<A, StoreError> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    Effect.flatMap(Effect.clock, (clock) =>
      Effect.withClock(call, {
        [Clock.ClockTypeId]: Clock.ClockTypeId,
        sleep: clock.sleep,
        currentTimeMillis: Effect.succeed(now + byMs),
        currentTimeNanos: clock.currentTimeNanos,
        unsafeCurrentTimeMillis: () => now + byMs,
        unsafeCurrentTimeNanos: () => clock.unsafeCurrentTimeNanos(),
      }),
    ),
  )

/** Changes what a claim gives. */
export const editRows = (
  driver: CheckpointDriver,
  edit: (rows: ReadonlyArray<RunRow>, request: ClaimRequest) => ReadonlyArray<RunRow>,
): Partial<CheckpointDriver> => ({
  claim: (request) => Effect.map(driver.claim(request), (rows) => edit(rows, request)),
})

/** Knows every worker that ever beat, and until when its lease lasted. */
export const withWorkers = (
  driver: CheckpointDriver,
  use: (untils: Map<string, number>) => Partial<CheckpointDriver>,
): Partial<CheckpointDriver> => {
  const untils = new Map<string, number>()
  return {
    beat: (workerId, leaseMs) =>
      Effect.tap(driver.beat(workerId, leaseMs), ({ until }) => Effect.sync(() => untils.set(workerId, until))),
    ...use(untils),
  }
}

export interface Names {
  readonly namespace: (text: string) => string
  readonly runId: (text: string) => string
  readonly path: (text: string) => string
  readonly worker: (text: string) => string
}

const same = (text: string): string => text

/** A driver that looks names up in a changed spelling, but keeps the spelling it is given where it stores one. */
export const rename = (driver: CheckpointDriver, over: Partial<Names>): CheckpointDriver => {
  const name: Names = { namespace: same, runId: same, path: same, worker: same, ...over }
  const place = <A extends { readonly namespace: string; readonly runId: string }>(of: A): A => ({
    ...of,
    namespace: name.namespace(of.namespace),
    runId: name.runId(of.runId),
  })
  const atPath = <A extends { readonly path: string }>(row: A): A => ({ ...row, path: name.path(row.path) })
  return {
    ...driver,
    createRun: (run) => driver.createRun(place(run)),
    findRun: (namespace, runId) => driver.findRun(name.namespace(namespace), name.runId(runId)),
    load: (namespace, runId) => driver.load(name.namespace(namespace), name.runId(runId)),
    loadOpen: (namespace, runId, paths) =>
      driver.loadOpen(name.namespace(namespace), name.runId(runId), paths.map(name.path)),
    claim: (request) =>
      driver.claim({
        ...request,
        namespace: name.namespace(request.namespace),
        workerId: name.worker(request.workerId),
        runIds: request.runIds?.map(name.runId) ?? null,
      }),
    commit: (batch) =>
      driver.commit(
        batch.map((commit) => ({
          ...commit,
          lease: place(commit.lease),
          steps: commit.steps.map(atPath),
          effects: commit.effects.map(atPath),
          attempts: commit.attempts.map(atPath),
          waits: commit.waits.map(atPath),
          closes: commit.closes.map(name.path),
        })),
      ),
    loadSteps: (query) => driver.loadSteps(place(query)),
    loadHistory: (query) => driver.loadHistory(place(query)),
    loadWaits: (namespace, runId) => driver.loadWaits(name.namespace(namespace), name.runId(runId)),
    decideWait: (decision) => driver.decideWait(atPath(place(decision))),
    expireWait: (lease, path) => driver.expireWait(place(lease), name.path(path)),
    recordOutcome: (outcome) => driver.recordOutcome(atPath(place(outcome))),
    findEffect: (key) => driver.findEffect(atPath(place(key))),
    beat: (workerId, leaseMs) => driver.beat(name.worker(workerId), leaseMs),
    releaseWorker: (workerId) => driver.releaseWorker(name.worker(workerId)),
    unpark: (namespace, runId) => driver.unpark(name.namespace(namespace), name.runId(runId)),
    answer: (given) => driver.answer(atPath(place(given))),
    send: (signal) => driver.send(place(signal)),
    loadSignals: (namespace, runId, names) => driver.loadSignals(name.namespace(namespace), name.runId(runId), names),
    requestCancel: (namespace, runId, reason) =>
      driver.requestCancel(name.namespace(namespace), name.runId(runId), reason),
    setPaused: (namespace, runId, paused) => driver.setPaused(name.namespace(namespace), name.runId(runId), paused),
    reopenRun: (reopen) => driver.reopenRun(atPath(place(reopen))),
    forkRun: (fork) => driver.forkRun({ ...fork, run: place(fork.run), from: name.runId(fork.from) }),
    loadPerformed: (namespace, runId) => driver.loadPerformed(name.namespace(namespace), name.runId(runId)),
  }
}

/** What a fault has to remember of earlier calls. */
export const keyOf = (of: { readonly namespace: string; readonly runId: string }): string =>
  JSON.stringify([of.namespace, of.runId])
