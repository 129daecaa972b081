/**
 * Runs that wait for a person, and what a person says of an operation whose outcome is unknown.
 *
 * - X5: the answer settles the intent itself: the run goes on as if the provider had said so.
 * - The generation moves on only by a durable "it did not happen": the operation is then performed under a new key.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { AnyWorkflow } from "../builder/Workflow.js"
import type { Definition, WorkNode } from "../dsl/Definition.js"
import { outputCodec } from "../dsl/internal/outputCodec.js"
import { isOperation, type AnyOperation, type MemberOperation } from "../dsl/Operation.js"
import { isUnparsedText, isUnvalidated } from "../dsl/Output.js"
import {
  AnswerRefused,
  InvalidValue,
  RunConflict,
  type ErrorDetails,
  type ParkReason,
  type StoreError,
} from "../model/Errors.js"
import { checkId, defaultNamespace, fingerprint } from "../model/Ids.js"
import { canonicalText } from "../model/internal/json.js"
import { storableText } from "../model/internal/storableText.js"
import type { Plan } from "../model/Plan.js"
import type { AttemptRecord, EffectRecord, RunRecord } from "../model/Records.js"
import { CheckpointStore, type CheckpointStoreService } from "../store/CheckpointStore.js"
import { runnable } from "../store/LocalSignals.js"
import { acceptedName } from "./internal/accepted.js"
import { templateOf } from "./internal/paths.js"
import { programOf } from "./internal/program.js"

/**
 * An operation of which nobody knows whether it happened.
 *
 * *Shape.* `payload` is the recorded text of what was sent, as JSON. `since` is the time of the first intent.
 *
 * @category models
 * @since 0.1.0
 */
export interface UnknownOperation {
  readonly name: string
  readonly idempotencyKey: string
  readonly payload: string | null
  readonly sends: number
  readonly since: number
}

/**
 * An output that was refused, as it is kept.
 *
 * *Shape.* `raw` is JSON text, of a text as of any other value; null where it had no such form, was too large, or was kept long
 * enough. `issues` says what is wrong with it.
 *
 * @category models
 * @since 0.1.0
 */
export interface RejectedAttempt {
  readonly attempt: number
  readonly raw: string | null
  readonly issues: string
  readonly at: Date
}

/**
 * A run that waits for a person.
 *
 * *Shape.* `since` is when it was parked, in milliseconds since 1970 by the store's clock. `operation` is what can be
 * answered by `Cairn.answer`; null where nothing is unknown: deal with the reason, then `Cairn.resume`. `Unreadable`: why it was
 * parked cannot be read, as `problem` says; its operation is not looked for. `rejected`: what the step has
 * given so far and its schema has refused, in order of the attempts; the last one is what a person looks at before `Cairn.accept`.
 *
 * @category models
 * @since 0.1.0
 */
export interface ParkedRun {
  readonly namespace: string
  readonly runId: string
  readonly workflow: string
  readonly version: number
  readonly reason: ParkReason | "Unreadable"
  readonly step: string
  readonly problem: string
  readonly since: number
  readonly operation: UnknownOperation | null
  readonly rejected: ReadonlyArray<RejectedAttempt>
}

/**
 * Which page of parked runs.
 *
 * *Shape.* In order of run ids. `after`: the last run id of the page before. `limit`: 20 unless given, at most 100.
 *
 * @category options
 * @since 0.1.0
 */
export interface ParkedOptions {
  readonly namespace?: string
  readonly after?: string
  readonly limit?: number
}

/**
 * Which unknown outcome is answered.
 *
 * *Shape.* `step` is the path of the step that the answer is meant for; an answer for another one is refused. Without it
 * the answer is for whatever the run is parked for.
 *
 * @category options
 * @since 0.1.0
 */
export interface AnswerOptions {
  readonly runId: string
  readonly namespace?: string
  readonly step?: string
}

/**
 * What a person found out.
 *
 * *Shape.* `result` is what the operation's success schema takes: its typed value, or `Output.unvalidated(json)` for the
 * encoded one. Left out for `void`.
 *
 * @category models
 * @since 0.1.0
 */
export type OutcomeAnswer = { readonly happened: true; readonly result?: unknown } | { readonly happened: false }

const defaultPage = 20
const largestPage = 100

interface Open {
  readonly effect: EffectRecord | null
  readonly attempts: ReadonlyArray<AttemptRecord>
}

/** The intent of the generation that a step has come to. */
const openAt = (store: CheckpointStoreService, namespace: string, runId: string, step: string) =>
  Effect.map(store.loadOpen(namespace, runId, [step]), ({ attempts, effects }): Open => {
    const generation = attempts.filter(({ kind }) => kind === "refused").length
    return { attempts, effect: effects.find((effect) => effect.generation === generation) ?? null }
  })

const shownOperation = (effect: EffectRecord | null): UnknownOperation | null =>
  effect?.state !== "intended"
    ? null
    : {
        name: effect.operation,
        idempotencyKey: effect.idempotencyKey,
        payload: effect.payload,
        sends: effect.sends,
        since: effect.intentAt,
      }

const unreadableRun = (
  run: Pick<ParkedRun, "namespace" | "runId" | "workflow" | "version" | "since">,
  { message }: StoreError,
): ParkedRun => ({ ...run, reason: "Unreadable", step: "", problem: message, operation: null, rejected: [] })

export const parked = (options: ParkedOptions = {}) =>
  Effect.gen(function* () {
    const store = yield* CheckpointStore
    const namespace = yield* checkId("namespace", options.namespace ?? defaultNamespace)
    const limit = Math.max(1, Math.min(largestPage, Math.trunc(options.limit ?? defaultPage) || defaultPage))
    const rows = yield* store.listParked({ namespace, after: options.after ?? null, limit })
    return yield* Effect.forEach(rows, ({ runId, workflow, version, updatedAt, parked: why }) => {
      const run = { namespace, runId, workflow, version, since: updatedAt }
      if (Either.isLeft(why)) return Effect.succeed(unreadableRun(run, why.left))
      const { problem, reason, step } = why.right
      return Effect.map(openAt(store, namespace, runId, step), ({ attempts, effect }): ParkedRun => ({
        ...run,
        reason,
        step,
        problem,
        operation: shownOperation(effect),
        rejected: attempts.flatMap(({ attempt, endedAt, error, kind, output }) =>
          kind === "rejected" ? [{ attempt, raw: output, issues: error.message, at: new Date(endedAt) }] : [],
        ),
      }))
    })
  })

// ---- answering -------------------------------------------------------------------------------------------------

interface Declared {
  readonly operation: AnyOperation
  readonly member: MemberOperation
}

/** The case that a choice's payload names. */
const caseOf = (payload: string | null): unknown =>
  (JSON.parse(payload ?? "null") as { readonly case?: unknown } | null)?.case

const declaredAt = (definition: Definition, plan: Plan, { operation: name, path, payload }: EffectRecord) => {
  const node = programOf(definition, plan).pairs.get(templateOf(path))?.node
  const operations =
    node?.kind === "perform" ? [node.operation] : node?.kind === "step" ? node.effects.filter(isOperation) : []
  for (const operation of operations) {
    const member = operation.members.find(
      (each) => each.name === name && (each.case === null || each.case === caseOf(payload)),
    )
    if (member !== undefined) return { operation, member } satisfies Declared
  }
  return null
}

const gatedResult = ({ operation, member }: Declared, result: unknown) =>
  Effect.gen(function* () {
    const codec = operation.codecs.success
    const place = `answered result of operation '${member.name}'`
    const whole = (given: unknown) => (member.case === null ? given : { case: member.case, result: given })
    if (!isUnvalidated(result)) return yield* codec.gate(whole(result), { place })
    if (!isUnparsedText(result.raw)) return yield* codec.gateUnvalidated(whole(result.raw), { place })
    const problem = `it is no JSON (${result.raw.problem})`
    return yield* new InvalidValue({ place, field: "", reason: "SchemaMismatch", problem })
  })

/** The attempt that accounts for a person's "it did not happen" is told apart by its tag. */
const saidNotPerformed: ErrorDetails = {
  name: "SaidNotPerformed",
  message: "a person said that it did not happen",
  tag: "SaidNotPerformed",
  stack: null,
  cause: null,
}

const refusal = (run: RunRecord, reason: AnswerRefused["reason"], problem: string) =>
  new AnswerRefused({ namespace: run.namespace, runId: run.runId, reason, problem })

const knownAlready = (run: RunRecord, { operation, state }: EffectRecord) =>
  refusal(run, "AlreadyAnswered", `the outcome of '${operation}' is known by now (${state})`)

/** Why a run that is not parked, or not as it was a moment ago, takes no answer. */
const notParked = (store: CheckpointStoreService, run: RunRecord, step: string) =>
  Effect.map(openAt(store, run.namespace, run.runId, step), ({ attempts, effect }) => {
    const answered = attempts.some(({ error, kind }) => kind === "refused" && error.tag === saidNotPerformed.tag)
    if (effect !== null && effect.state !== "intended") return knownAlready(run, effect)
    return answered
      ? refusal(run, "AlreadyAnswered", "a person has said already that it did not happen")
      : refusal(run, "NotParked", `it is ${run.status} and waits for nobody`)
  })

/** What the run is parked for, as far as it can be answered. */
const unknownOf = (store: CheckpointStoreService, run: RunRecord, of: AnswerOptions, said: OutcomeAnswer) =>
  Effect.gen(function* () {
    if (run.status !== "review" || run.parked === null) {
      return yield* yield* notParked(store, run, of.step ?? run.cursor ?? "")
    }
    const { reason, step } = run.parked
    if (of.step !== undefined && of.step !== step) {
      return yield* refusal(run, "StepDiffers", `it is parked at step '${step}', not at '${of.step}'`)
    }
    const { attempts, effect } = yield* openAt(store, run.namespace, run.runId, step)
    if (effect === null) return yield* refusal(run, "NothingUnknown", `no operation of step '${step}' was sent`)
    if (effect.state !== "intended") return yield* knownAlready(run, effect)
    if (said.happened && reason === "IntentMismatch") {
      const problem = `the workflow would now perform something else than what happened under key ${effect.idempotencyKey}; resume it under the code that recorded it`
      return yield* refusal(run, "IntentDiffers", problem)
    }
    return { attempts, effect }
  })

const settlement = (
  definition: Definition,
  plan: Plan,
  run: RunRecord,
  { attempts, effect }: { readonly attempts: ReadonlyArray<AttemptRecord>; readonly effect: EffectRecord },
  said: OutcomeAnswer,
) =>
  Effect.gen(function* () {
    if (!said.happened) {
      const attempt = { attempt: attempts.length + 1, kind: "refused", error: saidNotPerformed, output: null } as const
      return { state: "notPerformed", outcome: null, attempt } as const
    }
    const declared = declaredAt(definition, plan, effect)
    if (declared === null) {
      const problem = `step '${effect.path}' declares no operation '${effect.operation}' any more`
      return yield* refusal(run, "IntentDiffers", problem)
    }
    // X3: what the run goes on with has passed its schema.
    const { text } = yield* gatedResult(declared, said.result)
    return { state: "succeeded", outcome: text, attempt: null } as const
  })

// ---- an output in a step's place -------------------------------------------------------------------------------

/**
 * An output that a person gives in the place of one that its schema has refused.
 *
 * *Shape.* `output` is what the step's schema takes: its typed value, or `Output.unvalidated(json)` for the encoded one. `by`: who
 * gives it, for the record.
 *
 * @category models
 * @since 0.1.0
 */
export interface AcceptedOutput {
  readonly by: string
  readonly output: unknown
}

const gatedOutput = (node: WorkNode, step: string, given: unknown) => {
  const codec = outputCodec(node)
  const place = `accepted output of step '${step}'`
  if (!isUnvalidated(given)) return codec.gate(given, { place })
  if (!isUnparsedText(given.raw)) return codec.gateUnvalidated(given.raw, { place })
  const problem = `it is no JSON (${given.raw.problem})`
  return Effect.fail(new InvalidValue({ place, field: "", reason: "SchemaMismatch", problem }))
}

export const accept = (workflow: AnyWorkflow, of: AnswerOptions, { by, output }: AcceptedOutput) =>
  Effect.gen(function* () {
    const store = yield* CheckpointStore
    const plan = yield* workflow.plan
    const namespace = yield* checkId("namespace", of.namespace ?? defaultNamespace)
    const runId = yield* checkId("run id", of.runId)
    const run = yield* store.findRun(namespace, runId)
    if (run.workflow !== plan.workflow || run.version !== plan.version) {
      const problem = `it runs '${run.workflow}' version ${run.version}, not '${plan.workflow}' version ${plan.version}`
      return yield* new RunConflict({ namespace, runId, reason: "WorkflowDiffers", problem })
    }
    if (run.status !== "review" || run.parked === null) {
      return yield* refusal(run, "NotParked", `it is ${run.status} and waits for nobody`)
    }
    const { reason, step } = run.parked
    if (of.step !== undefined && of.step !== step) {
      return yield* refusal(run, "StepDiffers", `it is parked at step '${step}', not at '${of.step}'`)
    }
    const node = programOf(workflow.definition, plan).pairs.get(templateOf(step))?.node
    if (reason !== "OutputInvalid" || node?.kind !== "step" || node.effects.some(isExclusive)) {
      const problem = `step '${step}' waits for another reason than an output that its schema has refused (${reason})`
      return yield* refusal(run, "NothingUnknown", problem)
    }
    if (typeof by !== "string" || by.trim() === "") {
      const problem = "say who accepts it"
      return yield* new InvalidValue({ place: "accepted output", field: ".by", reason: "SchemaMismatch", problem })
    }
    const { text } = yield* gatedOutput(node, step, output)
    const payload = `{"by":${JSON.stringify(storableText(by))}${text === null ? "" : `,"output":${text}`}}`
    // Kept first, and taken by whoever goes on with the run: nothing is lost if this process dies in between.
    const sent = yield* store.send({
      namespace,
      runId,
      // One for each time that it is parked: of two people who accept at once, the first is taken.
      signalId: `accept@${run.seq}`,
      name: acceptedName(step),
      payload,
      payloadHash: fingerprint(canonicalText(payload)),
    })
    if (sent._tag === "Differs") return yield* refusal(run, "AlreadyAnswered", "somebody has given an output already")
    if (sent._tag === "Ended") return yield* refusal(run, "NotParked", `it is ${sent.status}`)
    yield* store.unpark(namespace, runId)
    yield* store.signals.send(runnable)
  })

const isExclusive = ({ kind }: { readonly kind: string }): boolean => kind === "external" || kind === "transaction"

export const answer = (workflow: AnyWorkflow, of: AnswerOptions, said: OutcomeAnswer) =>
  Effect.gen(function* () {
    const store = yield* CheckpointStore
    const plan = yield* workflow.plan
    const namespace = yield* checkId("namespace", of.namespace ?? defaultNamespace)
    const runId = yield* checkId("run id", of.runId)
    const run = yield* store.findRun(namespace, runId)
    if (run.workflow !== plan.workflow || run.version !== plan.version) {
      const problem = `it runs '${run.workflow}' version ${run.version}, not '${plan.workflow}' version ${plan.version}`
      return yield* new RunConflict({ namespace, runId, reason: "WorkflowDiffers", problem })
    }
    const unknown = yield* unknownOf(store, run, of, said)
    const settled = yield* settlement(workflow.definition, plan, run, unknown, said)
    const { generation, path } = unknown.effect
    const written = yield* store.answer({ namespace, runId, seq: run.seq, path, generation, ...settled })
    // Somebody was first: another person, a late worker, or a resume.
    if (!written) return yield* yield* notParked(store, yield* store.findRun(namespace, runId), path)
    yield* store.signals.send(runnable)
  })
