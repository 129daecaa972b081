/**
 * What workers that are gone have left on this host is brought to the store, before this worker claims anything (W8).
 *
 * - Under the old owner's token, also past its lease: if nobody else has claimed the run since, its accepted steps are
 *   kept; if somebody has, they are discarded, and counted.
 * - Then the old worker's lease is ended: whoever comes first goes on with its runs, and nobody waits the lease out. They are
 *   not released: a run that has brought its worker down has to count as recovered (X12).
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Metric from "effect/Metric"
import { renameSync, rmSync } from "node:fs"
import type { StoreError } from "../../model/Errors.js"
import type { CheckpointStoreService, Commit } from "../../store/CheckpointStore.js"
import { WriteBehindMetrics } from "../WorkerMetrics.js"
import { damagedSuffix, isOrphaned, otherIncarnations, type Left } from "./incarnation.js"
import { joined } from "./joining.js"
import { readLog } from "./localLog.js"

/** Runs that are brought to the store in one transaction. */
const batchRuns = 256

/** The commits of each claim of each run, in order. */
const byClaim = (commits: ReadonlyArray<Commit>): ReadonlyArray<ReadonlyArray<Commit>> => {
  const claims = new Map<string, Array<Commit>>()
  for (const commit of commits) {
    const { claimToken, namespace, runId } = commit.lease
    const key = JSON.stringify([namespace, runId, claimToken])
    const list = claims.get(key)
    if (list === undefined) claims.set(key, [commit])
    else list.push(commit)
  }
  return [...claims.values()].map((list) => list.toSorted((a, b) => a.seq - b.seq))
}

/** Of one claim's commits those that the store lacks, and how many of these it cannot take any more. */
interface Missing {
  readonly commits: ReadonlyArray<Commit>
  readonly discarded: number
}

const missing = (store: CheckpointStoreService, commits: ReadonlyArray<Commit>): Effect.Effect<Missing, StoreError> =>
  Effect.gen(function* () {
    const { claimToken, namespace, runId } = commits[0]!.lease
    const run = yield* store.findRun(namespace, runId)
    const rest = commits.filter(({ seq }) => seq > run.seq)
    const follows = rest.every(({ base }, index) => base === (index === 0 ? run.seq : rest[index - 1]!.seq))
    if (run.claimToken === claimToken && follows) return { commits: rest, discarded: 0 }
    // Somebody else has counted on since: what this worker did get in is told by what stands there.
    const scopes = [...new Set(commits.flatMap(({ steps }) => steps.map(({ scope }) => scope)))]
    const query = { namespace, runId, scopes, newestFirst: false, after: null, limit: null, withResults: true }
    const steps = yield* store.loadSteps(query)
    const stands = new Map(steps.map((step) => [step.path, step]))
    const lost = commits.filter(({ steps }) =>
      steps.some(({ path, result, seq }) => stands.get(path)?.seq !== seq || stands.get(path)?.result !== result),
    )
    return { commits: [], discarded: lost.length }
    // Purged since.
  }).pipe(Effect.catchTag("RunNotFound", () => Effect.succeed({ commits: [], discarded: commits.length })))

/** Writes what is missing. */
const bring = (store: CheckpointStoreService, commits: ReadonlyArray<Commit>) =>
  Effect.gen(function* () {
    const claims = yield* Effect.forEach(byClaim(commits), (claim) => missing(store, claim))
    // A run that changed hands on this host stands here more than once, and at most once with anything to bring.
    const left = claims.filter((claim) => claim.commits.length > 0).map((claim) => claim.commits)
    let brought = 0
    let discarded = claims.reduce((sum, claim) => sum + claim.discarded, 0)
    for (let from = 0; from < left.length; from += batchRuns) {
      const batch = left.slice(from, from + batchRuns)
      const results = yield* store.commit(batch.map(joined))
      results.forEach((result, index) => {
        if (Either.isRight(result)) brought += batch[index]!.length
        else discarded += batch[index]!.length
      })
    }
    return { brought, discarded }
  })

const forget = ({ directory }: Left, isDamaged: boolean): Effect.Effect<void> =>
  Effect.sync(() => {
    try {
      // What could not be read to its end is kept for people, and out of the way.
      if (isDamaged) renameSync(directory, `${directory}${damagedSuffix}`)
      else rmSync(directory, { recursive: true, force: true })
    } catch {
      // Another worker that starts was faster.
    }
  })

const recover = (store: CheckpointStoreService, left: Left) =>
  Effect.gen(function* () {
    const { incarnation } = left
    // Another worker that starts at the same time may have removed it.
    const { damaged, texts } = yield* Effect.orElseSucceed(
      Effect.try(() => readLog(left.directory)),
      () => ({ damaged: false, texts: [] }),
    )
    const commits = texts.map((text) => JSON.parse(text) as Commit)
    const { brought, discarded } = yield* bring(store, commits)
    yield* store.beat(incarnation.workerId, 0)
    yield* forget(left, damaged)
    yield* Metric.incrementBy(WriteBehindMetrics.replayed, brought)
    yield* Metric.incrementBy(WriteBehindMetrics.discarded, discarded)
    yield* Effect.logInfo(
      `worker '${incarnation.workerId}' is gone; of ${commits.length} commits in its log the store lacked ${brought}, which it has now; ${discarded} were discarded, for their runs have gone on; its lease was ended`,
    )
    if (damaged)
      yield* Effect.logWarning(`the log in '${left.directory}' is damaged; it was kept beside it as ${damagedSuffix}`)
  })

/**
 * Brings in what the workers of a directory have left that are gone. What belongs to another store is left alone.
 *
 * *Errors.* `StoreError`: nothing was claimed yet, and nothing is lost.
 */
export const replayOrphans = (
  store: CheckpointStoreService,
  parent: string,
  storeId: string,
): Effect.Effect<void, StoreError> =>
  Effect.forEach(
    otherIncarnations(parent),
    (left) =>
      Effect.gen(function* () {
        if (left.incarnation.storeId !== storeId) {
          return yield* Effect.logWarning(`'${left.directory}' belongs to another store; it is left alone`)
        }
        const orphaned = yield* isOrphaned(left, store.leaseHasEnded)
        if (orphaned) yield* recover(store, left)
      }),
    { discard: true },
  )
