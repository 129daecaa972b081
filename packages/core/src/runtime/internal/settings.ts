/** A worker's options and workflows, checked when it starts and not when a run reaches the step. */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Either from "effect/Either"
import * as Option from "effect/Option"
import type { AnyWorkflow } from "../../builder/Workflow.js"
import { isDataVersion } from "../../dsl/DataVersion.js"
import { checkMoney } from "../../compiler/internal/checks/money.js"
import { everyNode } from "../../dsl/internal/nested.js"
import { durationMs } from "../../dsl/OnUnknown.js"
import type { Durability } from "../../dsl/Definition.js"
import { handlerTag, type Handler } from "../../dsl/Operation.js"
import {
  dataNeedsTransactions,
  missingPart,
  needsTransactions,
  optionOutOfRange,
  workflowGivenTwice,
  type Diagnostic,
} from "../../model/DiagnosticCode.js"
import { usualMaxLength } from "../../model/Codec.js"
import { CompileError, type InvalidId } from "../../model/Errors.js"
import type { Prices } from "../../model/Usage.js"
import { checkId, defaultNamespace } from "../../model/Ids.js"
import type { Plan, PlanStep, PlanOperation } from "../../model/Plan.js"
import type { Capabilities } from "../../store/Capabilities.js"
import type { CheckpointStoreService } from "../../store/CheckpointStore.js"
import type { WorkerOptions } from "../Worker.js"
import { stepsOf } from "./planIndex.js"
import type { LogSync } from "./localLog.js"
import { isTransaction, maxTransactionMs } from "./transactionLimits.js"

export interface Settings {
  readonly namespace: string
  readonly concurrency: number
  readonly leaseMs: number
  readonly pollMs: number
  readonly maxPollMs: number
  readonly drainMs: number
  readonly maxRecoveries: number
  readonly maxValueLength: number
  readonly durability: Durability
  readonly local: { readonly directory: string; readonly log: LogSync | "off" } | null
  readonly maxPendingCommits: number
  readonly maxPendingBytes: number
  /** For how long rejected outputs are kept; infinite for ever. */
  readonly keepRejectedMs: number
  readonly prices: Prices
  readonly budget: { readonly day: number } | undefined
}

const maxPause = 3_600_000

const ranges = {
  concurrency: [1, 10_000],
  leaseMs: [50, 86_400_000],
  pollMs: [1, maxPause],
  maxPollMs: [1, maxPause],
  drainMs: [0, 86_400_000],
  maxRecoveries: [0, 1_000],
  maxValueLength: [1, 512 * 1024 * 1024],
  maxPendingCommits: [1, 1_000_000],
  maxPendingBytes: [1, 4 * 1024 * 1024 * 1024],
} as const

/**
 * How many times `pollInterval` the longest pause is, unless given. With wake-ups polling is for what nobody can tell of;
 * without them it is how long a start in another process may wait, which a person may be waiting for.
 */
const pauses = { withWakeUps: 80, without: 2 }

/** A pause that is out of range is one mistake, not two. */
const pauseInRange = (ms: number): number => Math.min(maxPause, Math.max(1, ms || 1))

const usualMaxPollMs = (pollMs: number, { notify }: Capabilities): number =>
  pauseInRange(pollMs * (notify ? pauses.withWakeUps : pauses.without))

export const settings = (
  options: WorkerOptions<any>,
  capabilities: Capabilities,
): Effect.Effect<Settings, CompileError | InvalidId> =>
  Effect.gen(function* () {
    const ms = (input: Duration.DurationInput | undefined, fallback: number): number =>
      input === undefined ? fallback : durationMs(input)
    const pollMs = ms(options.pollInterval, 1_000)
    const made: Settings = {
      namespace: yield* checkId("namespace", options.namespace ?? defaultNamespace),
      concurrency: options.concurrency ?? 16,
      leaseMs: ms(options.lease, 30_000),
      pollMs,
      maxPollMs: ms(options.maxPollInterval, usualMaxPollMs(pollMs, capabilities)),
      drainMs: ms(options.drain, 10_000),
      maxRecoveries: options.maxRecoveries ?? 3,
      maxValueLength: options.maxValueLength ?? usualMaxLength,
      durability: options.durability ?? "barrier",
      local: options.local === undefined ? null : { log: "synced", ...options.local },
      maxPendingCommits: options.maxPendingCommits ?? 10_000,
      maxPendingBytes: options.maxPendingBytes ?? 64 * 1024 * 1024,
      keepRejectedMs: ms(options.keepRejected, 30 * 86_400_000),
      prices: options.prices ?? {},
      budget: options.budget,
    }
    const diagnostics: Array<Diagnostic> = Object.entries(ranges).flatMap(([name, [lowest, most]]) => {
      const value = made[name as keyof typeof ranges]
      const least = name === "maxPollMs" ? pauseInRange(pollMs) : lowest
      return Number.isSafeInteger(value) && value >= least && value <= most
        ? []
        : [
            {
              code: "CRN110",
              step: null,
              message: optionOutOfRange("the worker", name, `a whole number from ${least} to ${most}`, String(value)),
            },
          ]
    })
    if (!(made.keepRejectedMs >= 0)) {
      const expected = "a duration from 0 up; Duration.infinity for ever"
      const message = optionOutOfRange("the worker", "keepRejected", expected, String(options.keepRejected))
      diagnostics.push({ code: "CRN110", step: null, message })
    }
    diagnostics.push(...checkMoney("the worker", options.prices, options.budget))
    if (diagnostics.length > 0) return yield* new CompileError({ workflow: "(worker)", diagnostics })
    return made
  })

export interface Runnable {
  readonly workflow: AnyWorkflow
  readonly plan: Plan
}

const missingOf = ({ name, onUnknown }: PlanOperation, handler: Option.Option<Handler>): string | null => {
  if (Option.isNone(handler)) return `handler for '${name}'; provide its toLayer(..) to the worker`
  return onUnknown.policy === "checkFirst" && handler.value.check === null
    ? `check for '${name}', whose policy is checkFirst; give it as the second argument of toLayer: { check: .. }`
    : null
}

/** A transaction step that is allowed to take longer could cost its worker the lease. */
const tooLong = ({ name, timeoutMs }: PlanStep, leaseMs: number): ReadonlyArray<Diagnostic> => {
  const most = maxTransactionMs(leaseMs)
  if (timeoutMs === null || timeoutMs <= most) return []
  const expected = `at most a third of the worker's lease (${most} ms), for the store's connection is held for so long`
  const message = optionOutOfRange(`transaction step '${name}'`, "timeout", expected, `${timeoutMs} ms`)
  return [{ code: "CRN110", step: name, message }]
}

/** What a plan asks of its surroundings: checked when the worker starts, not when a run reaches the step. */
const unmet = (
  plan: Plan,
  store: CheckpointStoreService,
  context: Context.Context<any>,
  leaseMs: number,
): ReadonlyArray<Diagnostic> =>
  stepsOf(plan).flatMap((node): ReadonlyArray<Diagnostic> => [
    ...(isTransaction(node) ? tooLong(node, leaseMs) : []),
    ...(isTransaction(node) && !store.capabilities.transactions
      ? [{ code: "CRN106" as const, step: node.name, message: needsTransactions(node.name, store.capabilities.name) }]
      : []),
    ...node.operations.flatMap((operation) => {
      const part = missingOf(operation, Context.getOption(context, handlerTag(operation.name)))
      return part === null ? [] : [{ code: "CRN107" as const, step: node.name, message: missingPart(node.name, part) }]
    }),
  ])

/** Data that stands in the store's database is read in transactions of it. */
const unmetData = (
  { definition }: AnyWorkflow,
  { capabilities: { name, transactions } }: CheckpointStoreService,
): ReadonlyArray<Diagnostic> =>
  transactions
    ? []
    : everyNode(definition.nodes).flatMap((node) =>
        (node.kind === "step" ? node.effects : []).flatMap((effect): ReadonlyArray<Diagnostic> =>
          isDataVersion(effect) && effect.place === "store"
            ? [{ code: "CRN106", step: node.name, message: dataNeedsTransactions(node.name, effect.name, name) }]
            : [],
        ),
      )

/** Two workflows of one name and version: a run of it could be executed by either. The same one twice is one. */
const clash = (plan: Plan, workflow: AnyWorkflow, known: Runnable | undefined): ReadonlyArray<Diagnostic> =>
  known === undefined || known.workflow === workflow
    ? []
    : [{ code: "CRN104", step: null, message: workflowGivenTwice(plan.workflow, plan.version) }]

/** The workflows and those that they start, each once: a worker that runs a parent runs its children. */
const withChildren = (workflows: Iterable<AnyWorkflow>, known = new Set<AnyWorkflow>()): ReadonlySet<AnyWorkflow> => {
  for (const workflow of workflows) {
    if (known.has(workflow)) continue
    known.add(workflow)
    const children: Array<AnyWorkflow> = []
    for (const node of everyNode(workflow.definition.nodes)) {
      if (node.kind === "child") children.push(node.workflow as AnyWorkflow)
    }
    withChildren(children, known)
  }
  return known
}

export const compiled = (
  workflows: ReadonlyArray<AnyWorkflow>,
  store: CheckpointStoreService,
  context: Context.Context<any>,
  leaseMs: number,
): Effect.Effect<ReadonlyMap<string, Runnable>, CompileError> =>
  Effect.gen(function* () {
    const byName = new Map<string, Runnable>()
    for (const workflow of withChildren(workflows)) {
      const plan = yield* workflow.plan as Either.Either<Plan, CompileError>
      const key = JSON.stringify([plan.workflow, plan.version])
      const diagnostics = [
        ...clash(plan, workflow, byName.get(key)),
        ...unmet(plan, store, context, leaseMs),
        ...unmetData(workflow, store),
      ]
      if (diagnostics.length > 0) return yield* new CompileError({ workflow: plan.workflow, diagnostics })
      byName.set(key, { workflow, plan })
    }
    return byName
  })
