/**
 * What people do with runs that are there: pause them, let them go on, try them again, fork them.
 *
 * - X5: nothing that was taken back is done as if it had not been: such a run is not tried again.
 * - X4: what a fork would do outside a second time is named before there is a fork, and is done only if somebody says so.
 */
import * as Effect from "effect/Effect"
import { randomUUID } from "node:crypto"
import type { AnyWorkflow } from "../builder/Workflow.js"
import { compensationPath, isCompensationPath } from "../dsl/internal/compensation.js"
import {
  ForkRefused,
  RetryRefused,
  RunConflict,
  RunNotFound,
  type ErrorDetails,
  type RepeatedEffect,
  type StoreError,
} from "../model/Errors.js"
import { checkId, defaultNamespace } from "../model/Ids.js"
import type { RunRecord } from "../model/Records.js"
import type { PerformedRow } from "../store/CheckpointDriver.js"
import { CheckpointStore, type CheckpointStoreService } from "../store/CheckpointStore.js"
import { runnable } from "../store/LocalSignals.js"
import { known, wrong } from "./internal/asked.js"
import { childrenOf } from "./internal/childrenOf.js"
import { instanceOf, listScope, prefixOf, scopeOf } from "./internal/paths.js"
import { nodeAt } from "./internal/planIndex.js"

/**
 * Which run is meant. `namespace`: `default` unless given.
 *
 * @category options
 * @since 0.1.0
 */
export interface RunOptions {
  readonly runId: string
  readonly namespace?: string
}

/**
 * What is forked, and how.
 *
 * *Shape.* `step`: the path from which on the fork goes its own way; that step is the first that it does itself. `newRunId`: a
 * random one unless given. `effects`: what becomes of operations and transactions that the original did from there on. `refuse`
 * (unless given): nothing is created if there are any. `reuse`: their recorded results are taken over, and they are not done again.
 * `newKeys`: the fork does them itself, under its own keys.
 *
 * @category options
 * @since 0.1.0
 */
export interface ForkOptions extends RunOptions {
  readonly step: string
  readonly newRunId?: string
  readonly effects?: "refuse" | "reuse" | "newKeys"
}

const runOf = (options: RunOptions) =>
  Effect.gen(function* () {
    const namespace = yield* checkId("namespace", options.namespace ?? defaultNamespace)
    return { namespace, runId: yield* checkId("run id", options.runId) }
  })

// ---- pausing ---------------------------------------------------------------------------------------------------

export const pause = (options: RunOptions) =>
  Effect.gen(function* () {
    const store = yield* CheckpointStore
    const { namespace, runId } = yield* runOf(options)
    const result = yield* store.setPaused(namespace, runId, true)
    if (result === "Missing") return yield* new RunNotFound({ namespace, runId })
    return result !== "Ended"
  })

export const resume = (options: RunOptions) =>
  Effect.gen(function* () {
    const store = yield* CheckpointStore
    const { namespace, runId } = yield* runOf(options)
    const went = (yield* store.setPaused(namespace, runId, false)) === "Done"
    const unparked = yield* store.unpark(namespace, runId)
    if (unparked) yield* store.signals.send(runnable)
    return went || unparked
  })

// ---- children --------------------------------------------------------------------------------------------------

/** Whether something stands in the records that says what became of a path: its own, or that of something around it. */
const isOver = (store: CheckpointStoreService, namespace: string, runId: string, path: string) =>
  Effect.gen(function* () {
    const ends = new Set([path])
    const scopes = new Set([scopeOf(prefixOf(path))])
    for (let at = scopeOf(prefixOf(path)); at !== ""; at = scopeOf(prefixOf(at))) {
      const { container } = instanceOf(at)!
      ends.add(at).add(container)
      scopes.add(listScope(container)).add(scopeOf(prefixOf(container)))
    }
    const query = { newestFirst: false, after: null, limit: null, withResults: false }
    const steps = yield* store.loadSteps({ namespace, runId, scopes: [...scopes], ...query })
    // The record of a turn is that of its beginning.
    return steps.some((step) => ends.has(step.path) && step.effect !== "turn")
  })

// ---- trying again ----------------------------------------------------------------------------------------------

const retried: ErrorDetails = {
  name: "Retried",
  message: "a person has had the failed run tried again",
  tag: "Retried",
  stack: null,
  cause: null,
}

type Failed = Pick<RunRecord, "namespace" | "runId" | "status" | "seq" | "failure" | "cursor">

const notFailed = ({ namespace, runId, status }: Failed) =>
  new RetryRefused({ namespace, runId, reason: "NotFailed", problem: `it is ${status}` })

/** The runs that have to go on for this one to get further, itself last; each is one that can. */
const planRetry = (
  store: CheckpointStoreService,
  run: Failed,
): Effect.Effect<ReadonlyArray<Failed>, RetryRefused | RunNotFound | StoreError> =>
  Effect.gen(function* () {
    const { namespace, runId } = run
    const refused = (reason: RetryRefused["reason"], problem: string) =>
      new RetryRefused({ namespace, runId, reason, problem })
    if (run.status !== "failed") return yield* notFailed(run)
    const performed = yield* store.loadPerformed(namespace, runId)
    const undone = performed.find(({ path }) => isCompensationPath(path))
    if (undone !== undefined) return yield* refused("Compensated", `'${undone.path}' has taken back what it had done`)
    const first: Array<Failed> = []
    for (const child of yield* childrenOf(store, run, ["failed", "canceled"])) {
      // What the run has got over does not keep it from going on.
      if (yield* isOver(store, namespace, runId, child.parentPath ?? "")) continue
      if (child.status === "canceled") {
        return yield* refused("ChildCanceled", `its child '${child.runId}' at '${child.parentPath}' was canceled`)
      }
      first.push(...(yield* planRetry(store, { ...child, ...(yield* child.why) })))
    }
    return [...first, run]
  })

const reopen = (store: CheckpointStoreService, run: Failed) =>
  Effect.gen(function* () {
    const { namespace, runId, seq } = run
    const path = run.failure?.step ?? run.cursor ?? ""
    const { attempts } = yield* store.loadOpen(namespace, runId, [path])
    const attempt = {
      attempt: (attempts.at(-1)?.attempt ?? 0) + 1,
      kind: "retried",
      error: retried,
      output: null,
    } as const
    return yield* store.reopenRun({ namespace, runId, seq, path, attempt })
  })

const otherWorkflow = (run: RunRecord, plan: { readonly workflow: string; readonly version: number }) =>
  new RunConflict({
    namespace: run.namespace,
    runId: run.runId,
    reason: "WorkflowDiffers",
    problem: `it runs '${run.workflow}' version ${run.version}, not '${plan.workflow}' version ${plan.version}`,
  })

/** Reopens a failed run, what it needs before it: a crash between the two leaves a retry that only has to be asked for again. */
export const retryRun = (workflow: AnyWorkflow, options: RunOptions) =>
  Effect.gen(function* () {
    const store = yield* CheckpointStore
    const plan = yield* workflow.plan
    const { namespace, runId } = yield* runOf(options)
    const run = yield* store.findRun(namespace, runId)
    if (run.workflow !== plan.workflow || run.version !== plan.version) return yield* otherWorkflow(run, plan)
    for (const each of yield* planRetry(store, run)) {
      // A child that somebody else has reopened meanwhile is under way: that is all that is asked of it.
      if (!(yield* reopen(store, each)) && each === run) return yield* notFailed(yield* store.findRun(namespace, runId))
    }
  })

// ---- forking ---------------------------------------------------------------------------------------------------

/** From which commit on the fork goes its own way: that of the step, or, where none is, whatever comes next. */
const pointOf = (store: CheckpointStoreService, run: RunRecord, step: string) =>
  Effect.gen(function* () {
    const { namespace, runId } = run
    const instance = instanceOf(step)
    const own = instance === null ? scopeOf(prefixOf(step)) : listScope(instance.container)
    const query = { newestFirst: false, after: null, limit: null, withResults: false }
    const steps = yield* store.loadSteps({ namespace, runId, scopes: [own], ...query })
    return steps.find(({ path }) => path === step)?.seq ?? run.seq + 1
  })

const shown = (runId: string, { idempotencyKey, isKnown, kind, operation, path }: PerformedRow): RepeatedEffect => ({
  runId,
  path,
  operation: operation ?? kind,
  idempotencyKey,
  isKnown,
})

/** Everything that a child has done, its own children included: a fork starts another child, which does it again. */
const doneByChildren = (
  store: CheckpointStoreService,
  run: { readonly namespace: string; readonly runId: string },
  kept: ReadonlySet<string>,
): Effect.Effect<ReadonlyArray<RepeatedEffect>, RunNotFound | StoreError> =>
  Effect.gen(function* () {
    const found: Array<RepeatedEffect> = []
    for (const child of yield* childrenOf(store, run, null)) {
      if (kept.has(child.parentPath ?? "")) continue
      const performed = yield* store.loadPerformed(child.namespace, child.runId)
      found.push(...performed.filter(({ kind }) => kind !== "child").map((row) => shown(child.runId, row)))
      found.push(...(yield* doneByChildren(store, child, new Set())))
    }
    return found
  })

const listed = (effects: ReadonlyArray<RepeatedEffect>): string =>
  effects.map(({ operation, path, runId }) => `'${operation}' of '${path}' (run '${runId}')`).join(", ")

/** What the fork is given of its source's operations; refused where something would be done twice that nobody asked for. */
const effectsOf = (store: CheckpointStoreService, run: RunRecord, beforeSeq: number, how: ForkOptions["effects"]) =>
  Effect.gen(function* () {
    const { namespace, runId } = run
    const refused = (reason: ForkRefused["reason"], effects: ReadonlyArray<RepeatedEffect>, problem: string) =>
      new ForkRefused({ namespace, runId, reason, effects, problem: `${problem}: ${listed(effects)}` })
    const all = yield* store.loadPerformed(namespace, runId)
    const performed = all.filter(({ path }) => !isCompensationPath(path))
    const paths = new Set(all.map(({ path }) => path))
    const takenBack = ({ path }: PerformedRow): boolean => paths.has(compensationPath(path))
    const kept = performed.filter(({ seq }) => seq !== null && seq < beforeSeq)
    // X5: what the fork would build on is not there any more.
    const undone = kept.filter(takenBack).map((row) => shown(runId, row))
    if (undone.length > 0) return yield* refused("Compensated", undone, "these were taken back, fork before them")
    if (how === "newKeys") return []
    const own = performed.filter((row) => row.kind !== "child" && !kept.includes(row))
    const reusable = (row: PerformedRow) =>
      how === "reuse" && row.kind === "operation" && row.isKnown && !takenBack(row)
    const again = [
      ...own.filter((row) => !reusable(row)).map((row) => shown(runId, row)),
      ...(yield* doneByChildren(store, run, new Set(kept.map(({ path }) => path)))),
    ]
    if (again.length === 0) return own.map(({ path }) => path)
    return yield* how === "reuse"
      ? refused("NotReusable", again, "there is no result of these that it could go on with")
      : refused("EffectsWouldRepeat", again, 'it would do these again, unless you say `effects: "reuse"`')
  })

export const forkRun = (workflow: AnyWorkflow, options: ForkOptions) =>
  Effect.gen(function* () {
    const place = "options of Cairn.fork"
    yield* known(place, options, ["runId", "namespace", "step", "newRunId", "effects"])
    const how = options.effects ?? "refuse"
    if (!["refuse", "reuse", "newKeys"].includes(how)) {
      return yield* wrong(place, ".effects", "expected refuse, reuse or newKeys")
    }
    const store = yield* CheckpointStore
    const plan = yield* workflow.plan
    const { namespace, runId } = yield* runOf(options)
    const newRunId = yield* checkId("run id", options.newRunId ?? randomUUID())
    const source = yield* store.findRun(namespace, runId)
    if (source.workflow !== plan.workflow || source.version !== plan.version) return yield* otherWorkflow(source, plan)
    // A turn or an item stands where its loop or `forEach` does.
    if (nodeAt(plan, instanceOf(options.step)?.container ?? options.step) === null) {
      const problem = `'${options.step}' is no step of it`
      return yield* new ForkRefused({ namespace, runId, reason: "UnknownStep", effects: [], problem })
    }
    const beforeSeq = yield* pointOf(store, source, options.step)
    const effects = yield* effectsOf(store, source, beforeSeq, how)
    const { flowKey, input, inputHash, planHash, priority, version } = source
    const { created, run } = yield* store.forkRun({
      run: {
        namespace,
        runId: newRunId,
        workflow: source.workflow,
        version,
        planHash,
        input,
        inputHash,
        parentRunId: null,
        parentPath: null,
        flowKey,
        priority,
        wakeAt: null,
      },
      from: runId,
      beforeSeq,
      effects,
    })
    return { created, inputHash, run }
  })
