/**
 * How a run leaves its worker, or waits in it: every commit that gives the lease up is written here or from here.
 *
 * - X2: it has left when the commit is durable, never before.
 * - X8: delays over a second are durable, by the store's clock.
 */
import * as Effect from "effect/Effect"
import type { LeaseLost, StoreError } from "../../model/Errors.js"
import type { ParkRecord, RunCompletion, RunRecord } from "../../model/Records.js"
import type { Commit } from "../../store/CheckpointStore.js"
import type { Attempt } from "./decide.js"
import { inProcessMs } from "./retry.js"
import type { Parts, RunChange, RunSession } from "./session.js"
import { asEffect, type Soon } from "./soon.js"

/** How a run left this worker. `wakeInMs`: when it is due again, null for not by itself. */
export type LoopEnd =
  | { readonly _tag: "Final"; readonly completion?: RunCompletion | null }
  | { readonly _tag: "Parked" }
  | { readonly _tag: "Sleeping"; readonly wakeInMs: number }
  | { readonly _tag: "Waiting" }
  | { readonly _tag: "Drained" }

export type Failure = LeaseLost | StoreError

/** Where other work of the run goes on: this one is not due before, or not before a person has looked at it. */
export type Delay =
  { readonly _tag: "Later"; readonly delayMs: number } | { readonly _tag: "Held"; readonly parked: ParkRecord }

/** What a turn of the loop says: go on, come back to this, or the run has left. */
export type Turn = LoopEnd | Delay | null

export const leave = (status: RunRecord["status"], cursor: string, rest: Partial<RunChange> = {}): RunChange => ({
  status,
  cursor,
  wakeInMs: null,
  output: null,
  failure: null,
  parked: null,
  release: true,
  ...rest,
})

/** Whose commit it is, as fault points are told. */
type At = Pick<Attempt, "attempt" | "path">

/** Between the two fault points that surround every commit of a step. */
const surrounded = <E>(session: RunSession, { attempt, path }: At, write: () => Soon<unknown, E>): Soon<unknown, E> =>
  session.isWatched
    ? session
        .reach("beforeCommit", path, attempt)
        .pipe(
          Effect.zipRight(Effect.suspend(() => asEffect(write()))),
          Effect.zipRight(session.reach("afterCommit", path, attempt)),
        )
    : write()

/** Commits, and waits until that is durable. */
export const committed = (session: RunSession, attempt: At, parts: Parts): Effect.Effect<unknown, Failure> =>
  asEffect(surrounded(session, attempt, () => session.commit(parts)))

/** Commits without waiting. */
export const accepted = (session: RunSession, attempt: At, parts: Parts): Soon<unknown, Failure> =>
  surrounded(session, attempt, () => session.accept(parts))

/** Waits here if the delay is short, and hands the run back with a wake-up time if it is not (X8). */
export const again = (
  session: RunSession,
  attempt: Attempt,
  delayMs: number,
  rows: Pick<Commit, "effects" | "attempts">,
): Effect.Effect<Turn, Failure> =>
  Effect.gen(function* () {
    const short = delayMs <= inProcessMs
    if (!short && !session.isAlone) {
      if (rows.effects.length + rows.attempts.length > 0) {
        yield* committed(session, attempt, { run: session.running(attempt.path), ...rows })
      }
      return { _tag: "Later", delayMs } as const
    }
    const run = short ? session.running(attempt.path) : leave("sleeping", attempt.path, { wakeInMs: delayMs })
    if (!short || rows.effects.length + rows.attempts.length > 0) yield* committed(session, attempt, { run, ...rows })
    if (!short) return { _tag: "Sleeping", wakeInMs: delayMs } as const
    session.timers.set(attempt.path, session.nowMs + delayMs)
    yield* Effect.sleep(delayMs)
    return null
  })

export const park = (
  session: RunSession,
  attempt: Attempt,
  parked: ParkRecord,
  rows: Partial<Pick<Commit, "effects" | "attempts">>,
  wakeInMs: number | null = null,
): Effect.Effect<Turn, Failure> =>
  Effect.gen(function* () {
    if (!session.isAlone) {
      yield* committed(session, attempt, { run: session.running(attempt.path), ...rows })
      if (wakeInMs === null) return { _tag: "Held", parked } as const
      yield* logParked(parked)
      return { _tag: "Later", delayMs: wakeInMs } as const
    }
    yield* committed(session, attempt, { run: leave("review", attempt.path, { parked, wakeInMs }), ...rows })
    yield* logParked(parked)
    return { _tag: "Parked" } as const
  })

export const logParked = ({ problem, reason, step }: ParkRecord): Effect.Effect<void> =>
  Effect.logWarning(`parked for a person at step '${step}' (${reason}): ${problem}`)
