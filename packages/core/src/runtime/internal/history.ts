/**
 * A run's history as events, a page at a time.
 *
 * - W2: only what is durable is told: events are read from what commits have left, and nothing is written for them.
 * - Commits of a run reach the store in order (W1), so that once a seq was seen, nothing comes at it or before it any more. A page
 *   has whole seqs: nothing of it comes again after it, and nothing is missed.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Schedule from "effect/Schedule"
import type { Definition } from "../../dsl/Definition.js"
import { isCompensationPath } from "../../dsl/internal/compensation.js"
import { InvalidValue, type RunNotFound, type StoreError } from "../../model/Errors.js"
import type { Plan } from "../../model/Plan.js"
import { finalStatuses, type FailureRecord, type RunOutcome, type StepRecord } from "../../model/Records.js"
import type { CheckpointStoreService, RunKey } from "../../store/CheckpointStore.js"
import type { History } from "../../store/HistoryRows.js"
import type { RunEvent, StepKind } from "../Events.js"
import type { RewoundResult } from "./obeyStale.js"
import { instanceOf, isBeside, templateOf } from "./paths.js"
import { processMs } from "./processTime.js"
import { programOf, type Program } from "./program.js"
import type { Pull } from "./pulling.js"
import { resultCodec } from "./resultCodec.js"
import type { ReviewData } from "./reviews.js"
import { failureOf, outputOf } from "./runEnd.js"
import { untilBeyond } from "./waiting.js"

type AnyEvent = RunEvent<any>

/** An event, and what orders it among those of its seq. */
interface Placed {
  readonly seq: number
  readonly at: number
  /** What failed comes before what followed from it, and how the run stands comes last. */
  readonly rank: number
  readonly path: string
  readonly attempt: number
  readonly event: AnyEvent extends infer E
    ? E extends AnyEvent
      ? Omit<E, "seq" | "at" | "isLastOfSeq">
      : never
    : never
}

const byPlace = (a: Placed, b: Placed): number =>
  a.seq - b.seq || a.rank - b.rank || (a.path < b.path ? -1 : a.path > b.path ? 1 : 0) || a.attempt - b.attempt

// ---- steps -----------------------------------------------------------------------------------------------------

const kindOf = (program: Program, { effect, path, scope }: StepRecord): StepKind => {
  if (scope.endsWith("[")) return effect === "turn" ? "turn" : "item"
  if (scope.endsWith("[]")) return "items"
  if (isCompensationPath(path)) return "compensation"
  const kind = program.pairs.get(templateOf(path))?.node.kind
  return kind ?? (effect.startsWith("external:") ? "perform" : "step")
}

interface Read {
  readonly result: unknown
  readonly json: string | null
  readonly unreadable: string | null
}

const json = (value: unknown): Read => ({ result: value, json: JSON.stringify(value), unreadable: null })

const readResult = (program: Program, record: StepRecord, kind: StepKind): Read => {
  const { effect, path, result } = record
  if (kind === "items") return json(JSON.parse(result ?? "[]"))
  if (kind === "item") {
    if (effect !== "item:failed") return json({ ok: true })
    const { problem, step } = JSON.parse(result ?? "null") as FailureRecord
    return json({ ok: false, step, problem })
  }
  // The state with which a turn begins is that of its loop.
  const node = program.pairs.get(templateOf(kind === "turn" ? instanceOf(path)!.container : path))?.node
  if (node === undefined) return { result: undefined, json: result, unreadable: "this code has no such step" }
  return Either.match(resultCodec(node).decode(result, `result of '${path}'`), {
    onLeft: ({ message }) => ({ result: undefined, json: result, unreadable: message }),
    onRight: (value) => ({ result: value, json: result, unreadable: null }),
  })
}

const stepEvent = (program: Program, record: StepRecord): Placed => {
  const { attempts, committedAt, durationMs, path, seq } = record
  const kind = kindOf(program, record)
  const read = readResult(program, record, kind)
  return {
    ...{ seq, at: committedAt, rank: 1, path, attempt: 0 },
    event: { _tag: "StepCompleted", path, kind, ...read, attempts, durationMs },
  }
}

/** What the runtime keeps beside the steps is told of where it says that something has gone. */
const besideEvent = ({ committedAt, effect, path: of, result, seq }: StepRecord): ReadonlyArray<Placed> => {
  if (effect !== "rewound") return []
  const { problem, step, toSeq } = JSON.parse(result ?? "null") as RewoundResult
  const event = { _tag: "Rewound", path: step, toSeq, problem } as const
  return [{ seq, at: committedAt, rank: 1, path: of, attempt: 0, event }]
}

// ---- attempts, waits, and the run itself -----------------------------------------------------------------------

const attemptEvent = ({ attempt, endedAt, error, kind, path, retryAt, seq }: History["attempts"][number]): Placed => {
  const problem = error.message === "" ? error.name : error.message
  const due = retryAt === null ? null : new Date(retryAt)
  return {
    ...{ seq, at: endedAt, rank: 0, path, attempt },
    event:
      kind === "retried"
        ? { _tag: "Retried", path }
        : { _tag: "AttemptEnded", path, attempt, kind, problem, retryAt: due },
  }
}

const waitEvent = ({ data, kind, name, openedAt, path, seq, wakeAt }: History["waits"][number]): Placed => {
  const { shown, who = null } = JSON.parse((kind === "review" ? data : null) ?? "{}") as Partial<ReviewData>
  const until = wakeAt === null ? null : new Date(wakeAt)
  return {
    ...{ seq, at: openedAt, rank: 2, path, attempt: 0 },
    event: {
      ...{ _tag: "Waiting" as const, path, kind, name: kind === "review" ? null : name, until },
      review: kind === "review" ? { reviewId: name ?? "", shown, who } : null,
    },
  }
}

const standingEvent = (definition: Definition, run: RunOutcome): Placed["event"] | null => {
  switch (run.status) {
    case "completed": {
      const text = run.output
      return Either.match(outputOf(definition, run), {
        onLeft: ({ message }) => ({ ...completed, output: undefined, json: text, unreadable: message }),
        onRight: (output) => ({ ...completed, output, json: text, unreadable: null }),
      })
    }
    case "failed": {
      const { failure } = run
      const error = failureOf(definition, { ...run, step: run.cursor ?? "" })
      const json = failure?.kind === "declared" ? failure.value : null
      const problem = failure?.problem ?? "it ended without saying why"
      return { _tag: "Finished", status: "failed", step: failure?.step ?? "", problem, error, json }
    }
    case "canceled":
      return { _tag: "Finished", status: "canceled", reason: run.cancelReason }
    case "review":
      if (run.parked === null) return null
      return { _tag: "Parked", path: run.parked.step, reason: run.parked.reason, problem: run.parked.problem }
    default:
      return null
  }
}

const completed = { _tag: "Finished", status: "completed" } as const

// ---- pages -----------------------------------------------------------------------------------------------------

/** Rows of each kind in a page. */
const pageRows = 100

/** Up to which seq everything is there: a list that is full may lack something of its last one. */
const wholeThrough = ({ attempts, steps, waits }: History, limit: number, through: number): number =>
  Math.min(
    through,
    ...[steps, attempts, waits].map((rows) => (rows.length < limit ? through : rows[rows.length - 1]!.seq - 1)),
  )

/** Trouble that may pass is waited out for a while. */
const patience = Schedule.intersect(Schedule.spaced("250 millis"), Schedule.recurs(20))

/** A page of what the commits after a seq have left, and up to which seq it is whole. */
export const wholeSeqs = (
  store: CheckpointStoreService,
  { namespace, runId }: RunKey,
  after: number,
  through: number,
  limit: number,
): Effect.Effect<{ readonly rows: History; readonly through: number }, StoreError> =>
  Effect.flatMap(
    Effect.retry(store.loadHistory({ namespace, runId, after, through, limit }), {
      schedule: patience,
      while: ({ isRetryable }) => isRetryable,
    }),
    (rows) => {
      const whole = wholeThrough(rows, limit, through)
      // One commit has left more than a page takes: it is read as a whole.
      return whole > after
        ? Effect.succeed({ rows, through: whole })
        : wholeSeqs(store, { namespace, runId }, after, through, limit * 4)
    },
  )

const eventsOf = (definition: Definition, program: Program, rows: History, through: number, run: RunOutcome) => {
  const placed = [
    ...rows.attempts.map(attemptEvent),
    ...rows.steps.flatMap((record) => (isBeside(record) ? besideEvent(record) : [stepEvent(program, record)])),
    ...rows.waits.map(waitEvent),
  ].filter(({ seq }) => seq <= through)
  const stands = through === run.seq ? standingEvent(definition, run) : null
  if (stands !== null) placed.push({ seq: run.seq, at: run.updatedAt, rank: 3, path: "", attempt: 0, event: stands })
  placed.sort(byPlace)
  return placed.map(({ at, event, seq }, index): AnyEvent => {
    const isLastOfSeq = placed[index + 1]?.seq !== seq
    return { seq, isLastOfSeq, at: new Date(at), ...event } as AnyEvent
  })
}

/** The events of a run after a seq, until it is final. */
export const pullOf = (
  store: CheckpointStoreService,
  { definition, plan }: { readonly definition: Definition; readonly plan: Plan },
  key: RunKey,
  fromSeq: number,
): Pull<AnyEvent, RunNotFound | StoreError | InvalidValue> => {
  const program = programOf(definition, plan)
  let after = fromSeq
  let run: RunOutcome | null = null
  let askedAt = Number.NEGATIVE_INFINITY
  if (!Number.isSafeInteger(fromSeq) || fromSeq < 0) {
    const problem = `expected a whole number from 0 up, got ${String(fromSeq)}`
    return Effect.fail(new InvalidValue({ place: "fromSeq", field: "", reason: "SchemaMismatch", problem }))
  }
  return Effect.gen(function* () {
    for (;;) {
      if (run === null || after >= run.seq) {
        if (run !== null && finalStatuses.has(run.status)) return null
        run = yield* untilBeyond(store, key, after, askedAt)
        askedAt = processMs(yield* Effect.clock)
        if (after >= run.seq) return null
      }
      const { rows, through } = yield* wholeSeqs(store, key, after, run.seq, pageRows)
      after = through
      const events = eventsOf(definition, program, rows, through, run)
      if (events.length > 0) return events
    }
  })
}
