/** A run in the hands of a client: its result, how it stands, and what has become of it. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Runtime from "effect/Runtime"
import type { AnyWorkflow, failureOfWorkflow, outputOfWorkflow } from "../builder/Workflow.js"
import type { Definition } from "../dsl/Definition.js"
import {
  RunCanceled,
  RunFailed,
  RunParked,
  StoreError,
  type CompileError,
  type InvalidValue,
  type RunNotFound,
} from "../model/Errors.js"
import type { RunCompletion, RunOutcome, RunStatus } from "../model/Records.js"
import { type CheckpointStoreService } from "../store/CheckpointStore.js"
import { ended } from "../store/LocalSignals.js"
import type { EventsOptions, RunEvent } from "./Events.js"
import { pullOf } from "./internal/history.js"
import { liveSource } from "./internal/liveReading.js"
import { iterable, releasing, type Pull } from "./internal/pulling.js"
import { failureOf, outputOf } from "./internal/runEnd.js"
import { hearOver, untilOver } from "./internal/waiting.js"
import type { LiveEvent } from "./LiveOutput.js"

/**
 * Whose events are read, and from where.
 *
 * @category options
 * @since 0.1.0
 */
export interface RunEventsOptions extends EventsOptions {
  readonly runId: string
  readonly namespace?: string
}

/**
 * What a client receives when it waits for a run: the output, a failure that the workflow declares, or how the run
 * ended otherwise.
 *
 * @category models
 * @since 0.1.0
 */
export type ResultError<W extends AnyWorkflow> =
  failureOfWorkflow<W> | RunFailed | RunCanceled | RunParked | RunNotFound | InvalidValue | StoreError

/**
 * Where a run stands, for someone who looks in.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunSnapshot<W extends AnyWorkflow> {
  readonly status: RunStatus
  /** Path of the step that was committed or tried last. */
  readonly cursor: string | null
  /** Set once the run is final or parked. */
  readonly result: Option.Option<Exit.Exit<outputOfWorkflow<W>, ResultError<W>>>
}

/**
 * A started run.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunHandle<W extends AnyWorkflow> {
  readonly namespace: string
  readonly runId: string
  /** False if the run was there already and this start attached to it (law X9). */
  readonly created: boolean
  /**
   * Waits until the run is final.
   *
   * *Errors.* The workflow's declared failures, with their own tags; `RunFailed` for any other failure; `RunCanceled`
   * if it was canceled; `RunParked` if the run waits for a person because something is wrong with it.
   */
  readonly result: Effect.Effect<outputOfWorkflow<W>, ResultError<W>>
  /**
   * Commits of the run so far, those included that its worker has accepted and not yet made durable, where that worker lives
   * in this process. A killed process may take these back.
   */
  readonly seq: Effect.Effect<number, RunNotFound | StoreError>
  /** Commits of the run that are durable. */
  readonly durableSeq: Effect.Effect<number, RunNotFound | StoreError>
  /** Looks once. */
  readonly poll: Effect.Effect<RunSnapshot<W>, RunNotFound | StoreError>
  /**
   * What the run comes to, as it becomes durable, up to its end: for `for await`, or for `Stream.fromAsyncIterable`.
   *
   * *Shape.* Each iteration begins after `fromSeq`. A page is read when somebody asks for an event of it; between two questions
   * nothing runs.
   *
   * *Errors.* Thrown: `StoreError`, `RunNotFound`, `InvalidValue` (`fromSeq`).
   *
   * *Laws.* W2: of what is durable alone. D38: none is missed and none comes twice, whoever was killed meanwhile.
   */
  readonly events: (options?: EventsOptions) => AsyncIterable<RunEvent<W>>
  /**
   * What the run's steps emit while they run (`Live.emit`, `context.emit`), up to the end of the run: what a running attempt has
   * emitted so far first. For `for await`, or for `Stream.fromAsyncIterable`.
   *
   * *Shape.* Nothing of it is durable, and it is of this process alone: where the worker lives in another one, or uses another
   * store object, there is nothing to hear. It goes on while the run waits or is parked: read it beside `result`, or stop. A step that is replayed emits nothing. Each iteration begins anew; who stops early
   * calls `return`, as `for await` does.
   *
   * *Errors.* Thrown: `StoreError`, `RunNotFound`.
   */
  readonly live: () => AsyncIterable<LiveEvent>
}

const endOf = (definition: Definition, run: RunOutcome | RunCompletion): Option.Option<Exit.Exit<any, any>> => {
  switch (run.status) {
    case "completed": {
      return Option.some(
        Either.match(outputOf(definition, run), { onLeft: Exit.fail, onRight: Exit.succeed }) as Exit.Exit<any, any>,
      )
    }
    case "failed":
    case "canceled":
      return Option.some(Exit.fail(failureOf(definition, { ...run, step: run.cursor ?? "" })))
    case "review":
      return run.parked === null
        ? Option.none()
        : Option.some(Exit.fail(new RunParked({ runId: run.runId, ...run.parked })))
    default:
      return Option.none()
  }
}

/** A run that was started so short a time ago, in milliseconds, is not asked for at once. */
const freshMs = 20

/** How a run has ended, as its client receives it. */
type Ended = Exit.Exit<any, any>

const endedAs = (definition: Definition, run: RunOutcome | RunCompletion): Ended =>
  Option.getOrThrow(endOf(definition, run))

/** What is asked for the next events of a run. */
export const pulled = (
  store: CheckpointStoreService,
  { definition, plan }: AnyWorkflow,
  { namespace, runId }: Pick<RunHandle<any>, "namespace" | "runId">,
  { fromSeq = 0 }: EventsOptions,
): Pull<RunEvent<any>, CompileError | InvalidValue | RunNotFound | StoreError> =>
  Either.match(plan, {
    onLeft: (error) => Effect.fail<CompileError | InvalidValue | RunNotFound | StoreError>(error),
    onRight: (plan) => pullOf(store, { definition, plan }, { namespace, runId }, fromSeq),
  })

/** The handle of a run that is there. Of a thousand handles that are held, few ever look: its effects are made when asked for. */
export class Handle<W extends AnyWorkflow> implements RunHandle<W> {
  private readonly startedAt: number

  constructor(
    private readonly store: CheckpointStoreService,
    private readonly workflow: W,
    readonly namespace: string,
    readonly runId: string,
    readonly created: boolean,
    private readonly runtime: Runtime.Runtime<never>,
  ) {
    this.startedAt = created ? performance.now() : Number.NEGATIVE_INFINITY
  }

  private get isFresh(): boolean {
    return performance.now() - this.startedAt < freshMs
  }

  get result(): RunHandle<W>["result"] {
    return Effect.flatMap(
      Effect.suspend(() => untilOver(this.store, this, this.isFresh)),
      (run) => endedAs(this.workflow.definition, run),
    )
  }

  /** Tells how the run has ended, to who is no fiber, unless the function that it gives is called before. */
  hearEnd(hear: (end: Ended) => void): () => void {
    return hearOver(this.store, this.runtime, this, this.isFresh, (end) =>
      hear(Exit.flatMap(end, (run) => endedAs(this.workflow.definition, run))),
    )
  }

  get seq(): RunHandle<W>["seq"] {
    return Effect.suspend(() => {
      const underWay = this.store.signals.underWay.get(ended(this.namespace, this.runId))
      return underWay === undefined ? this.durableSeq : Effect.succeed(underWay.acceptedSeq)
    })
  }

  get durableSeq(): RunHandle<W>["durableSeq"] {
    return Effect.map(this.store.findRun(this.namespace, this.runId), ({ seq }) => seq)
  }

  get poll(): RunHandle<W>["poll"] {
    return Effect.map(this.store.findRun(this.namespace, this.runId), (run) => ({
      status: run.status,
      cursor: run.cursor,
      result: endOf(this.workflow.definition, run),
    }))
  }

  get events(): RunHandle<W>["events"] {
    return (options = {}) =>
      iterable(() => pulled(this.store, this.workflow, this, options), Runtime.runFork(this.runtime))
  }

  get live(): RunHandle<W>["live"] {
    return () => releasing(liveSource(Effect.succeed({ store: this.store, run: this })), Runtime.runFork(this.runtime))
  }
}
