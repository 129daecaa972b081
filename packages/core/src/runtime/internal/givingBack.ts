/** How runs are given back that this worker holds and does not, or cannot, run any more. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import { StoreError } from "../../model/Errors.js"
import type { Lease, ParkRecord, RunRecord } from "../../model/Records.js"
import { runnable } from "../../store/LocalSignals.js"
import { RunDefect } from "./defects.js"
import { logParked, type LoopEnd } from "./leave.js"
import type { Core } from "./ownership.js"
import type { RunEnv } from "./session.js"

/** Releases a run as it stands: what it has recorded, the reason for which it fails included, stays. */
export const handBack = (
  core: Core,
  run: RunRecord,
  status: "pending" | "sleeping" | "review",
  wakeInMs: number | null,
  parked: ParkRecord | null = null,
): Effect.Effect<void, StoreError> =>
  core.store
    .commit([
      {
        lease: { namespace: run.namespace, runId: run.runId, fence: run.fence, claimToken: run.claimToken ?? "" },
        base: run.seq,
        seq: run.seq + 1,
        run: {
          status,
          cursor: run.cursor,
          wakeInMs,
          output: null,
          failure: run.failure,
          parked,
          release: true,
          seenInbox: run.inbox,
        },
        steps: [],
        effects: [],
        attempts: [],
        consumes: [],
        waits: [],
        closes: [],
        wakesParent: null,
      },
    ])
    // Refused: it is somebody else's by now.
    .pipe(Effect.asVoid)

/** The run as this lease holds it; null where it is gone, or somebody else's by now. */
const stillHeld = (core: Core, lease: Lease): Effect.Effect<RunRecord | null, StoreError> =>
  Effect.map(
    Effect.catchTag(core.store.findRun(lease.namespace, lease.runId), "RunNotFound", () => Effect.succeed(null)),
    (run) => (run?.fence === lease.fence && run.claimToken === lease.claimToken ? run : null),
  )

const remedy = "mend the code that it comes from, then let the run go on with Cairn.resume"

/**
 * A run that would come to the same end wherever it went on is left to a person: given back, it would do the same again and again, and
 * pay for it each time. What cannot be parked either is given back by a heartbeat.
 */
export const parkHopeless = (core: Core, queue: RunEnv["queue"], error: StoreError | RunDefect): Effect.Effect<void> =>
  Effect.gen(function* () {
    // What it got through before was paid for, and is kept.
    yield* Effect.exit(core.env.buffer.durable(queue, queue.acceptedSeq))
    const run = yield* stillHeld(core, queue.lease)
    if (run === null) return
    const parked: ParkRecord =
      error._tag === "RunDefect"
        ? { reason: "Defect", step: error.step, problem: `${error.message}; ${remedy}` }
        : { reason: "CommitRefused", step: run.cursor ?? "", problem: error.message }
    yield* handBack(core, run, "review", null, parked)
    yield* Effect.annotateLogs(logParked(parked), { runId: run.runId, workflow: run.workflow })
  }).pipe(Effect.catchAllCause((cause) => Effect.logWarning(`run '${queue.lease.runId}' could not be parked`, cause)))

/** Why it would come to the same end wherever it went on; null where it may go on. */
export const hopeless = (exit: Exit.Exit<LoopEnd, unknown>): StoreError | RunDefect | null => {
  if (Exit.isSuccess(exit)) return null
  const error = Option.getOrNull(Cause.failureOption(exit.cause))
  if (error instanceof RunDefect) return error
  return error instanceof StoreError && error.reason === "Constraint" ? error : null
}

/** Long enough that a run which the store cannot take in is not tried in a loop, in milliseconds. */
const giveBackMs = 5_000

/**
 * Gives back a run that this worker holds by the store's account and that nobody here runs: its fiber ended because the
 * store failed it, or the answer to the claim was lost. While the worker lives, no other could claim it.
 */
const giveBack = (core: Core, lease: Lease): Effect.Effect<void, StoreError> =>
  Effect.gen(function* () {
    const run = yield* stillHeld(core, lease)
    if (run === null) return
    yield* handBack(core, run, "sleeping", giveBackMs)
    yield* core.dueTimes.add(giveBackMs)
    yield* core.store.signals.send(runnable)
    yield* Effect.logWarning(`run '${lease.runId}' was given back: nothing here runs it`)
  })

/** Leases that the last heartbeat found and that belong to nothing here. */
export const giveBackOrphans = (core: Core, leases: ReadonlyArray<Lease>): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (core.draining) return Effect.void
    // What a claim that is under way has brought is not known here yet, however long heartbeat and claim take.
    const waiting = new Set(core.probation.map(({ runId }) => runId))
    return Effect.forEach(
      leases.filter(
        ({ claimToken, runId }) => !core.claiming.has(claimToken) && !core.owned.has(runId) && !waiting.has(runId),
      ),
      (lease) =>
        Effect.catchAllCause(giveBack(core, lease), (cause) =>
          Effect.logWarning(`run '${lease.runId}' could not be given back; the next heartbeat tries again`, cause),
        ),
      { discard: true },
    )
  })
