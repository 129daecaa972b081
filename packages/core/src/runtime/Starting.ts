/** How a client comes by a run: it starts it, now or later, attaches to it, has it tried again, or forks it. */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { randomUUID } from "node:crypto"
import type { AnyWorkflow, givenOfWorkflow } from "../builder/Workflow.js"
import { durationMs } from "../dsl/OnUnknown.js"
import { codecOf } from "../model/Codec.js"
import { RunConflict, StoreError, type CompileError, type InvalidId, type InvalidValue } from "../model/Errors.js"
import { checkId, defaultNamespace, fingerprint } from "../model/Ids.js"
import { canonicalText } from "../model/internal/json.js"
import type { RunRecord } from "../model/Records.js"
import { CheckpointStore, type CheckpointStoreService } from "../store/CheckpointStore.js"
import { runnable } from "../store/LocalSignals.js"
import type { RunEvent } from "./Events.js"
import { timeOf, wrong } from "./internal/asked.js"
import { checkPriority, flowOf } from "./internal/flowOf.js"
import { liveSource } from "./internal/liveReading.js"
import { type Pull } from "./internal/pulling.js"
import { forkRun, retryRun, type ForkOptions, type RunOptions } from "./Lifecycle.js"
import { Handle, pulled, type RunEventsOptions, type RunHandle } from "./RunHandle.js"

/**
 * Which run is meant.
 *
 * *Shape.* `runId`: any text of 1 to 255 characters; starting it twice with the same workflow and input gives the same
 * run. Without it a random one is made. `namespace`: `default` unless given. `startAt`, `delay`: when it begins, by the store's
 * clock (an idle worker may find it a poll later); at once unless given, and where that time has passed. `priority`: a whole
 * number; of what is due the highest is taken first. Unless given it is what the workflow says, or 0.
 *
 * @category options
 * @since 0.1.0
 */
export interface StartOptions {
  readonly runId?: string
  readonly namespace?: string
  readonly startAt?: Date
  readonly delay?: Duration.DurationInput
  readonly priority?: number
}

/**
 * One of many runs that are started at once.
 *
 * @category options
 * @since 0.1.0
 */
export interface StartOne<W extends AnyWorkflow> extends StartOptions {
  readonly input: givenOfWorkflow<W>
}

/**
 * Why a run was not started.
 *
 * @category models
 * @since 0.1.0
 */
export type StartError = RunConflict | InvalidValue | InvalidId | CompileError | StoreError

const conflict = (run: RunRecord, workflow: string, inputHash: string): RunConflict | null => {
  const of = { namespace: run.namespace, runId: run.runId }
  if (run.workflow !== workflow) {
    const problem = `it runs workflow '${run.workflow}', not '${workflow}'`
    return new RunConflict({ ...of, reason: "WorkflowDiffers", problem })
  }
  return run.inputHash === inputHash
    ? null
    : new RunConflict({ ...of, reason: "InputDiffers", problem: "it was started with another input" })
}

/** A hundred years: no clock overflows. */
const longestDelayMs = 100 * 365 * 86_400_000

/** When a run is to begin; null for at once. */
const wakeAtOf = (store: CheckpointStoreService, { delay, startAt }: StartOptions) =>
  Effect.gen(function* () {
    const place = "options of Cairn.start"
    if (startAt === undefined && delay === undefined) return null
    if (startAt !== undefined && delay !== undefined)
      return yield* wrong(place, "", "say `startAt` or `delay`, not both")
    const at = yield* timeOf(place, ".startAt", startAt)
    const ms = delay === undefined ? 0 : durationMs(delay)
    if (!(ms >= 0 && ms <= longestDelayMs))
      return yield* wrong(place, ".delay", "expected a duration of a hundred years at most")
    const now = yield* store.now
    const wakeAt = at ?? now + ms
    return wakeAt <= now ? null : wakeAt
  })

export const start = <W extends AnyWorkflow>(workflow: W, input: givenOfWorkflow<W>, options: StartOptions = {}) =>
  Effect.gen(function* () {
    const store = yield* CheckpointStore
    const plan = yield* workflow.plan
    const namespace = yield* checkId("namespace", options.namespace ?? defaultNamespace)
    const runId = yield* checkId("run id", options.runId ?? randomUUID())
    const gated = yield* codecOf(workflow.definition.input).gate(input, {
      place: `input of workflow '${plan.workflow}'`,
    })
    const flow = yield* flowOf(workflow.definition, gated.value)
    const priority =
      options.priority === undefined ? flow.priority : yield* checkPriority("priority of Cairn.start", options.priority)
    const wakeAt = yield* wakeAtOf(store, options)
    const inputHash = fingerprint(canonicalText(gated.text))
    const { created, run } = yield* store.createRun({
      namespace,
      runId,
      workflow: plan.workflow,
      version: plan.version,
      planHash: plan.hash,
      input: gated.text,
      inputHash,
      parentRunId: null,
      parentPath: null,
      ...flow,
      priority,
      wakeAt,
    })
    const refused = created ? null : conflict(run, plan.workflow, inputHash)
    if (refused !== null) return yield* refused
    yield* store.signals.send(runnable)
    return new Handle(store, workflow, namespace, runId, created, yield* Effect.runtime<never>()) as RunHandle<W>
  })

export const attach = <W extends AnyWorkflow>(
  workflow: W,
  options: { readonly runId: string; readonly namespace?: string },
) =>
  Effect.gen(function* () {
    const store = yield* CheckpointStore
    const namespace = yield* checkId("namespace", options.namespace ?? defaultNamespace)
    const runId = yield* checkId("run id", options.runId)
    const run = yield* store.findRun(namespace, runId)
    const refused = conflict(run, workflow.name, run.inputHash)
    if (refused !== null) return yield* refused
    return new Handle(store, workflow, namespace, runId, false, yield* Effect.runtime<never>()) as RunHandle<W>
  })

export const events = <W extends AnyWorkflow>(workflow: W, options: RunEventsOptions) =>
  Effect.map(attach(workflow, options), (handle) => handle.events(options))

export const live = <W extends AnyWorkflow>(workflow: W, options: RunOptions) =>
  Effect.map(attach(workflow, options), (handle) => handle.live())

/** Live output, attached when somebody asks for the first of it. */
export const attachedLive = (workflow: AnyWorkflow, options: RunOptions) =>
  liveSource(Effect.map(Effect.zip(CheckpointStore, attach(workflow, options)), ([store, run]) => ({ store, run })))

/** Events, attached when somebody asks for the first of them. */
export const attachedPull = (workflow: AnyWorkflow, options: RunEventsOptions) => {
  type Attached = Effect.Effect.Error<ReturnType<typeof attach>> | Effect.Effect.Error<ReturnType<typeof pulled>>
  let pull: Pull<RunEvent<any>, Attached, CheckpointStore> | null = null
  return Effect.suspend(
    () =>
      pull ??
      Effect.flatMap(
        Effect.zip(CheckpointStore, attach(workflow, options)),
        ([store, handle]) => (pull = pulled(store, workflow, handle, options)),
      ),
  )
}

export const startMany = <W extends AnyWorkflow>(workflow: W, runs: ReadonlyArray<StartOne<W>>) =>
  // All at once: the store makes groups of them, each a transaction.
  Effect.forEach(runs, ({ input, ...options }) => Effect.either(start(workflow, input, options)), {
    concurrency: "unbounded",
  })

export const retry = <W extends AnyWorkflow>(workflow: W, options: RunOptions) =>
  Effect.zipRight(retryRun(workflow, options), attach(workflow, options))

/** An id that is in use is taken only for the same thing (X9). */
const otherFork = ({ forkedFrom, namespace, runId }: RunRecord, from: string): RunConflict | null =>
  forkedFrom === from
    ? null
    : new RunConflict({ namespace, runId, reason: "WorkflowDiffers", problem: `it is no fork of run '${from}'` })

export const branchOff = <W extends AnyWorkflow>(workflow: W, options: ForkOptions) =>
  Effect.gen(function* () {
    const store = yield* CheckpointStore
    const { created, inputHash, run } = yield* forkRun(workflow, options)
    const refused = created ? null : (otherFork(run, options.runId) ?? conflict(run, workflow.name, inputHash))
    if (refused !== null) return yield* refused
    return new Handle(
      store,
      workflow,
      run.namespace,
      run.runId,
      created,
      yield* Effect.runtime<never>(),
    ) as RunHandle<W>
  })
