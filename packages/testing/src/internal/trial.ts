/**
 * One run under one schedule: workers that are struck where the schedule says, others that take over, until the run is
 * final or parked; then the judge. Nothing here waits for real time unless the store's clock is real.
 */
import { Cairn, CheckpointStore, type CheckpointStoreService, type RunRecord } from "@cairn/core"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import * as EffectSchedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import { Findings, type Finding } from "./findings.js"
import { handlersOf, Sends } from "./handlers.js"
import { Correspondents, type Says } from "./correspondents.js"
import { eyesOf } from "./eyes.js"
import {
  effectsByOperation,
  stepEffects,
  type Baseline,
  type End,
  type RunEvidence,
  type StepEffects,
} from "./evidence.js"
import { judge, mayPark } from "./judge.js"
import { ask, type Invariant } from "./invariant.js"
import { inTransaction, MortalWorker } from "./mortalWorker.js"
import { answerFor } from "./person.js"
import { SimulatedProvider, type Answer } from "./provider.js"
import { showSchedule, type Boundary, type Schedule } from "./schedule.js"
import { Striker } from "./striker.js"
import { nodeAt, type Subject } from "./subject.js"
import { Tampering } from "./tampering.js"
import { RunLogs, watched } from "./watchedStore.js"

/** How often things are looked at, and how long they may take, in milliseconds. */
export interface Pace {
  readonly leaseMs: number
  readonly pollMs: number
  readonly firstLookMs: number
  readonly lastLookMs: number
  /** Longest time of a run without trouble. */
  readonly limitMs: number
}

export interface TrialOptions {
  readonly subject: Subject
  readonly input: unknown
  readonly namespace: string
  readonly store: CheckpointStoreService
  /** Handlers and services of this run. */
  readonly needs: (provider: SimulatedProvider) => Effect.Effect<Context.Context<any>, unknown, Scope.Scope>
  readonly countedByHandlers: boolean
  readonly simulate: Answer | null
  readonly invariant: Invariant | null
  readonly says: Says
  readonly seed: number
  readonly sameClock: boolean
  readonly sameResult: boolean
  readonly sameEnd: boolean
  readonly pace: Pace
  readonly baseline: Baseline | null
}

export interface Trial {
  readonly schedule: Schedule
  /** Whether every trouble has struck. */
  readonly complete: boolean
  /** What was reached since the last trouble. */
  readonly trace: ReadonlyArray<Boundary>
  readonly findings: ReadonlyArray<Finding>
  readonly end: End
  readonly steps: ReadonlyArray<StepEffects>
  readonly effects: ReadonlyMap<string, number>
  /** How often it has waited for a person. */
  readonly parked: number
  /** By the clock of the trial. */
  readonly durationMs: number
}

export const runId = "explored"
const final: ReadonlySet<string> = new Set(["completed", "failed", "canceled"])

/** What may pass is waited out: a shared database may be busy. */
const patiently = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A> =>
  Effect.orDie(Effect.retry(effect, { times: 20, schedule: EffectSchedule.spaced("50 millis") }))

/** The explored run and all that it has started, as they stand. */
const look = ({ logs, options: { namespace, store } }: Pick<UnderWay, "logs" | "options">) =>
  Effect.forEach([...logs.byRun.keys()], (each) => patiently(store.findRun(namespace, each)))

/** One schedule under way. */
interface UnderWay {
  readonly options: TrialOptions
  readonly schedule: Schedule
  readonly findings: Findings
  readonly logs: RunLogs
  readonly correspondents: Correspondents
  readonly provider: SimulatedProvider
  /** As clients reach it. */
  readonly store: CheckpointStoreService
  readonly striker: Striker
  readonly workers: Array<MortalWorker>
  readonly startWorker: Effect.Effect<void>
  /** Keys that had an intent when it was asked to be canceled, before it had ended. */
  readonly canceled: { at: number | null }
  parked: number
}

/** Each trouble leaves one outcome unknown at most; a run that is parked for ever is another matter. */
const mostAnswers = 10

/** Answers for a run that is parked with need; false if it stays parked. */
const attended = (trial: UnderWay, run: RunRecord): Effect.Effect<boolean> =>
  Effect.gen(function* () {
    const { logs, options, schedule, striker, store } = trial
    const { part, paths } = logs.of(run.runId)!
    const { effects: intents } = yield* patiently(store.loadOpen(run.namespace, run.runId, [...paths]))
    const needed = mayPark({ subject: options.subject, schedule }, run, intents)
    if (!needed || options.baseline === null || trial.parked >= mostAnswers) return false
    trial.parked++
    // Who stalled until another has done what it could: that one is done for now.
    striker.wakeUp(run, true)
    yield* Effect.sleep(options.pace.lastLookMs)
    yield* Effect.orDie(answerFor({ ...trial, workflow: part.workflow }, run))
    return true
  })

/** Runs until all runs are over; false if they never are. */
const watch = (trial: UnderWay, limitMs: number): Effect.Effect<boolean> =>
  Effect.gen(function* () {
    const { options, striker, workers, startWorker } = trial
    const { pace } = options
    const startedAt = yield* Clock.currentTimeMillis
    for (let lookMs = pace.firstLookMs; ; lookMs = Math.min(pace.lastLookMs, lookMs * 2)) {
      yield* Effect.sleep(lookMs)
      const runs = yield* look(trial)
      striker.wakeUp(runs[0]!, false)
      if (runs.every(({ status }) => final.has(status))) return true
      for (const run of runs) {
        if (run.status === "review" && run.parked !== null && !(yield* attended(trial, run))) return true
      }
      if ((yield* Clock.currentTimeMillis) - startedAt > limitMs) return false
      if (!workers.some(({ state }) => state === "alive")) yield* startWorker
    }
  })

/** Lets those that wake after the end do what they will: it must change nothing. */
const settle = (trial: UnderWay): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { options, striker, workers } = trial
    const { pace } = options
    const woken = striker.stalled.size > 0
    striker.wakeUp((yield* look(trial))[0]!, true)
    const busy = Effect.map(
      Effect.forEach(
        workers.filter(({ state }) => state === "alive"),
        ({ running }) => running,
      ),
      (running) => running.some((ids) => ids.length > 0),
    )
    if (woken) yield* Effect.sleep(pace.leaseMs)
    for (let looks = 0; looks < 100 && (yield* busy); looks++) yield* Effect.sleep(pace.lastLookMs)
    yield* trial.correspondents.tooLate
  })

/** Asks that the run be canceled, as anybody could: a transaction that holds the database is not waited for. */
const canceling = (store: CheckpointStoreService, namespace: string, logs: RunLogs, canceled: UnderWay["canceled"]) =>
  Effect.flatMap(FiberRef.get(inTransaction), (held) => {
    const ask = patiently(Effect.provideService(Cairn.cancel({ namespace, runId }), CheckpointStore, store)).pipe(
      Effect.tap((asked) => Effect.sync(() => (canceled.at = asked ? logs.keys : null))),
      Effect.uninterruptible,
    )
    return held ? Effect.asVoid(Effect.forkDaemon(ask)) : Effect.asVoid(ask)
  })

/** Everything that one schedule needs, its run started. */
const begun = (options: TrialOptions, schedule: Schedule, logs: RunLogs, findings: Findings) =>
  Effect.gen(function* () {
    const { subject, namespace, pace } = options
    const tamper = yield* Tampering
    const store = watched(options.store, logs)
    const provider = new SimulatedProvider(subject.operations)
    const given = yield* options.needs(provider)
    const canceled = { at: null }
    const eyes = eyesOf(subject, logs, findings)
    const striker = new Striker(schedule, eyes, canceling(store, namespace, logs, canceled))
    const salt = `${options.seed} ${showSchedule(schedule)}`
    const correspondents = yield* Correspondents.make({ namespace, logs, store, findings, says: options.says, salt })
    const workers: Array<MortalWorker> = []
    const handlers = {
      ...{ namespace, logs, members: subject.members },
      ...{ store, findings, sends: new Sends(), provider, sameClock: options.sameClock },
      ...{ countedByHandlers: options.countedByHandlers, simulate: options.simulate, tamper },
    }
    const workerOptions = {
      ...{ workflows: [subject.workflow], namespace, drain: 0 },
      // More than one where runs start others.
      ...{ concurrency: subject.parts.size === 1 ? 1 : 4, maxRecoveries: 1_000 },
      // However long nothing comes: what is explored is not how long an idle worker rests.
      ...{ lease: pace.leaseMs, pollInterval: pace.pollMs, maxPollInterval: pace.pollMs },
    }
    const startWorker = Effect.suspend(() => {
      const worker = new MortalWorker(tamper)
      workers.push(worker)
      return worker.start(store, workerOptions, handlersOf(handlers, worker, given), striker)
    })
    yield* Effect.provideService(
      Cairn.start(subject.workflow, options.input, { runId, namespace }),
      CheckpointStore,
      store,
    )
    yield* startWorker
    const underWay: UnderWay = {
      options,
      schedule,
      findings,
      logs,
      correspondents,
      provider,
      store,
      striker,
      workers,
      startWorker,
      canceled,
      parked: 0,
    }
    return underWay
  })

const withCounts = (
  steps: ReadonlyArray<StepEffects>,
  counted: ReadonlyMap<string, number>,
  subject: Subject,
): ReadonlyArray<StepEffects> => [
  ...steps,
  ...[...counted].map(([step, effects]) => ({
    ...{ runId, path: nodeAt(subject, step)?.path ?? step },
    ...{ requests: 0, effects },
  })),
]

/** What the store holds of every run in the end. */
const evidenceOf = ({ logs, options: { namespace }, store }: UnderWay) =>
  Effect.forEach([...logs.byRun], ([each, log]) =>
    Effect.gen(function* () {
      const state = yield* patiently(store.load(namespace, each))
      const { effects: intents } = yield* patiently(store.loadOpen(namespace, each, [...log.paths]))
      if (log.part.isFlat) return { runId: each, log, state, steps: state.steps, waits: [], intents }
      const { scopes } = log
      const order = { newestFirst: false, after: null, limit: null, withResults: true }
      const steps = yield* patiently(store.loadSteps({ namespace, runId: each, scopes, ...order }))
      const { waits } = yield* patiently(store.loadWaits(namespace, each))
      return { runId: each, log, state, steps, waits, intents } satisfies RunEvidence
    }),
  )

/** Runs one schedule and judges it. */
export const runTrial = (options: TrialOptions, schedule: Schedule): Effect.Effect<Trial, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const { subject, namespace, pace, baseline, sameEnd, sameResult, invariant } = options
    const findings = new Findings()
    const logs = new RunLogs(subject, findings)
    const trial = yield* begun(options, schedule, logs, findings)
    const { correspondents, striker, workers, provider } = trial
    const startedAt = yield* Clock.currentTimeMillis
    // Each trouble may cost a lease, the wait for an operation that may be under way, and a few retries.
    const perTrouble = 4 * pace.leaseMs + 4 * subject.longestTimeoutMs + 60_000
    const ended = yield* watch(trial, pace.limitMs + schedule.length * perTrouble)
    const durationMs = (yield* Clock.currentTimeMillis) - startedAt
    if (ended) yield* settle(trial)
    const runs = yield* evidenceOf(trial)
    const { state } = runs.find((run) => run.runId === runId)!
    const failure = workers.find((worker) => worker.failure !== null)?.failure
    if (failure !== undefined && schedule.length === 0 && !ended) return yield* Effect.fail(failure)
    const end = judge({
      ...{ subject, state, runs, provider, logs, findings, schedule, baseline, sameEnd, sameResult },
      ...{ stuck: !ended, canceledAt: trial.canceled.at, sameClock: options.sameClock },
    })
    correspondents.judge()
    const run = { namespace, runId, status: state.run.status, run: state.run, schedule, provider }
    const counted = invariant === null ? new Map() : yield* ask(invariant, options.store, findings, run)
    yield* correspondents.end
    yield* Effect.forEach(workers, ({ end: ending }) => ending, { discard: true })
    const steps = withCounts(stepEffects(provider, runs), counted, subject)
    return {
      ...{ schedule, complete: striker.struck === schedule.length, trace: striker.trace, findings: findings.all, end },
      ...{ steps, effects: effectsByOperation(provider), parked: trial.parked, durationMs },
    }
  })
