/**
 * What the window asks for before anything else of the run begins: that it begins itself, or that it is made smaller.
 *
 * - X1: what begins a window is recorded before it is obeyed; what compacts one follows from its text and the plan.
 * - What is under way ends first, and is kept: a step that was paid for is not interrupted for the window's sake.
 */
import * as Effect from "effect/Effect"
import { begin } from "./beginning.js"
import { parkUnreadable, Unreadable } from "./completion.js"
import type { OnUnreadable } from "./context.js"
import { dropDue, noted, type Course } from "./course.js"
import type { Attempt, WindowWork } from "./decide.js"
import { fail, failureRecord } from "./failing.js"
import type { Failure, LoopEnd, Turn } from "./leave.js"
import { obeyWaits } from "./resting.js"
import type { RunSession } from "./session.js"
import { andThen, type Soon } from "./soon.js"
import { steered } from "./steering.js"
import { firstWindow, shrunk } from "./window.js"
import { madeBy, windowStep } from "./windowStates.js"

/** The window's own failure, which is the run's: at the step that has made it what it is. */
const failed = (session: RunSession, error: unknown): Effect.Effect<Turn, Failure> => {
  const { window } = session
  const step = (window ? madeBy(window) : null) ?? windowStep
  return Effect.flatMap(failureRecord(session, step, error), (failure) => fail(session, windowStep, failure))
}

/** Computes a window, and records it. */
const record = (session: RunSession, what: "Begin" | "Shrink"): Effect.Effect<Turn, Failure> =>
  Effect.suspend(() => {
    let unreadable: Unreadable | null = null
    const onUnreadable: OnUnreadable = (step, error) => (unreadable = new Unreadable(step, error.message))
    return Effect.matchEffect(what === "Begin" ? firstWindow(session, onUnreadable) : shrunk(session, onUnreadable), {
      onFailure: (error) =>
        unreadable === null ? failed(session, error) : parkUnreadable(session, session.cursor, unreadable),
      onSuccess: (step) => steered(session, windowStep, { run: session.running(session.cursor), steps: [step] }),
    })
  })

/** Compacts by a step; or, where that is to come later or waits for a person, rests until then. */
const compact = (course: Course, attempt: Attempt): Soon<LoopEnd | null, Failure> => {
  const { cutOff, held, later, session } = course
  const { path } = attempt
  dropDue(course)
  return later.has(path) || held.has(path)
    ? obeyWaits(course, [])
    : andThen(begin(session, attempt, cutOff), (turn) => noted(course, path, turn))
}

/** Does what the window asks for, once nothing is under way. `isAlone`: of the rest of the run, nothing could go on beside it. */
export const obeyWindow = (course: Course, work: WindowWork, isAlone: boolean): Soon<LoopEnd | null, Failure> => {
  const { crew, held, session } = course
  if (!crew.isEmpty) return Effect.as(crew.wait(null), null)
  session.isAlone = isAlone && held.size === 0
  return work._tag === "Attempt"
    ? compact(course, work)
    : Effect.map(record(session, work._tag), (turn) => noted(course, windowStep, turn))
}
