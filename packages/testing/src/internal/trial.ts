/**
 * One run under one schedule: workers that are struck where the schedule says, others that take over, until the run is
 * final or parked; then the judge. Nothing here waits for real time unless the store's clock is real.
 */
import { Cairn, CheckpointStore, type AnyWorkflow, type CheckpointStoreService, type RunRecord } from "@cairn/core"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as EffectSchedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import { Findings, type Finding } from "./findings.js"
import { handlersOf, Sends } from "./handlers.js"
import { effectsByOperation, judge, stepEffects, type Baseline, type End, type StepEffects } from "./judge.js"
import { MortalWorker, type Boundaries } from "./mortalWorker.js"
import { SimulatedProvider, type Answer } from "./provider.js"
import { Counter, type Boundary, type Schedule, type Strike } from "./schedule.js"
import type { Subject } from "./subject.js"
import { acknowledged } from "./trouble.js"
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
  /** By the clock of the trial. */
  readonly durationMs: number
}

const runId = "explored"
const over: ReadonlySet<string> = new Set(["completed", "failed", "canceled", "review"])

/** Strikes workers as the schedule says. */
class Striker implements Boundaries {
  private readonly counter = new Counter()
  /** Stalled workers, with the fence under which they stalled once it is known. */
  readonly stalled = new Map<MortalWorker, { readonly until: "takenOver" | "finished"; fence: number | null }>()
  trace: Array<Boundary> = []
  struck = 0

  constructor(private readonly schedule: Schedule) {}

  reached(worker: MortalWorker, point: Boundary["point"], site: { readonly step: string; readonly attempt: number }) {
    const nth = this.counter.next(point, site.step)
    const strike = this.schedule[this.struck]
    const hit = strike?.point === point && strike.step === site.step && strike.nth === nth
    if (hit && !this.atClaim(strike)) this.strike(worker, strike)
    else this.trace.push({ point, step: site.step, attempt: site.attempt, nth })
  }

  claimed(worker: MortalWorker) {
    const nth = this.counter.next("claim", "")
    // At once, not at the next look: the old owner and the new one are then under way together.
    for (const [stalled, { until }] of this.stalled) {
      if (until === "takenOver" && stalled !== worker) this.wake(stalled)
    }
    const strike = this.schedule[this.struck]
    if (strike !== undefined && this.atClaim(strike) && strike.nth === nth) this.strike(worker, strike)
  }

  private atClaim({ trouble, point }: Strike): boolean {
    return trouble === "lostAck" && acknowledged[point] === "claim"
  }

  private strike(worker: MortalWorker, { trouble, point }: Strike): void {
    this.struck++
    this.counter.clear()
    this.trace = []
    switch (trouble) {
      case "kill":
        return worker.stop("killed")
      case "stall":
      case "loseLease":
        this.stalled.set(worker, { until: trouble === "stall" ? "finished" : "takenOver", fence: null })
        return worker.stop("stalled")
      case "lostAck":
        worker.losesAckOf = acknowledged[point] ?? null
        return
      case "lostAnswer":
      case "lostRequest":
        worker.losesOperation = trouble
    }
  }

  /** Wakes who has been taken over from, or everybody once the run has ended. */
  wakeUp(run: RunRecord, ended: boolean): void {
    for (const [worker, stall] of this.stalled) {
      stall.fence ??= run.fence
      if (!ended && (stall.until === "finished" || run.fence <= stall.fence)) continue
      this.wake(worker)
    }
  }

  private wake(worker: MortalWorker): void {
    this.stalled.delete(worker)
    worker.wake()
  }
}

/** What may pass is waited out: a shared database may be busy. */
const patiently = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A> =>
  Effect.orDie(Effect.retry(effect, { times: 20, schedule: EffectSchedule.spaced("50 millis") }))

const look = (store: CheckpointStoreService, namespace: string) => patiently(store.findRun(namespace, runId))

/** Runs until the run is over; false if it never is. */
const watch = (
  options: TrialOptions,
  striker: Striker,
  workers: ReadonlyArray<MortalWorker>,
  startWorker: Effect.Effect<void>,
  limitMs: number,
): Effect.Effect<boolean> =>
  Effect.gen(function* () {
    const { store, namespace, pace } = options
    const startedAt = yield* Clock.currentTimeMillis
    for (let lookMs = pace.firstLookMs; ; lookMs = Math.min(pace.lastLookMs, lookMs * 2)) {
      yield* Effect.sleep(lookMs)
      const run = yield* look(store, namespace)
      striker.wakeUp(run, false)
      if (over.has(run.status)) return true
      if ((yield* Clock.currentTimeMillis) - startedAt > limitMs) return false
      if (!workers.some(({ state }) => state === "alive")) yield* startWorker
    }
  })

/** Lets those that wake after the end do what they will: it must change nothing. */
const settle = (options: TrialOptions, striker: Striker, workers: ReadonlyArray<MortalWorker>): Effect.Effect<void> =>
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

/** Runs one schedule and judges it. */
export const runTrial = (options: TrialOptions, schedule: Schedule): Effect.Effect<Trial, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const { subject, namespace, pace, baseline } = options
    const findings = new Findings()
    const log = new CommitLog(findings)
    const store = watched(options.store, log)
    const provider = new SimulatedProvider(subject.operations)
    const given = yield* options.needs(provider)
    const striker = new Striker(schedule)
    const workers: Array<MortalWorker> = []
    const handlers = {
      ...{ namespace, runId, paths: subject.paths, members: membersOf(subject.workflow) },
      ...{ store, findings, sends: new Sends(log), provider, sameClock: options.sameClock },
      ...{ countedByHandlers: options.countedByHandlers, simulate: options.simulate },
    }
    const workerOptions = {
      ...{ workflows: [subject.workflow], namespace, concurrency: 1, drain: 0, maxRecoveries: 1_000 },
      ...{ lease: pace.leaseMs, pollInterval: pace.pollMs },
    }
    const startWorker = Effect.suspend(() => {
      const worker = new MortalWorker()
      workers.push(worker)
      return worker.start(store, workerOptions, handlersOf(handlers, worker, given), striker)
    })
    yield* Effect.provideService(
      Cairn.start(subject.workflow, options.input, { runId, namespace }),
      CheckpointStore,
      store,
    )
    const startedAt = yield* Clock.currentTimeMillis
    yield* startWorker
    // Each trouble may cost a lease, the wait for an operation that may be under way, and a few retries.
    const perTrouble = 4 * pace.leaseMs + 4 * subject.longestTimeoutMs + 60_000
    const ended = yield* watch(options, striker, workers, startWorker, pace.limitMs + schedule.length * perTrouble)
    const durationMs = (yield* Clock.currentTimeMillis) - startedAt
    if (ended) yield* settle(options, striker, workers)
    const state = yield* patiently(store.load(namespace, runId))
    const { effects: intents } = yield* patiently(store.loadOpen(namespace, runId, subject.paths))
    const failure = workers.find((worker) => worker.failure !== null)?.failure
    if (failure !== undefined && schedule.length === 0) return yield* Effect.fail(failure)
    const { sameResult } = options
    const evidence = { subject, state, intents, provider, log, findings, schedule, stuck: !ended, baseline, sameResult }
    const end = judge(evidence)
    yield* Effect.forEach(workers, ({ end: ending }) => ending, { discard: true })
    return {
      ...{ schedule, complete: striker.struck === schedule.length, trace: striker.trace, findings: findings.all, end },
      ...{ steps: stepEffects(provider, intents), effects: effectsByOperation(provider), durationMs },
    }
  })
