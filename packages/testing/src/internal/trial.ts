/**
 * One run under one schedule: workers that are struck where the schedule says, others that take over, until the run is
 * final or parked; then the judge. Nothing here waits for real time unless the store's clock is real.
 */
import { Cairn, CheckpointStore, type AnyWorkflow, type CheckpointStoreService, type RunRecord } from "@cairn/core"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import * as EffectSchedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import { barrierOf } from "./barrier.js"
import { Findings, type Finding } from "./findings.js"
import { handlersOf, Sends } from "./handlers.js"
import { effectsByOperation, stepEffects, type Baseline, type End, type StepEffects } from "./evidence.js"
import { judge, mayPark } from "./judge.js"
import { ask, type Invariant } from "./invariant.js"
import { inTransaction, MortalWorker } from "./mortalWorker.js"
import { answerFor } from "./person.js"
import { SimulatedProvider, type Answer } from "./provider.js"
import type { Boundary, Schedule } from "./schedule.js"
import { Striker } from "./striker.js"
import type { Subject } from "./subject.js"
import { Tampering } from "./tampering.js"
import { CommitLog, watched } from "./watchedStore.js"

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
  readonly sameClock: boolean
  readonly sameResult: boolean
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

const look = (store: CheckpointStoreService, namespace: string) => patiently(store.findRun(namespace, runId))

/** One schedule under way. */
interface UnderWay {
  readonly options: TrialOptions
  readonly schedule: Schedule
  readonly findings: Findings
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
    const { options, schedule, striker, store } = trial
    const { effects: intents } = yield* patiently(store.loadOpen(run.namespace, runId, options.subject.paths))
    const needed = mayPark({ subject: options.subject, schedule }, run, intents)
    if (!needed || options.baseline === null || trial.parked >= mostAnswers) return false
    trial.parked++
    // Who stalled until another has done what it could: that one is done for now.
    striker.wakeUp(run, true)
    yield* Effect.sleep(options.pace.lastLookMs)
    yield* Effect.orDie(answerFor({ ...trial, workflow: options.subject.workflow }, run))
    return true
  })

/** Runs until the run is over; false if it never is. */
const watch = (trial: UnderWay, limitMs: number): Effect.Effect<boolean> =>
  Effect.gen(function* () {
    const { options, striker, workers, startWorker } = trial
    const { store, namespace, pace } = options
    const startedAt = yield* Clock.currentTimeMillis
    for (let lookMs = pace.firstLookMs; ; lookMs = Math.min(pace.lastLookMs, lookMs * 2)) {
      yield* Effect.sleep(lookMs)
      const run = yield* look(store, namespace)
      striker.wakeUp(run, false)
      if (final.has(run.status)) return true
      if (run.status === "review" && !(yield* attended(trial, run))) return true
      if ((yield* Clock.currentTimeMillis) - startedAt > limitMs) return false
      if (!workers.some(({ state }) => state === "alive")) yield* startWorker
    }
  })

/** Lets those that wake after the end do what they will: it must change nothing. */
const settle = ({ options, striker, workers }: UnderWay): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { store, namespace, pace } = options
    const woken = striker.stalled.size > 0
    striker.wakeUp(yield* look(store, namespace), true)
    const busy = Effect.map(
      Effect.forEach(
        workers.filter(({ state }) => state === "alive"),
        ({ running }) => running,
      ),
      (running) => running.some((ids) => ids.length > 0),
    )
    if (woken) yield* Effect.sleep(pace.leaseMs)
    for (let looks = 0; looks < 100 && (yield* busy); looks++) yield* Effect.sleep(pace.lastLookMs)
  })

const membersOf = ({ definition }: AnyWorkflow) =>
  definition.nodes.flatMap((node) =>
    (node.kind === "perform"
      ? [node.operation, ...(node.compensate === null ? [] : [node.compensate.operation])]
      : node.effects.filter((effect) => effect.kind === "external")
    ).flatMap((operation) => operation.members),
  )

/** Asks that the run be canceled, as anybody could: a transaction that holds the database is not waited for. */
const canceling = (store: CheckpointStoreService, namespace: string, log: CommitLog, canceled: UnderWay["canceled"]) =>
  Effect.flatMap(FiberRef.get(inTransaction), (held) => {
    const ask = patiently(Effect.provideService(Cairn.cancel({ namespace, runId }), CheckpointStore, store)).pipe(
      Effect.tap((asked) => Effect.sync(() => (canceled.at = asked ? log.keys.size : null))),
      Effect.uninterruptible,
    )
    return held ? Effect.asVoid(Effect.forkDaemon(ask)) : Effect.asVoid(ask)
  })

/** Everything that one schedule needs, its run started. */
const begun = (options: TrialOptions, schedule: Schedule, log: CommitLog, findings: Findings) =>
  Effect.gen(function* () {
    const { subject, namespace, pace } = options
    const tamper = yield* Tampering
    const store = watched(options.store, log)
    const provider = new SimulatedProvider(subject.operations)
    const given = yield* options.needs(provider)
    const canceled = { at: null }
    const striker = new Striker(schedule, barrierOf(subject, log, findings), canceling(store, namespace, log, canceled))
    const workers: Array<MortalWorker> = []
    const handlers = {
      ...{ namespace, runId, paths: subject.paths, members: membersOf(subject.workflow) },
      ...{ store, findings, sends: new Sends(log), provider, sameClock: options.sameClock },
      ...{ countedByHandlers: options.countedByHandlers, simulate: options.simulate, tamper },
    }
    const workerOptions = {
      ...{ workflows: [subject.workflow], namespace, concurrency: 1, drain: 0, maxRecoveries: 1_000 },
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
  { nodes }: Subject,
): ReadonlyArray<StepEffects> => [
  ...steps,
  ...[...counted].map(([step, effects]) => ({
    path: nodes.find(({ name }) => name === step)?.path ?? step,
    ...{ requests: 0, effects },
  })),
]

/** Runs one schedule and judges it. */
export const runTrial = (options: TrialOptions, schedule: Schedule): Effect.Effect<Trial, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const { subject, namespace, pace, baseline, sameResult, invariant } = options
    const findings = new Findings()
    const log = new CommitLog(findings)
    const trial = yield* begun(options, schedule, log, findings)
    const { striker, workers, provider, store } = trial
    const startedAt = yield* Clock.currentTimeMillis
    // Each trouble may cost a lease, the wait for an operation that may be under way, and a few retries.
    const perTrouble = 4 * pace.leaseMs + 4 * subject.longestTimeoutMs + 60_000
    const ended = yield* watch(trial, pace.limitMs + schedule.length * perTrouble)
    const durationMs = (yield* Clock.currentTimeMillis) - startedAt
    if (ended) yield* settle(trial)
    const state = yield* patiently(store.load(namespace, runId))
    const { effects: intents } = yield* patiently(store.loadOpen(namespace, runId, subject.paths))
    const failure = workers.find((worker) => worker.failure !== null)?.failure
    if (failure !== undefined && schedule.length === 0 && !ended) return yield* Effect.fail(failure)
    const evidence = {
      ...{ subject, state, intents, provider, log, findings, schedule, baseline, sameResult },
      ...{ stuck: !ended, canceledAt: trial.canceled.at, sameClock: options.sameClock },
    }
    const end = judge(evidence)
    const run = { namespace, runId, status: state.run.status, schedule, provider }
    const counted = invariant === null ? new Map() : yield* ask(invariant, options.store, findings, run)
    yield* Effect.forEach(workers, ({ end: ending }) => ending, { discard: true })
    const steps = withCounts(stepEffects(provider, intents), counted, subject)
    return {
      ...{ schedule, complete: striker.struck === schedule.length, trace: striker.trace, findings: findings.all, end },
      ...{ steps, effects: effectsByOperation(provider), parked: trial.parked, durationMs },
    }
  })
