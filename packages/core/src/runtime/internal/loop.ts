/**
 * The loop of one run: it asks `decide` what comes next and obeys (X1). Laws kept here:
 *
 * - X5: interruption is no outcome; an operation that it cut off stays an intent, which its policy resolves.
 * - X6: a refused commit ends this fiber before any further effect; an outcome that is known all the same is recorded
 *   without the fence, for the new owner to read.
 * - X7: a resume reads what is in scope, not the history.
 *
 * Where one thing comes after the other, the loop does it itself. What goes on side by side (arms, items) is done by fibers of
 * their own, and the loop decides anew whenever one of them has come to an end.
 *
 * Attempts begin in `beginning`, and what they came to is committed by `attemptEnds`, what steers by `steering`, the end of the
 * run by `completion` (X2, X3); what it waits for stands in `waits`, how it rests in `resting`, how it leaves in `leave` (X8).
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { RunNotFound, StoreError } from "../../model/Errors.js"
import type { FailureRecord, ParkRecord, RunRecord, RunState } from "../../model/Records.js"
import { adopt, parkIncompatible } from "./adopting.js"
import { isGuarded } from "./arrivals.js"
import { begin } from "./beginning.js"
import { complete } from "./completion.js"
import { dropDue, noted, type Course } from "./course.js"
import { Crew } from "./crew.js"
import { atStep, type RunDefect } from "./defects.js"
import { decide, type Attempt, type Decision, type Load, type Steer, type Wait, type Work } from "./decide.js"
import { mayTakeBack } from "./failing.js"
import { leave, type Failure, type LoopEnd } from "./leave.js"
import { loadAll } from "./loading.js"
import { checkData, type Rewound } from "./obeyStale.js"
import { obeyWindow } from "./obeyWindow.js"
import { obeyWaits, pause } from "./resting.js"
import { persisting, RunSession, type RunEnv } from "./session.js"
import { asEffect, comes, type Soon } from "./soon.js"
import { obeySteer } from "./steering.js"

const final: LoopEnd = { _tag: "Final" }

/** So many turns of the loop may follow each other before other fibers have theirs. */
const turnsAtOnce = 64

/** X5: the run is canceled by a commit of its owner; what it did is taken back from there on. */
const cancel = (session: RunSession, step: string): Effect.Effect<LoopEnd | null, Failure> =>
  Effect.gen(function* () {
    const problem = session.cancelReason ?? "somebody asked for it"
    const failure: FailureRecord = { kind: "canceled", step, problem }
    const takesBack = mayTakeBack(session)
    const run = takesBack ? session.running(step) : leave("canceled", step)
    yield* session.reach("beforeCommit", step, 0)
    yield* session.commit({ run: { ...run, failure } })
    yield* session.reach("afterCommit", step, 0)
    return takesBack ? null : final
  })

/** X12: a run that brings its worker down again and again is left to a person. */
const tooManyRecoveries = (session: RunSession, step: string): Effect.Effect<LoopEnd, Failure> => {
  const { recoveries } = session.run
  const problem = `it brought down its worker ${recoveries} times without progress; look at the step before you resume it`
  // The step that was about to be tried, not the last one that went well.
  const parked: ParkRecord = { reason: "TooManyRecoveries", step, problem }
  return Effect.as(session.commit({ run: leave("review", step, { parked }) }), { _tag: "Parked" })
}

/** Takes in what has ended in fibers of its own. */
const gather = (course: Course): Soon<LoopEnd | null, Failure | RunDefect> => {
  for (const { exit, lane } of course.crew.take()) {
    if (Exit.isSuccess(exit)) {
      const end = noted(course, lane.attempt.path, exit.value)
      if (end !== null) return end
    } else if (!lane.stopping || !Exit.isInterrupted(exit)) {
      return Effect.failCause(atStep(exit.cause, () => lane.attempt.path))
    } else course.session.live?.discard(lane.attempt.path)
  }
  return null
}

const isEnd = (work: Work): boolean => work._tag === "Steer" && (work.what === "fail" || work.what === "end")

const obeySteers = (course: Course, steers: ReadonlyArray<Steer>): Effect.Effect<LoopEnd | null, Failure> =>
  Effect.gen(function* () {
    for (const steer of steers) {
      const end = noted(course, steer.path, yield* obeySteer(course.session, steer))
      if (end !== null) return end
      // What it says is the run's affair from here on.
      if (course.session.failure !== null) return null
    }
    return null
  })

/** Lets everything begin that can, each in a fiber of its own. */
const obeyMany = (course: Course, work: ReadonlyArray<Work>): Effect.Effect<LoopEnd | null, Failure> =>
  Effect.gen(function* () {
    const { crew, cutOff, held, later, session } = course
    const paths = new Set(work.flatMap((each) => (each._tag === "Attempt" ? [each.path] : [])))
    yield* crew.stop((path) => paths.has(path))
    // W7: nothing further begins, nor does what only steers: it may go on for ever without coming to a step.
    if (session.env.draining()) return crew.isEmpty ? { _tag: "Drained" } : yield* Effect.as(crew.wait(null), null)
    const steers = work.filter((each): each is Steer => each._tag === "Steer")
    if (steers.some(isEnd)) {
      // Nothing is under way any more when the run ends.
      return yield* crew.isEmpty ? obeySteers(course, steers) : Effect.as(crew.wait(null), null)
    }
    dropDue(course)
    for (const path of later.keys()) if (!paths.has(path)) later.delete(path)
    for (const path of held.keys()) if (!work.some((each) => each.path === path)) held.delete(path)
    for (const attempt of work) {
      if (attempt._tag !== "Attempt") continue
      const { path } = attempt
      if (crew.lanes.has(path) || later.has(path) || held.has(path)) continue
      yield* crew.start(
        attempt,
        Effect.suspend(() => asEffect(begin(session, attempt, cutOff))),
      )
    }
    // Before anything is waited for; after what may begin, for it may go on for long without coming to a step.
    if (steers.length > 0) return yield* obeySteers(course, steers)
    const waits = work.filter((each): each is Wait => each._tag === "Wait" && !held.has(each.path))
    return yield* obeyWaits(course, waits)
  })

const isAlone = ({ crew, held, later }: Course, work: ReadonlyArray<Work>): boolean =>
  work.length === 1 && crew.isEmpty && later.size === 0 && held.size === 0

const obeyWork = (course: Course, work: ReadonlyArray<Work>): Soon<LoopEnd | null, Failure> => {
  const { cutOff, session } = course
  const [first] = work
  session.isAlone = isAlone(course, work)
  if (session.isAlone && first!._tag === "Attempt") {
    // What is alone never comes back later: it lets the run leave.
    return begin(session, first as Attempt, cutOff) as Soon<LoopEnd | null, Failure>
  }
  return obeyMany(course, work)
}

/** The step that is about to be tried; null where none is. */
const nextStep = (decision: Decision): string | null =>
  decision._tag === "Work"
    ? decision.work[0]!.path
    : decision._tag === "Window" && decision.work._tag === "Attempt"
      ? decision.work.path
      : null

/** Whether the run goes on, and neither ends nor is taken back. */
const goesOn = ({ failure, cancelAt }: RunSession, { _tag }: Decision): boolean =>
  (_tag === "Work" || _tag === "Window") && failure === null && cancelAt === null

/** X12, and what follows from the fact that all is read now. */
const settled = (course: Course, decision: Decision): Effect.Effect<LoopEnd | null, Failure> | null => {
  const { cutOff, session } = course
  course.isSettled = true
  session.settle()
  if (cutOff !== null) {
    cutOff.effects = new Set([...session.frames.values()].flatMap(({ effects }) => [...effects.values()].flat()))
  }
  if (session.run.recoveries <= session.env.maxRecoveries || decision._tag === "Cancel") return null
  const step = nextStep(decision) ?? session.cursor
  return tooManyRecoveries(session, step)
}

/**
 * Whether the decision lets the run end or begin to be taken back: nothing may be under way beside that. What is still being
 * performed would be missing from what is to be taken back.
 */
const isFinal = (decision: Decision): boolean =>
  decision._tag === "Work"
    ? decision.work.some((each) =>
        each._tag === "Attempt" ? each.takesBack !== null : "what" in each && each.what === "undo",
      )
    : decision._tag !== "Window"

/** What earlier steps have read is to be as it was before anything is built on it; who stops builds nothing. */
const checksData = ({ session }: Course, decision: Decision): boolean =>
  session.data.isDue &&
  (decision._tag === "Complete" ? session.cancelAt === null : goesOn(session, decision) && !session.env.draining())

const turn = (course: Course): Soon<LoopEnd | Rewound | null, Failure | RunDefect> => {
  const { crew, session } = course
  const { arrivals, plan } = session.env
  // X5: a loop that is being interrupted begins nothing more.
  if (arrivals.cutOff) return Effect.never
  const gathered = gather(course)
  if (gathered !== null) return gathered
  // X13: between this look at what has arrived and what is begun lies nothing that another fiber could use.
  session.heed()
  const decision = decide(plan, session)
  arrivals.guarded = isGuarded(session, decision, crew.lanes.values())
  if (isFinal(decision) && !crew.isEmpty) {
    return crew.stop(() => false).pipe(Effect.zipRight(crew.wait(null)), Effect.as(null))
  }
  if (decision._tag === "Work" && decision.work[0]!._tag === "Load") {
    return Effect.as(loadAll(session, decision.work as ReadonlyArray<Load>), null)
  }
  const parked = course.isSettled ? null : settled(course, decision)
  if (parked !== null) return parked
  if (session.pausedAt !== null && goesOn(session, decision)) return pause(course)
  if (checksData(course, decision)) return checkData(course)
  switch (decision._tag) {
    case "Work":
      return obeyWork(course, decision.work)
    case "Window":
      return obeyWindow(course, decision.work, decision.isAlone)
    case "Finished":
      return final
    case "Complete":
      session.isAlone = true
      return Effect.map(complete(session), (turn) => noted(course, "", turn))
    case "Cancel":
      return cancel(session, decision.step)
    case "Failed": {
      const { failure } = decision
      const status = failure.kind === "canceled" ? "canceled" : "failed"
      return Effect.as(session.commit({ run: leave(status, failure.step, { failure }) }), final)
    }
    case "Incompatible":
      return parkIncompatible(session, decision)
  }
}

/** What a run was about to do that a defect broke. */
const whereabouts = ({ session }: Course): string => {
  try {
    return nextStep(decide(session.env.plan, session)) ?? session.cursor
  } catch {
    // What comes next is what broke it.
    return session.cursor
  }
}

/** How this loop comes by the run: it was claimed, another loop of its lease was cut off, or it has gone back (D42). */
type From = "claimed" | "cutOff" | "rewound"

/** The run from what is committed until it leaves this worker, or goes back. */
const runFrom = (env: RunEnv, run: RunRecord, from: From): Effect.Effect<LoopEnd | Rewound, Failure | RunDefect> =>
  Effect.gen(function* () {
    const wasCutOff = from === "cutOff"
    const runtime = yield* Effect.runtime<never>()
    const clock = yield* Effect.clock
    // What the loop that was cut off has accepted is in the store before anybody reads there.
    if (wasCutOff) yield* env.buffer.durable(env.queue, env.queue.acceptedSeq)
    // A new run has nothing but its row.
    const isNew = run.seq === 0 && run.failure === null && from === "claimed"
    const load: Effect.Effect<RunState, RunNotFound | StoreError> = isNew
      ? Effect.succeed({ run, steps: [] })
      : persisting(env, env.store.load(run.namespace, run.runId))
    const state = yield* Effect.catchTag(load, "RunNotFound", () =>
      // Claimed a moment ago and gone: purged. There is nothing left to own.
      Effect.succeed(null),
    )
    if (state === null) return final
    // Interrupted as it left: it is somebody else's by now, or nobody's.
    if (state.run.fence !== run.fence || state.run.claimToken !== run.claimToken) return { _tag: "Drained" } as const
    const session = new RunSession(env, run, state, isNew, clock, runtime)
    if (session.planHash !== env.plan.hash) {
      const parked = yield* session.logged(adopt(session))
      if (parked !== null) return parked
    }
    const cutOff = wasCutOff ? { at: yield* session.persist(env.store.now), effects: new Set<never>() } : null
    const crew = new Crew()
    const course: Course = { session, crew, cutOff, later: new Map(), held: new Map(), isSettled: false }
    env.arrivals.rouse = () => crew.rouse()
    const rounds = Effect.gen(function* () {
      for (let turns = 1; ; turns++) {
        const soon = turn(course)
        const end = comes(soon) ? yield* soon : soon
        if (end !== null) return end._tag === "Final" ? { ...end, completion: session.completion } : end
        // What ends at once again and again lets others have their turn.
        if (turns % turnsAtOnce === 0) yield* Effect.yieldNow()
      }
    }).pipe(Effect.catchAllCause((cause) => Effect.failCause(atStep(cause, () => whereabouts(course)))))
    const over = Effect.zipRight(
      crew.stopAll,
      Effect.sync(() => session.live?.close()),
    )
    return yield* session.logged(Effect.onExit(rounds, () => over))
  })

/**
 * Runs a claimed run until it leaves this worker.
 *
 * *Shape.* `wasCutOff`: a loop of the same run and lease was interrupted just now; what it sent may still be under way.
 *
 * *Errors.* `LeaseLost`: it goes on elsewhere. `StoreError`: the store failed for longer than the lease could bear; the
 * lease ends by itself and another worker goes on. `RunDefect`: it would break again wherever it went on.
 */
export const runLoop = (env: RunEnv, run: RunRecord, wasCutOff = false): Effect.Effect<LoopEnd, Failure | RunDefect> =>
  Effect.gen(function* () {
    yield* env.faults.reach("afterClaim", { runId: run.runId, step: "", attempt: 0 })
    let end = yield* runFrom(env, run, wasCutOff ? "cutOff" : "claimed")
    while (end._tag === "Rewound") end = yield* runFrom(env, run, "rewound")
    return end
  }).pipe(Effect.catchAllCause((cause) => Effect.failCause(atStep(cause, () => run.cursor ?? ""))))
