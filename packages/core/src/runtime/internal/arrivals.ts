/**
 * What reaches a run from outside while this worker executes it: the wish to cancel it.
 *
 * - X5: a cancel cuts off the step that runs, which is no outcome of it: the run's fiber is interrupted, records what it knows,
 *   and the run is begun anew from its records, under the same lease. An attempt that resolves what may have happened is let
 *   be, and so is whatever takes something back: the loop looks at the cancel when they have ended.
 * - X13: within a process the wish is heard at once, and so it is where the store tells of what other processes have sent (D44).
 *   Where it does not, who holds runs looks a little more often than each `pollInterval`: one statement for all of them. The next
 *   heartbeat tells of what was missed.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Runtime from "effect/Runtime"
import type { HeldLease, RunRecord } from "../../model/Records.js"
import type { CheckpointStoreService } from "../../store/CheckpointStore.js"
import { arrived, type Listener } from "../../store/LocalSignals.js"
import type { Lane } from "./crew.js"
import { isOpenAttempt, type Decision } from "./decide.js"
import type { RunSession } from "./session.js"
import type { Settings } from "./settings.js"

/** What the loop of a run and those who watch over it tell each other. */
export interface Arrivals {
  /** The run's row where it was read since the loop has begun. */
  row: RunRecord | null
  /** What is under way is not to be cut off. */
  guarded: boolean
  /** The loop is being interrupted: nothing more begins in it. */
  cutOff: boolean
  /** Wakes a loop that waits here. */
  rouse: () => void
}

export const noArrivals = (): Arrivals => ({ row: null, guarded: false, cutOff: false, rouse: () => {} })

/** A run that a worker executes, as far as it is watched over. */
interface Watched {
  readonly run: RunRecord
  readonly arrivals: Arrivals
  readonly fiber: Fiber.RuntimeFiber<unknown, unknown> | null
  readonly lost: boolean
  /** The inbox up to which somebody has looked. */
  inbox: number
}

/** Looks at a run's row, for the loop to see; and cuts off its step if it is to be canceled. */
const look = (store: CheckpointStoreService, watched: Watched): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { arrivals, run } = watched
    const row = yield* store.findRun(run.namespace, run.runId)
    if (row.fence !== run.fence || row.claimToken !== run.claimToken || row.inbox < watched.inbox) return
    watched.inbox = row.inbox
    arrivals.row = row
    arrivals.rouse()
    if (row.cancelAt === null || arrivals.guarded || arrivals.cutOff || watched.lost || watched.fiber === null) return
    // In one go with the question above: the loop begins nothing between the two.
    arrivals.cutOff = true
    yield* Fiber.interruptFork(watched.fiber)
  }).pipe(
    Effect.catchAllCause((cause) =>
      Effect.logWarning(`what has arrived for run '${watched.run.runId}' could not be read`, cause),
    ),
  )

/** Listens for a run until the function that it gives is called. */
export const listenFor = (
  store: CheckpointStoreService,
  watched: Watched,
  runtime: Runtime.Runtime<never>,
): (() => void) =>
  store.signals.on(arrived(watched.run.namespace, watched.run.runId), () => {
    Runtime.runFork(runtime)(look(store, watched))
  })

/** Looks at those runs of which a heartbeat tells that something has arrived. */
export const heed = (
  store: CheckpointStoreService,
  owned: ReadonlyMap<string, Watched>,
  leases: ReadonlyArray<HeldLease>,
): Effect.Effect<void> =>
  Effect.suspend(() =>
    Effect.forEach(
      leases.flatMap(({ inbox, runId }) => {
        const watched = owned.get(runId)
        return watched !== undefined && inbox > watched.inbox ? [watched] : []
      }),
      // The heart does not wait for it.
      (watched) => Effect.forkDaemon(look(store, watched)),
      { discard: true },
    ),
  )

/** A look begins so much sooner than it would have to: what it finds is known within `pollInterval`. */
const lookAfter = 0.75

/** However much arrives, looks that somebody is told of begin no sooner than that one after the other, in milliseconds. */
const toldMs = 50

/** Looks at what other processes have sent to the runs that a worker holds, whenever it is told of something, or again and again. */
export const keepHeeding = (
  store: CheckpointStoreService,
  owned: ReadonlyMap<string, Watched>,
  workerId: string,
  { leaseMs, pollMs }: Pick<Settings, "leaseMs" | "pollMs">,
  ear: Listener,
  isClaiming: () => boolean,
): Effect.Effect<void> => {
  const { multiProcess, notify } = store.capabilities
  if (!multiProcess) return Effect.void
  const looked = Effect.suspend(() => store.loadReached(workerId)).pipe(
    Effect.flatMap((leases) => heed(store, owned, leases)),
    Effect.catchAllCause((cause) => Effect.logDebug("what has arrived could not be read", cause)),
    Effect.unlessEffect(Effect.sync(() => owned.size === 0)),
  )
  if (!notify) return Effect.forever(Effect.zipRight(ear.wait(Math.ceil(pollMs * lookAfter)), looked))
  // What a claim brings is not known here before its answer: what has reached it since is looked at then.
  const told: Effect.Effect<unknown> = Effect.suspend(() => {
    const again = isClaiming()
    return looked.pipe(Effect.zipRight(Effect.sleep(toldMs)), Effect.zipRight(again ? told : Effect.void))
  })
  return Effect.forever(Effect.flatMap(ear.wait(leaseMs), (isTold) => (isTold ? told : Effect.void)))
}

/** Whether what the loop has decided, or what is under way, may not be cut off by a cancel (X5). */
export const isGuarded = (session: RunSession, decision: Decision, lanes: Iterable<Lane>): boolean => {
  if (session.failure !== null || session.cancelAt !== null) return true
  if (decision._tag === "Work" && decision.work.some(isOpenAttempt)) return true
  for (const { attempt } of lanes) if (isOpenAttempt(attempt)) return true
  return false
}
