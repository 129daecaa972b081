/**
 * What follows where data has moved that a step has read: the run goes on, fails, waits for a person, or goes back.
 *
 * - X1, X2: each is one commit, before anything else begins.
 * - Nothing that has happened outside is undone (D42): a run that would go back over it waits for a person instead.
 */
import * as Effect from "effect/Effect"
import { StaleData } from "../../model/Failures.js"
import type { ParkRecord } from "../../model/Records.js"
import type { RewindRow } from "../../store/RewindRows.js"
import type { Course } from "./course.js"
import { askedRecord } from "./dataNotes.js"
import { fail, failureRecord } from "./failing.js"
import { leave, logParked, type Failure, type LoopEnd } from "./leave.js"
import { prefixOf, scopeOf } from "./paths.js"
import type { RunSession } from "./session.js"
import { staleSteps, type StaleRead, type StaleStep } from "./staleness.js"

/** The run has gone back: it is read anew. */
export interface Rewound {
  readonly _tag: "Rewound"
}

/** What a run that has gone back keeps of it, as JSON. */
export interface RewoundResult {
  readonly step: string
  readonly toSeq: number
  readonly problem: string
}

/** So many are named to people, and so much of each key: a list may have thousands of items that have read the same. */
const mostShown = 3
const mostOfKey = 100

const named = <A>(all: ReadonlyArray<A>, show: (one: A) => string, between: string): string => {
  const more = all.length > mostShown ? `${between}and ${all.length - mostShown} more` : ""
  return `${all.slice(0, mostShown).map(show).join(between)}${more}`
}

const shownKey = (key: StaleRead["key"]): string => {
  const text = JSON.stringify(key)
  return text.length > mostOfKey ? `${text.slice(0, mostOfKey)}…` : text
}

const shownRead = ({ key, name, problem }: StaleRead): string =>
  `'${name}' (${shownKey(key)}) ${problem === null ? "has moved" : `cannot be compared: ${problem}`}`

const shown = ({ note, reads }: StaleStep): string =>
  `of what '${note.path}' has read, ${named(reads, shownRead, ", ")}`

/** What is said of a run in review, and why it is there although it is to be run again. */
const park = (session: RunSession, stale: ReadonlyArray<StaleStep>, why: string): Effect.Effect<LoopEnd, Failure> =>
  Effect.gen(function* () {
    const step = stale[0]!.note.path
    const problem = `${named(stale, shown, "; ")}${why}; resume the run to go on with what it has, or cancel it, or fork it from '${step}'`
    const parked: ParkRecord = { reason: "DataStale", step, problem }
    const seq = session.seq + 1
    const steps = stale.map(({ note: { path }, reads }) =>
      askedRecord(
        path,
        scopeOf(prefixOf(path)),
        seq,
        reads.map(({ current, key, name, token }) => ({ name, key, token, current })),
      ),
    )
    yield* session.reach("beforeCommit", step, 0)
    yield* session.commit({ run: leave("review", step, { parked }), steps })
    yield* session.reach("afterCommit", step, 0)
    yield* logParked(parked)
    return { _tag: "Parked" }
  })

/** The first thing of a run that has happened outside since a commit, as people read it. */
const happened = (session: RunSession, from: number): Effect.Effect<string, Failure> => {
  const { namespace, runId } = session.lease
  return session.persist(session.env.store.loadPerformed(namespace, runId)).pipe(
    Effect.map((rows) => {
      const row = rows.find(({ seq }) => seq === null || seq >= from)
      return row === undefined ? "something" : `'${row.path}' (${row.operation ?? row.kind})`
    }),
    Effect.catchTag("RunNotFound", () => Effect.fail(session.leaseLost())),
  )
}

/** The run goes back to before a step. False where something has happened outside since. */
const rewind = (session: RunSession, stale: StaleStep): Effect.Effect<boolean, Failure> =>
  Effect.gen(function* () {
    const { env, lease } = session
    const { path, seq: toSeq } = stale.note
    yield* session.barrier()
    const seq = session.seq + 1
    const result = JSON.stringify({ step: path, toSeq, problem: shown(stale) } satisfies RewoundResult)
    const usual = { effect: "rewound", idempotencyKey: null, attempts: 1, durationMs: 0 } as const
    const mark = { path: `:rewound@${seq}`, scope: ":rewound", seq, result, ...usual }
    const rewinding: RewindRow = { lease, base: session.seq, seq, toSeq, cursor: path, mark }
    yield* session.reach("beforeCommit", path, 0)
    const isDone = yield* session.persist(env.store.rewindRun(rewinding)).pipe(
      Effect.map((at) => {
        if (at === null) return false
        env.queue.acceptedSeq = env.queue.durableSeq = seq
        env.queue.durableAt = at
        return true
      }),
      // A cancel must not fall between the store's commit and what this process knows of it.
      Effect.uninterruptible,
    )
    if (!isDone) return false
    yield* session.reach("afterCommit", path, 0)
    yield* Effect.logWarning(`the run goes back to before '${path}': ${shown(stale)}`)
    return true
  })

const rerun = (session: RunSession, stale: ReadonlyArray<StaleStep>): Effect.Effect<LoopEnd | Rewound, Failure> =>
  Effect.gen(function* () {
    const first = stale[0]!
    if (yield* rewind(session, first)) return { _tag: "Rewound" } as const
    const what = yield* happened(session, first.note.seq)
    return yield* park(session, parkable(stale), `; it is not run again, for ${what} has happened since, or may have`)
  })

/** What a person is asked about together: all but what may be gone on with. */
const parkable = (stale: ReadonlyArray<StaleStep>): ReadonlyArray<StaleStep> =>
  stale.filter(({ onStale }) => onStale !== "accept")

/** What nobody can tell of is neither run again nor failed for: the next try might find it as it was. */
const isUnknown = ({ reads }: StaleStep): boolean => reads.every(({ problem }) => problem !== null)

const failFor = (session: RunSession, { note: { path }, reads }: StaleStep) =>
  Effect.gen(function* () {
    const { key, name } = reads.find(({ problem }) => problem === null)!
    const failure = yield* failureRecord(session, path, new StaleData({ step: path, name, key: JSON.stringify(key) }))
    // What waits beside it is to see that the run fails.
    session.isAlone = false
    yield* fail(session, path, failure)
    return null
  })

const decideOn = (
  session: RunSession,
  stale: ReadonlyArray<StaleStep>,
): Effect.Effect<LoopEnd | Rewound | null, Failure> => {
  const asking = parkable(stale)
  const [first] = asking
  if (first === undefined) return Effect.succeed(null)
  if (first.onStale === "review" || isUnknown(first)) return park(session, asking, "")
  return first.onStale === "rerun" ? rerun(session, asking) : failFor(session, first)
}

/** Asks whether data is as it was, and obeys. Null: the run goes on. */
export const checkData = ({ crew, session }: Course): Effect.Effect<LoopEnd | Rewound | null, Failure> =>
  Effect.gen(function* () {
    const stale = yield* staleSteps(session)
    const isQuiet = parkable(stale).length === 0
    if (!isQuiet && !crew.isEmpty) {
      // Asked again once what is under way has ended: it may have read something else by then, or performed.
      yield* crew.stop(() => false)
      yield* crew.wait(null)
      return null
    }
    session.data.isDue = false
    for (const one of stale) {
      if (one.onStale === "accept") yield* Effect.logWarning(`the run goes on with what it has: ${shown(one)}`)
    }
    return yield* decideOn(session, stale)
  })
