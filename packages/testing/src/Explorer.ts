/**
 * The crash-point explorer: runs a workflow once without trouble, then again and again with trouble at each boundary it
 * reaches, and checks what came of it.
 */
import {
  CheckpointStore,
  MemoryStore,
  type AnyWorkflow,
  type CheckpointStoreService,
  type CompileError,
  type StoreError,
} from "@cairn/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as LogLevel from "effect/LogLevel"
import * as Random from "effect/Random"
import * as RuntimeFlags from "effect/RuntimeFlags"
import * as RuntimeFlagsPatch from "effect/RuntimeFlagsPatch"
import type * as Scope from "effect/Scope"
import { frontier } from "./internal/frontier.js"
import type { Check } from "./internal/findings.js"
import type { ExploredRun, Invariant } from "./internal/invariant.js"
import type { Baseline } from "./internal/evidence.js"
import type { Answer, SimulatedProvider } from "./internal/provider.js"
import { reportOf, Tally, type Report } from "./internal/report.js"
import { agreeing, type Says } from "./internal/correspondents.js"
import { showSchedule, type Schedule } from "./internal/schedule.js"
import { shrink } from "./internal/shrink.js"
import { subjectOf, type Durability, type Subject } from "./internal/subject.js"
import { runId, runTrial, type Pace, type Trial, type TrialOptions } from "./internal/trial.js"
import { troubles as allTroubles, type Trouble } from "./internal/trouble.js"
import { VirtualClock } from "./VirtualClock.js"

/** What a caller may hand to a workflow. */
type givenOf<W> = W extends { readonly _types?: (given: infer G) => unknown } ? G : never

/**
 * What to explore, and how far.
 *
 * *Shape.* `input`: what each run starts with, or a function that is told which run it is for. `handlers`: a layer of handlers, made anew for each run, or a function that gets the simulated provider, for
 * handlers that send their requests to it; operations without one are answered by the provider, with `simulate` or a value
 * of their success schema. `services`: what steps read. `store`: memory unless given; made anew for each run if its clock
 * is Effect's, else once, with a namespace for each run. `depth`: troubles in one schedule (2). `maxSchedules` (1,000):
 * past it a seeded sample is run, those with fewer troubles first. `durability`: instead of what the workflow says, or
 * `barrier`; a run that is taken over again without progress is executed step by step in any case. `sameResult`: whether a run must end with the same
 * output as without trouble (true); say false where a step reads what changes. `sameEnd` (true): whether it must end like that at all;
 * say false where it may be late. `says`: what comes of signals and reviews that it waits for; everything is sent and approved
 * unless given, soon, with values that fit the schemas. `invariant`: a check of your own, asked once
 * a run has ended; with a function as `input` it can tell which rows are this run's.
 *
 * @category options
 * @since 0.1.0
 */
export interface ExploreOptions<W extends AnyWorkflow> {
  readonly input: givenOf<W> | ((run: ExploredRun) => givenOf<W>)
  readonly handlers?: Layer.Layer<any> | ((provider: SimulatedProvider) => Layer.Layer<any>)
  readonly services?: Layer.Layer<any>
  readonly simulate?: Answer
  readonly store?: Layer.Layer<CheckpointStore, StoreError> | (() => Layer.Layer<CheckpointStore, StoreError>)
  /** `virtual`: the store's clock is Effect's, and no real time passes. By default so for stores named `memory`. */
  readonly clock?: "virtual" | "real"
  readonly durability?: Durability
  readonly depth?: number
  readonly maxSchedules?: number
  readonly seed?: number
  readonly troubles?: ReadonlyArray<Trouble>
  readonly sameResult?: boolean
  readonly sameEnd?: boolean
  readonly says?: Says
  readonly invariant?: Invariant
  /** Runs at once, on a store with a clock of its own (4). */
  readonly concurrency?: number
}

/** Nothing waits: leases and polls are as long as in production. Fewer looks are fewer jumps of the clock. */
const virtualPace: Pace = { leaseMs: 12_000, pollMs: 7_000, firstLookMs: 100, lastLookMs: 9_000, limitMs: 7_200_000 }

/** Everybody waits: leases as short as a busy machine allows. */
const realPace: Pace = { leaseMs: 600, pollMs: 40, firstLookMs: 10, lastLookMs: 40, limitMs: 30_000 }

interface Ground {
  readonly virtual: boolean
  readonly name: string
  readonly subject: Subject
  readonly options: ExploreOptions<AnyWorkflow>
  readonly seed: number
  /** For each trial: its store and namespace. */
  readonly place: Effect.Effect<
    { readonly store: CheckpointStoreService; readonly namespace: string },
    StoreError,
    Scope.Scope
  >
}

const storeLayer = ({ store }: ExploreOptions<AnyWorkflow>): Layer.Layer<CheckpointStore, StoreError> =>
  store === undefined ? MemoryStore.layer : typeof store === "function" ? store() : store

const opened = (options: ExploreOptions<AnyWorkflow>) =>
  Effect.map(Layer.build(Layer.fresh(storeLayer(options))), (context) => Context.get(context, CheckpointStore))

const groundOf = (workflow: AnyWorkflow, options: ExploreOptions<AnyWorkflow>) =>
  Effect.gen(function* () {
    const first = yield* opened(options)
    const virtual = options.clock === undefined ? first.capabilities.name === "memory" : options.clock === "virtual"
    // What matters of a long retry is that it is durable; and a real clock cannot be hurried.
    const subject = yield* subjectOf(
      workflow,
      virtual ? { retryMs: 60_000, timeoutMs: null } : { retryMs: 50, timeoutMs: 50 },
      options.durability,
    )
    let places = 0
    const ground: Ground = {
      ...{ virtual, name: first.capabilities.name, subject, options, seed: options.seed ?? 1 },
      place: virtual
        ? Effect.map(opened(options), (store) => ({ store, namespace: "default" }))
        : Effect.sync(() => ({ store: first, namespace: `explored-${++places}-${Date.now().toString(36)}` })),
    }
    return ground
  })

const needsOf =
  ({ handlers, services }: ExploreOptions<AnyWorkflow>): TrialOptions["needs"] =>
  (provider) => {
    const given = typeof handlers === "function" ? handlers(provider) : (handlers ?? Layer.empty)
    return Layer.build(
      Layer.fresh(Layer.merge(given as Layer.Layer<any>, services ?? (Layer.empty as Layer.Layer<any>))),
    )
  }

/** What a run is given is JSON, and no function. */
const inputOf = ({ input }: ExploreOptions<AnyWorkflow>, namespace: string): unknown =>
  typeof input === "function" ? (input as (run: ExploredRun) => unknown)({ namespace, runId }) : input

/** A run under trouble may take a few times as long as one without, and a while; each trouble adds its own. */
const paced = (pace: Pace, baseline: Baseline | null): Pace =>
  baseline === null ? pace : { ...pace, limitMs: Math.min(pace.limitMs, 4 * baseline.durationMs + 300_000) }

/** In a fiber of its own, whose values of fiber refs (stores and services of the trial among them) go with it. */
const apart = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatten(Effect.flatMap(Effect.fork(effect), Fiber.await))

const trialOn = (ground: Ground, baseline: Baseline | null) => (schedule: Schedule) => {
  const { options, virtual, subject, seed } = ground
  const run = Effect.scoped(
    Effect.gen(function* () {
      const { store, namespace } = yield* ground.place
      const trial: TrialOptions = {
        ...{ subject, input: inputOf(options, namespace), namespace, store, baseline, needs: needsOf(options) },
        ...{ countedByHandlers: typeof options.handlers === "function", simulate: options.simulate ?? null },
        ...{ invariant: options.invariant ?? null, says: options.says ?? agreeing, seed },
        ...{
          sameClock: virtual,
          sameResult: options.sameResult ?? true,
          sameEnd: options.sameEnd ?? true,
          pace: paced(virtual ? virtualPace : realPace, baseline),
        },
      }
      return yield* runTrial(trial, schedule)
    }),
  ).pipe(
    Effect.withRandom(Random.make(`${seed} ${showSchedule(schedule)}`)),
    Logger.withMinimumLogLevel(LogLevel.None),
    // Counts of Effect's own fibers, for every one of them.
    Effect.withRuntimeFlagsPatch(RuntimeFlagsPatch.disable(RuntimeFlags.RuntimeMetrics)),
    // What the explorer cannot even run is a mistake in what it was given.
    Effect.orDie,
  )
  return apart(virtual ? VirtualClock.run(run) : run)
}

/** On a busy machine a lease may end by itself. */
const mostFirstRuns = 5

/** The run without trouble: on a real clock one that nothing else has troubled, either, if there is one. */
const firstTrial = (ground: Ground) =>
  Effect.repeat(trialOn(ground, null)([]), {
    until: ({ findings, end }) => ground.virtual || (findings.length === 0 && !end.text.includes("OutcomeUnknown")),
    times: mostFirstRuns - 1,
  })

/** Runs what the frontier gives, level by level. */
const runLevels = (ground: Ground, first: Trial, baseline: Baseline) =>
  Effect.gen(function* () {
    const { options, virtual, subject, seed } = ground
    const run = trialOn(ground, baseline)
    const tally = new Tally(subject)
    tally.add(first)
    const most = options.maxSchedules ?? 1_000
    let level: ReadonlyArray<Trial> = first.findings.length > 0 ? [] : [first]
    let possible = 1
    for (let depth = 1; depth <= (options.depth ?? 2) && level.length > 0 && tally.schedules < most; depth++) {
      const next = frontier(subject, level, options.troubles ?? allTroubles, most - tally.schedules, seed + depth)
      possible += next.possible
      level = yield* Effect.forEach(
        next.schedules,
        (schedule) => Effect.tap(run(schedule), (trial) => Effect.sync(() => tally.add(trial))),
        { concurrency: virtual ? 1 : (options.concurrency ?? 4) },
      )
    }
    return { tally, possible, run }
  })

/**
 * Explores a workflow.
 *
 * *Errors.* `CompileError`: the workflow. `StoreError`: the store can't be opened. What goes wrong within the explored
 * runs is in the report.
 *
 * @example
 * ```ts
 * import { OnUnknown, Operation, Workflow } from "@cairn/core"
 * import { explore } from "@cairn/testing"
 * import { Effect, Schema } from "effect"
 *
 * const Charge = Operation.make("payments.charge", {
 *   payload: Schema.Struct({ cents: Schema.Int }),
 *   success: Schema.Struct({ id: Schema.String }),
 *   onUnknown: OnUnknown.retryWithKey({ keyWindow: "24 hours" }),
 * })
 * const pay = Workflow.make("pay", { version: 1, input: Schema.Int })
 *   .perform("charge", Charge, { payload: ({ input }) => ({ cents: input }) })
 *   .compile()
 *
 * const report = await Effect.runPromise(explore(pay, { input: 100, maxSchedules: 40 }))
 * report.breaches
 * // => []
 * report.schedules
 * // => 40
 * ```
 *
 * @category exploring
 * @since 0.1.0
 */
export const explore = <W extends AnyWorkflow>(
  workflow: W,
  options: ExploreOptions<W>,
): Effect.Effect<Report, CompileError | StoreError> =>
  Effect.gen(function* () {
    const startedAt = process.hrtime.bigint()
    const ground = yield* groundOf(workflow, options as ExploreOptions<AnyWorkflow>)
    const first = yield* firstTrial(ground)
    const baseline: Baseline = { end: first.end, effects: first.effects, durationMs: first.durationMs }
    const { tally, possible, run } = yield* runLevels(ground, first, baseline)
    const shortest = new Map<Check, Trial>()
    for (const [check, { trial }] of tally.firsts) shortest.set(check, yield* shrink(trial, check, run))
    const elapsedMs = Number((process.hrtime.bigint() - startedAt) / 1_000_000n)
    return reportOf({
      subject: ground.subject,
      store: ground.name,
      seed: ground.seed,
      tally,
      possible,
      shortest,
      elapsedMs,
    })
  }).pipe(Effect.scoped)

/**
 * Explores a workflow, in promise style.
 *
 * @category exploring
 * @since 0.1.0
 */
export const exploreAsync = <W extends AnyWorkflow>(workflow: W, options: ExploreOptions<W>): Promise<Report> =>
  Effect.runPromise(explore(workflow, options))

/**
 * Explores a workflow and throws if anything is wrong: one line in a test.
 *
 * *Errors.* Rejects with the table and, for each kind of breach, the shortest schedule that shows it.
 *
 * @example
 * ```ts
 * import { Workflow } from "@cairn/core"
 * import { expectNoBreach } from "@cairn/testing"
 * import { Schema } from "effect"
 *
 * const double = Workflow.make("double", { version: 1, input: Schema.Number })
 *   .step("twice", { effects: [], output: Schema.Number }, ({ input }) => input * 2)
 *   .output(Schema.Number, ({ results }) => results.twice)
 *   .compile()
 *
 * const { breaches } = await expectNoBreach(double, { input: 21, maxSchedules: 20 })
 * breaches.length
 * // => 0
 * ```
 *
 * @category exploring
 * @since 0.1.0
 */
export const expectNoBreach = async <W extends AnyWorkflow>(
  workflow: W,
  options: ExploreOptions<W>,
): Promise<Report> => {
  const report = await exploreAsync(workflow, options)
  if (report.breaches.length > 0) throw new Error(`A crash can break a promise.\n\n${report.table}`)
  return report
}
