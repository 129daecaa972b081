/**
 * A run of which nothing can go on by now: it rests here for a moment, or in the store for as long as it takes, and then holds
 * neither fiber nor memory.
 */
import * as Effect from "effect/Effect"
import type { WaitWrite } from "../../store/CheckpointDriver.js"
import { noted, soonestMs, type Course } from "./course.js"
import type { Wait } from "./decide.js"
import { leave, logParked, type Failure, type LoopEnd } from "./leave.js"
import { inProcessMs } from "./retry.js"
import { lookAtWaits } from "./waits.js"

const statusOf = (waits: ReadonlyArray<Wait>): "review" | "waiting" | "sleeping" =>
  waits.some(({ node }) => node.kind === "review")
    ? "review"
    : waits.some(({ node }) => node.kind !== "sleep")
      ? "waiting"
      : "sleeping"

const rest = (
  course: Course,
  waits: ReadonlyArray<Wait>,
  opens: ReadonlyArray<WaitWrite>,
  inMs: number | null,
): Effect.Effect<LoopEnd | null, Failure> =>
  Effect.gen(function* () {
    const { crew, held, later, session } = course
    const wakeInMs = soonestMs(course, inMs)
    if (held.size === 0 && wakeInMs !== null && wakeInMs <= inProcessMs) {
      if (opens.length > 0) yield* session.commit({ run: session.running(opens[0]!.path), waits: opens })
      session.data.rest()
      yield* crew.wait(wakeInMs)
      return null
    }
    const cursor = waits[0]?.path ?? [...held.keys()][0] ?? [...later.keys()][0] ?? ""
    const [parked] = held.values()
    const run =
      parked === undefined ? leave(statusOf(waits), cursor, { wakeInMs }) : leave("review", parked.step, { parked })
    yield* session.reach("beforeCommit", cursor, 0)
    yield* session.commit({ run, waits: opens })
    yield* session.reach("afterCommit", cursor, 0)
    if (parked !== undefined) {
      yield* logParked(parked)
      return { _tag: "Parked" }
    }
    return wakeInMs === null ? { _tag: "Waiting" } : { _tag: "Sleeping", wakeInMs }
  })

/** A paused run is given back as it stands, once what is under way has ended. */
export const pause = ({ crew, session }: Course): Effect.Effect<LoopEnd | null, Failure> =>
  crew.isEmpty
    ? Effect.as(session.commit({ run: leave("pending", session.cursor) }), { _tag: "Waiting" } as const)
    : Effect.as(crew.wait(null), null)

/** Looks at what the run waits for, and rests if nothing else is under way. */
export const obeyWaits = (course: Course, waits: ReadonlyArray<Wait>): Effect.Effect<LoopEnd | null, Failure> =>
  Effect.gen(function* () {
    const { crew, session } = course
    const { inMs, opens, turns } = yield* lookAtWaits(session, waits)
    for (const { path, turn } of turns) {
      const end = noted(course, path, turn)
      if (end !== null) return end
    }
    const busy = !crew.isEmpty
    if (opens.length > 0 && (busy || turns.length > 0)) {
      yield* session.commit({ run: session.running(opens[0]!.path), waits: opens })
    }
    if (turns.length > 0) {
      session.data.goOn()
      return null
    }
    if (!busy) return yield* rest(course, waits, opens, inMs)
    session.data.rest()
    yield* crew.wait(soonestMs(course, inMs))
    return null
  })
