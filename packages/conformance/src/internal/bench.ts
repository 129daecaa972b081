/** What every case stands on: an open store, names nobody else uses, rows to write, and ways to let time pass. */
import assert from "node:assert/strict"
import { randomUUID } from "node:crypto"
import type {
  CheckpointDriver,
  ClaimRequest,
  CommitResult,
  CommitRows,
  Lease,
  LoadedRows,
  NewRunRow,
  NewSignalRow,
  OpenRows,
  RunPatch,
  RunRow,
  WaitRecord,
} from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Harness, OpenStore } from "../Harness.js"
import { notingPaths } from "./notedPaths.js"
import { attempt, intent, patch, step, wait } from "./rows.js"

/** Longer than any case takes: the lease of a worker that stays alive. */
export const longLeaseMs = 600_000

/** Short enough to wait for, long enough to claim with. */
export const shortLeaseMs = 100

export const workflow = { name: "invoice", version: 1 } as const

/** An open store and the names of one case. */
export interface Bench {
  readonly store: OpenStore
  readonly driver: CheckpointDriver
  /** Every connection there is, for cases that send the same call from several sides. */
  readonly connections: ReadonlyArray<CheckpointDriver>
  /** Every path that the case has given to a commit, of whatever run. */
  readonly paths: ReadonlySet<string>
  readonly namespace: string
  readonly offersSecond: boolean
  readonly offersWakeUps: boolean
  /** Ends when the store's clock has reached this time. */
  readonly waitUntil: (at: number) => Effect.Effect<void, unknown>
  /** Lets exactly so much pass; only in cases that need `exactClock`. */
  readonly elapse: (ms: number) => Effect.Effect<void>
}

export const fresh = (what: string): string => `${what}-${randomUUID()}`

export const makeBench = (harness: Harness, store: OpenStore): Bench => {
  const paths = new Set<string>()
  const driver = notingPaths(store.driver, paths)
  const { elapse } = harness
  const poll = (at: number): Effect.Effect<void, unknown> =>
    Effect.flatMap(driver.now, (now) =>
      now >= at
        ? Effect.void
        : Effect.zipRight(
            Effect.sleep(Math.min(20, at - now)),
            Effect.suspend(() => poll(at)),
          ),
    )
  return {
    store,
    driver,
    connections: store.second === undefined ? [driver] : [driver, notingPaths(store.second, paths)],
    paths,
    namespace: fresh("conformance"),
    offersSecond: harness.features.includes("second"),
    offersWakeUps: harness.features.includes("wakeUps"),
    waitUntil:
      elapse === undefined
        ? poll
        : (at) => Effect.flatMap(driver.now, (now) => (now >= at ? Effect.void : elapse(at - now))),
    elapse: elapse ?? (() => Effect.die(new Error("this case needs `exactClock`"))),
  }
}

/** The nth connection, round robin. */
export const connection = (bench: Bench, n: number): CheckpointDriver =>
  bench.connections[n % bench.connections.length] ?? bench.driver

export const newRun = (bench: Bench, over: Partial<NewRunRow> = {}): NewRunRow => ({
  namespace: bench.namespace,
  runId: fresh("run"),
  workflow: workflow.name,
  version: workflow.version,
  planHash: "plan-hash",
  input: '{"cents":4200}',
  inputHash: "input-hash",
  parentRunId: null,
  parentPath: null,
  flowKey: null,
  priority: 0,
  wakeAt: null,
  ...over,
})

export const create = (bench: Bench, over: Partial<NewRunRow> = {}) =>
  Effect.map(bench.driver.createRun(newRun(bench, over)), ({ run }) => run)

/** A worker whose lease outlasts the case. */
export const liveWorker = (bench: Bench, worker = fresh("worker")) =>
  Effect.as(bench.driver.beat(worker, longLeaseMs), worker)

export const request = (bench: Bench, workerId: string, over: Partial<ClaimRequest> = {}): ClaimRequest => ({
  namespace: bench.namespace,
  workerId,
  claimToken: fresh("token"),
  workflows: [workflow],
  runIds: null,
  limit: 100,
  ...over,
})

export const claim = (bench: Bench, workerId: string, over: Partial<ClaimRequest> = {}) =>
  bench.driver.claim(request(bench, workerId, over))

export const leaseOf = (row: Pick<RunRow, "namespace" | "runId" | "fence" | "claimToken">): Lease => {
  assert.ok(row.claimToken !== null, `run '${row.runId}' was claimed and has no claim token`)
  return { namespace: row.namespace, runId: row.runId, fence: row.fence, claimToken: row.claimToken }
}

/** The only run of a claim that must give one. */
export const only = (rows: ReadonlyArray<RunRow>, what = "the claim"): RunRow => {
  assert.equal(rows.length, 1, `${what} should have given one run and gave ${rows.length}`)
  return rows[0]!
}

/** A new run, claimed by a worker that stays alive. */
export const claimed = (bench: Bench, over: Partial<NewRunRow> = {}) =>
  Effect.gen(function* () {
    const run = yield* create(bench, over)
    const worker = yield* liveWorker(bench)
    const rows = yield* claim(bench, worker, {
      namespace: run.namespace,
      runIds: [run.runId],
      workflows: [{ name: run.workflow, version: run.version }],
    })
    const row = only(rows)
    return { worker, row, lease: leaseOf(row) }
  })

/**
 * Runs claimed by a worker on a short lease. A slow machine may let the lease end before the claim, so it is tried again
 * with longer ones.
 */
export const claimedBriefly = (bench: Bench, runIds: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    for (let leaseMs = shortLeaseMs; leaseMs < longLeaseMs; leaseMs *= 2) {
      const worker = fresh("brief-worker")
      const { until } = yield* bench.driver.beat(worker, leaseMs)
      const rows = yield* claim(bench, worker, { runIds })
      if (rows.length > 0) return { worker, until, rows, leases: rows.map(leaseOf) }
    }
    return assert.fail(`no worker could claim ${runIds.join(", ")} on a short lease`)
  })

/** A new run whose owner's lease has ended without a release, some time ago: its end is not now. */
export const abandoned = (bench: Bench, over: Partial<NewRunRow> = {}) =>
  Effect.gen(function* () {
    const run = yield* create(bench, over)
    const owner = yield* claimedBriefly(bench, [run.runId])
    yield* bench.waitUntil(owner.until + 5)
    const row = only(owner.rows)
    return { worker: owner.worker, until: owner.until, row, lease: leaseOf(row) }
  })

/** A signal to a run of the case, under an id that nobody has used. */
export const signal = (bench: Bench, over: Partial<NewSignalRow> & Pick<NewSignalRow, "runId">): NewSignalRow => ({
  namespace: bench.namespace,
  signalId: fresh("signal"),
  name: "approved",
  payload: '{"by":"ada"}',
  payloadHash: "signal-hash",
  ...over,
})

/** A commit that adds one step, unless told otherwise. */
export const commitOf = (
  lease: Lease,
  base: number,
  over: Partial<Omit<CommitRows, "run">> & { readonly run?: Partial<RunPatch> } = {},
): CommitRows => ({
  lease,
  base,
  seq: base + 1,
  steps: [step(`step-${base + 1}`, base + 1)],
  effects: [],
  attempts: [],
  consumes: [],
  waits: [],
  closes: [],
  wakesParent: null,
  ...over,
  run: patch(over.run),
})

/** The results of one commit, which has to be accepted or refused: an error is neither. */
const judged = (bench: Bench, commit: CommitRows) =>
  Effect.catchAll(bench.driver.commit([commit]), (error) =>
    Effect.sync(() => assert.fail(`a commit on seq ${commit.base} failed instead of being judged: ${error.message}`)),
  )

/** A commit that must be accepted; gives the store's clock. */
export const committed = (bench: Bench, commit: CommitRows) =>
  Effect.map(judged(bench, commit), ([result]) => {
    assert.equal(result?._tag, "Committed", `a commit on seq ${commit.base} by the owner was refused`)
    return (result as Extract<CommitResult, { readonly _tag: "Committed" }>).at
  })

/** A commit of the run row alone: what parks, puts to sleep, ends or releases a run. */
export const moved = (bench: Bench, lease: Lease, base: number, run: Partial<RunPatch>) =>
  committed(bench, commitOf(lease, base, { steps: [], run: { release: true, ...run } }))

const plain = <A extends object>(rows: ReadonlyArray<A>): ReadonlyArray<A> => rows.map((row) => ({ ...row }))

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

export type Everything = LoadedRows & OpenRows & { readonly waits: ReadonlyArray<WaitRecord> }

/** Plain rows by path, because the order between paths is nobody's promise; that within a path is (D11), and is kept. */
const byPath = <A extends { readonly path: string }>(rows: ReadonlyArray<A>): ReadonlyArray<A> =>
  [...plain(rows)].sort((a, b) => byText(a.path, b.path))

/** What a run has at these paths, as plain rows. */
export const openOf = (
  bench: Bench,
  run: Pick<RunRow, "namespace" | "runId">,
  paths: Iterable<string> = bench.paths,
  driver = bench.driver,
) =>
  Effect.map(driver.loadOpen(run.namespace, run.runId, [...paths]), ({ effects, attempts }): OpenRows => ({
    effects: byPath(effects),
    attempts: byPath(attempts),
  }))

/** What a run waits for, as plain rows. */
export const waitsOf = (bench: Bench, run: Pick<RunRow, "namespace" | "runId">, driver = bench.driver) =>
  Effect.map(driver.loadWaits(run.namespace, run.runId), (loaded) => {
    assert.ok(loaded !== null, `what run '${run.runId}' waits for could not be loaded`)
    return { inbox: loaded.inbox, waits: plain(loaded.waits) }
  })

/** Everything of a run as plain rows, at every path that the case has written, be it for this run or for another. */
export const everything = (bench: Bench, run: Pick<RunRow, "namespace" | "runId">, driver = bench.driver) =>
  Effect.gen(function* () {
    const loaded = yield* driver.load(run.namespace, run.runId)
    assert.ok(loaded !== null, `run '${run.runId}' could not be found`)
    const rows: Everything = {
      run: { ...loaded.run },
      steps: plain(loaded.steps),
      ...(yield* openOf(bench, run, bench.paths, driver)),
      waits: (yield* waitsOf(bench, run, driver)).waits,
    }
    return rows
  })

export const rowOf = (bench: Bench, run: Pick<RunRow, "namespace" | "runId">, driver = bench.driver) =>
  Effect.map(driver.findRun(run.namespace, run.runId), (row): RunRow => {
    assert.ok(row !== null, `run '${run.runId}' could not be found`)
    return { ...row }
  })

export const effectOf = (
  bench: Bench,
  run: Pick<RunRow, "namespace" | "runId">,
  path: string,
  generation = 0,
  driver = bench.driver,
) =>
  Effect.map(driver.findEffect({ namespace: run.namespace, runId: run.runId, path, generation }), (effect) => {
    assert.ok(effect !== null, `the intent at '${path}', generation ${generation}, could not be found`)
    return { ...effect }
  })

/** The commit must be refused, say what stands against it, and leave the run as it was. */
export const assertRefused = (bench: Bench, commit: CommitRows, why: string) =>
  Effect.gen(function* () {
    const before = yield* everything(bench, commit.lease)
    const results = yield* judged(bench, commit)
    assert.equal(results.length, 1)
    const result = results[0]!
    assert.equal(result._tag, "Refused", `a commit with ${why} was accepted`)
    const { seq, fence, claimToken, status, updatedAt } = before.run
    assert.deepEqual(result._tag === "Refused" && result.run, { seq, fence, claimToken, status, updatedAt })
    assert.deepEqual(yield* everything(bench, commit.lease), before, `a refused commit with ${why} changed the run`)
  })

/** Effects of a commit that would be seen if it were written: a step, an intent over an old one, an attempt, a wait, a new row. */
export const loud = (lease: Lease, base: number, over: Partial<CommitRows> = {}): CommitRows => ({
  ...commitOf(lease, base, {
    steps: [step("loud", base + 1)],
    effects: [intent(lease, "kept", { sends: 9, payload: '"loud"' }), intent(lease, "loud-intent")],
    attempts: [attempt("loud-attempt")],
    waits: [wait("loud-wait")],
    closes: ["kept-wait"],
    run: { status: "failed", cursor: "loud", output: '"loud"', failure: '"loud"', parked: '"loud"', release: true },
  }),
  ...over,
})

/** A claimed run with one step, one open intent (path `kept`), one attempt and one wait, at seq 1. */
export const underWay = (bench: Bench, over: Partial<NewRunRow> = {}) =>
  Effect.gen(function* () {
    const owner = yield* claimed(bench, over)
    yield* committed(
      bench,
      commitOf(owner.lease, 0, {
        steps: [step("first", 1)],
        effects: [intent(owner.lease, "kept")],
        attempts: [attempt("kept", { retryInMs: 1_000 })],
        waits: [wait("kept-wait")],
        run: { cursor: "kept" },
      }),
    )
    return owner
  })
