/**
 * Whether the data that committed steps have read is as it was, asked when a run goes on after its worker has let go of it, and
 * when something that it has waited for is over. What is asked about are the steps of the scopes that are open (X7).
 *
 * - X1: what a person was asked about is durable with the question, so that whoever goes on knows what the answer was for.
 * - Who has looked has changed nothing: a check writes nowhere.
 * - The first step that read what has moved decides: what came after it may follow from it.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schedule from "effect/Schedule"
import { isDataVersion, type AnyDataVersion, type Json } from "../../dsl/DataVersion.js"
import type { OnStale } from "../../dsl/StepOptions.js"
import { StepTimeout } from "../../model/Errors.js"
import { canonicalText } from "../../model/internal/json.js"
import type { PlanStep } from "../../model/Plan.js"
import type { StepRecord } from "../../model/Records.js"
import { effectOf } from "./asynchrony.js"
import { dataScope, type DataNote, type DataRead } from "./dataNotes.js"
import { capture } from "./dataReads.js"
import { errorDetails, primary, unwrapThrown } from "./errorDetails.js"
import { keepingRefs } from "./fiberRefs.js"
import type { Failure } from "./leave.js"
import { nodeAt } from "./planIndex.js"
import type { RunSession } from "./session.js"

/** A read whose data has moved; or, where `problem` says why, one of which nobody can tell. `current`: what it is now, if known. */
export interface StaleRead extends DataRead {
  readonly current: Json
  readonly problem: string | null
}

/** A step that has read what has moved since. */
export interface StaleStep {
  readonly note: DataNote
  readonly onStale: OnStale
  readonly reads: ReadonlyArray<StaleRead>
}

/** A check without an answer for so long has none. */
const usualTimeoutMs = 30_000

/** A source that is away for a moment is asked again. */
const patience = Schedule.intersect(Schedule.exponential("200 millis"), Schedule.recurs(2))

/** Data that is asked at once. */
const concurrency = 8

const jsonText = (value: Json): string => canonicalText(JSON.stringify(value))

const sameJson = (a: Json, b: Json): boolean => jsonText(a) === jsonText(b)

/** Whether a token still stands; what stands instead, where that is known. */
type Answer = { readonly isCurrent: boolean; readonly current: Json }

const ask = (
  session: RunSession,
  step: PlanStep,
  version: AnyDataVersion,
  { key, token }: DataRead,
): Effect.Effect<Answer, unknown> => {
  const { env } = session
  const { source } = version
  if (source.place === "outside" && source.isCurrent !== null) {
    const { isCurrent } = source
    return Effect.scoped(effectOf(() => isCurrent(key, token))).pipe(
      Effect.map((current): Answer => ({ isCurrent: current === true, current: null })),
      Effect.mapInputContext((context: Context.Context<never>) => Context.merge(env.context, context)),
    )
  }
  return Effect.map(capture(env, step.name, version, key, null), ({ token: current }) => ({
    isCurrent: sameJson(current, token),
    current,
  }))
}

/** What became of a question; where nobody could answer it, why. */
interface Found extends Answer {
  readonly problem: string | null
}

const found = (session: RunSession, step: PlanStep, version: AnyDataVersion, read: DataRead): Effect.Effect<Found> => {
  const timeoutMs = step.timeoutMs ?? usualTimeoutMs
  return ask(session, step, version, read).pipe(
    Effect.timeoutFail({ duration: timeoutMs, onTimeout: () => new StepTimeout({ step: step.name, timeoutMs }) }),
    Effect.retry(patience),
    Effect.exit,
    Effect.map((exit): Found => {
      if (Exit.isSuccess(exit)) return { ...exit.value, problem: null }
      const { message, name } = errorDetails(unwrapThrown(primary(exit.cause).error))
      return { isCurrent: false, current: null, problem: message === "" ? name : message }
    }),
  )
}

/** One question, and everybody who has it: the items of a list may all have read the same. */
interface Question {
  readonly step: PlanStep
  readonly version: AnyDataVersion
  readonly read: DataRead
  readonly askers: Array<DataNote>
}

const questions = (session: RunSession): ReadonlyArray<Question> => {
  const all = new Map<string, Question>()
  for (const note of session.data.all) {
    const step = nodeAt(session.env.plan, note.path)
    const node = step === null ? null : session.node(note.path)
    if (node?.kind !== "step") continue
    const declared = node.effects.filter(isDataVersion)
    for (const read of note.reads) {
      const version = declared.find(({ name }) => name === read.name)
      // What the code does not declare any more, it does not depend on any more.
      if (version === undefined) continue
      const text = JSON.stringify([step!.path, read.name, jsonText(read.key), jsonText(read.token)])
      const question = all.get(text) ?? { step: step as PlanStep, version, read, askers: [] }
      question.askers.push(note)
      all.set(text, question)
    }
  }
  return [...all.values()]
}

/** Whether a person was asked about the very same, and has let the run go on. */
const isAnswered = (session: RunSession, path: string, read: DataRead, current: Json): boolean =>
  session.data
    .askedOf(path)
    .some(
      (asked) =>
        asked.name === read.name &&
        sameJson(asked.key, read.key) &&
        sameJson(asked.token, read.token) &&
        sameJson(asked.current, current),
    )

/** The steps that have read what has moved, the first one first. */
export const staleSteps = (session: RunSession): Effect.Effect<ReadonlyArray<StaleStep>, Failure> =>
  Effect.gen(function* () {
    yield* readNotes(session)
    const asked = questions(session)
    const answers = yield* keepingRefs(
      Effect.forEach(asked, ({ read, step, version }) => found(session, step, version, read), { concurrency }),
    )
    const steps = new Map<DataNote, { note: DataNote; onStale: OnStale; reads: Array<StaleRead> }>()
    asked.forEach(({ askers, read, step }, index) => {
      const { current, isCurrent, problem } = answers[index]!
      if (isCurrent) return
      for (const note of askers) {
        if (isAnswered(session, note.path, read, current)) continue
        const stale = steps.get(note) ?? { note, onStale: step.onStale ?? "review", reads: [] }
        stale.reads.push({ ...read, current, problem })
        steps.set(note, stale)
      }
    })
    return [...steps.values()].sort((a, b) => a.note.seq - b.note.seq)
  })

/** Reads what an earlier owner has left of the scopes that are open. */
const readNotes = (session: RunSession): Effect.Effect<void, Failure> => {
  if (session.data.isRead) return Effect.void
  const { namespace, runId } = session.lease
  const scopes = [...session.frames.values()].flatMap(({ scope, steps }) => (steps.size > 0 ? [dataScope(scope)] : []))
  const query = { namespace, runId, scopes, newestFirst: false, after: null, limit: null, withResults: true }
  const loaded: Effect.Effect<ReadonlyArray<StepRecord>, Failure> = scopes.length === 0
    ? Effect.succeed([])
    : session.persist(session.env.store.loadSteps(query))
  return Effect.map(loaded, (steps) => {
    for (const step of steps) session.note(step)
    session.data.isRead = true
  })
}
