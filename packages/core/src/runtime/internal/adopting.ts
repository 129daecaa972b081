/**
 * A run comes to code of another plan than that under which it was last worked on: by a deploy, or back by another one.
 *
 * - X10: before anything else of it, all that it has and has begun is laid against the new plan. Where that does not fit, it is parked,
 *   and nothing was done.
 * - X7: it is read once, in pages. That it fits is recorded, beside its steps: what comes under the same plan asks nothing.
 * - W1: nothing that is done under the new plan is in the store without that record.
 */
import * as Effect from "effect/Effect"
import type { ParkRecord } from "../../model/Records.js"
import { childrenOf } from "./childrenOf.js"
import { wholeSeqs } from "./history.js"
import { leave, logParked, type Failure, type LoopEnd } from "./leave.js"
import { isBeside } from "./paths.js"
import { planRecord } from "./planRecords.js"
import type { RunSession } from "./session.js"
import { asEffect } from "./soon.js"
import { begun, committed, Standing, type Misfit } from "./standing.js"

/** Rows of each kind in a page. */
const pageRows = 100

/** The run is parked: this code cannot go on with what is there. */
export const parkIncompatible = (session: RunSession, { problem, step }: Misfit): Effect.Effect<LoopEnd, Failure> => {
  const parked: ParkRecord = { reason: "IncompatibleCheckpoint", step, problem }
  return session
    .commit({ run: leave("review", step, { parked }) })
    .pipe(Effect.zipRight(logParked(parked)), Effect.as({ _tag: "Parked" } as const))
}

/** What its commits have left, waits included. */
const history = (session: RunSession, standing: Standing) =>
  Effect.gen(function* () {
    const { env, lease, seq: last } = session
    const waits: Array<{ readonly path: string; readonly kind: string }> = []
    for (let after = 0; after < last && standing.misfit === null;) {
      const page = yield* session.persist(wholeSeqs(env.store, lease, after, last, pageRows))
      const isWhole = ({ seq }: { readonly seq: number }) => seq <= page.through
      for (const step of page.rows.steps) if (isWhole(step) && !isBeside(step)) standing.add(committed(step))
      waits.push(...page.rows.waits.filter(isWhole))
      after = page.through
    }
    for (const { kind, path } of waits) if (!standing.has(path)) standing.add(begun(path, kind))
  })

/** What it has begun outside, and what is not committed of that. */
const outside = (session: RunSession, standing: Standing) =>
  Effect.gen(function* () {
    const { store } = session.env
    const { namespace, runId } = session.lease
    for (const { isKnown, kind, path, seq } of yield* store.loadPerformed(namespace, runId)) {
      if (kind !== "operation" || seq !== null) continue
      // A fork finds results that it goes on with at paths that it has not come to.
      if (isKnown && session.run.forkedFrom !== null) standing.keep(begun(path, null))
      else standing.add(begun(path, null))
    }
    for (const { parentPath } of yield* childrenOf(store, session.lease, null)) {
      if (parentPath !== null && !standing.has(parentPath)) standing.add(begun(parentPath, "child"))
    }
  })

/** Why this code cannot go on with the run; null if it can. */
const misfit = (session: RunSession): Effect.Effect<Misfit | null, Failure> =>
  Effect.gen(function* () {
    const standing = new Standing(session.env.plan)
    yield* history(session, standing)
    if (standing.misfit === null) yield* session.persist(outside(session, standing))
    return standing.check()
  }).pipe(Effect.catchTag("RunNotFound", () => Effect.fail(session.leaseLost())))

/** Takes over a run that was last worked on under another plan. Null: it goes on. */
export const adopt = (session: RunSession): Effect.Effect<LoopEnd | null, Failure> =>
  Effect.gen(function* () {
    const { plan } = session.env
    // Nothing was done yet.
    const found = session.seq === 0 ? null : yield* misfit(session)
    if (found !== null) return yield* parkIncompatible(session, found)
    const run = { ...session.running(""), cursor: session.run.cursor }
    yield* asEffect(session.accept({ run, steps: [planRecord(session.seq + 1, plan.hash)] }))
    return null
  })
