/**
 * How a worker takes runs: as many as it has places for, whoever is due longest first, and fair between workflows.
 *
 * - X12: while a run on probation is tried, nothing is claimed.
 * - D8: who holds nothing leaves its heartbeats out, and beats before it claims. From then on its heart goes as if none had
 *   been left out: what is claimed is under a lease that was prolonged less than a third of it ago.
 * - Where more runs are due than fit, a workflow with a long queue does not keep the others waiting: each gets its share,
 *   and another one begins each time.
 */
import * as Effect from "effect/Effect"
import { randomUUID } from "node:crypto"
import type { StoreError } from "../../model/Errors.js"
import type { RunRecord } from "../../model/Records.js"
import type { ClaimRequest } from "../../store/CheckpointDriver.js"
import { limitsOf } from "./flowOf.js"
import { minding, take, type Core } from "./ownership.js"
import type { Runnable } from "./settings.js"

/** Most runs that one claim takes: what is due is shared among workers, runs on probation above all. */
const maxClaim = 64

type Wanted = ClaimRequest["workflows"][number]

const wantedOf = ({ plan, workflow }: Runnable): Wanted => {
  const limits = limitsOf(workflow.definition)
  return { name: plan.workflow, version: plan.version, ...(limits === undefined ? {} : { limits }) }
}

/** D36: what a rate holds back may begin once what begins now counts no more. Whoever begins it looks then. */
const awaitRates = (core: Core, runs: ReadonlyArray<RunRecord>): Effect.Effect<void> =>
  Effect.suspend(() => {
    const delays = new Set<number>()
    for (const { fence, version, workflow } of runs) {
      const runnable = core.runnables.get(JSON.stringify([workflow, version]))
      const rate = runnable === undefined ? null : limitsOf(runnable.workflow.definition)?.rate
      if (fence === 1 && rate) delays.add(rate.perMs)
    }
    return Effect.forEach(delays, core.dueTimes.add, { discard: true })
  })

const claimOf = (core: Core, workflows: ReadonlyArray<Wanted>, limit: number) =>
  Effect.suspend(() => {
    const claimToken = randomUUID()
    core.claiming.add(claimToken)
    return core.store.claim({
      namespace: core.settings.namespace,
      workerId: core.lease.workerId,
      claimToken,
      workflows,
      runIds: null,
      limit,
    })
  })

/** Each workflow's share, one after the other. */
const claimInTurn = (core: Core, workflows: ReadonlyArray<Wanted>, limit: number) =>
  Effect.gen(function* () {
    const share = Math.ceil(limit / workflows.length)
    const first = core.turn++
    const runs: Array<RunRecord> = []
    for (let index = 0; index < workflows.length && runs.length < limit; index++) {
      const workflow = workflows[(first + index) % workflows.length]!
      runs.push(...(yield* claimOf(core, [workflow], Math.min(share, limit - runs.length))))
    }
    return runs
  })

const claimFairly = (core: Core, limit: number): Effect.Effect<ReadonlyArray<RunRecord>, StoreError> =>
  Effect.gen(function* () {
    const workflows = [...core.runnables.values()].map(wantedOf)
    const inTurn = core.backlog && workflows.length > 1
    const runs = yield* inTurn ? claimInTurn(core, workflows, limit) : claimOf(core, workflows, limit)
    // All places were filled: more may be waiting, and the next claim looks at each queue. An idle worker asks once.
    core.backlog = runs.length === limit
    yield* awaitRates(core, runs)
    return runs
  })

/** One claim. Returns how many runs it brought. */
export const claimOnce = (core: Core): Effect.Effect<number, StoreError> =>
  Effect.gen(function* () {
    if (core.draining || (yield* minding(core))) return 0
    const limit = Math.min(core.settings.concurrency - core.owned.size, core.careful ? 1 : maxClaim)
    if (limit <= 0) return 0
    // Only at rest: otherwise the heart beats, and stops what was lost. Nothing is claimed yet: it may be interrupted, and
    // has to be, for a store that never answers is given up.
    if (core.rested || (!core.mayHold && core.lease.remainingMs() <= 0)) {
      yield* Effect.interruptible(core.lease.beat)
    }
    // A worker without a living lease would be refused anyway.
    if (core.lease.remainingMs() <= 0) return 0
    core.claimedAt = null
    return yield* claimFairly(core, limit).pipe(
      // The answer is lost, not what was claimed.
      Effect.tapErrorCause(() => Effect.sync(() => (core.mayHold = true))),
      Effect.flatMap((runs) => {
        if (runs.length > 0) core.mayHold = true
        // W7: what a claim brings to a worker that stops is released with the rest.
        return core.draining ? Effect.succeed(0) : Effect.as(take(core, runs), runs.length)
      }),
      // Not before all of it is known here: a heartbeat gives back what it takes for orphaned.
      Effect.ensuring(Effect.sync(() => (core.claimedAt = performance.now()))),
    )
  }).pipe(Effect.ensuring(Effect.sync(() => core.claiming.clear())), Effect.uninterruptible)
