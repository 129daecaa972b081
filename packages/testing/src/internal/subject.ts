/** The workflow under exploration: its operations, and a copy of it whose delays are short enough to be waited for. */
import { CompileError, type AnyWorkflow, type Plan, type PlanNode } from "@cairn/core"
import type { PlanOperation, WorkerOptions } from "@cairn/core"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"

/** What of a run is waited for: whatever a worker can be told. */
export type Durability = NonNullable<WorkerOptions<[]>["durability"]>

/** Longest delays of the copy, in milliseconds. `timeoutMs` is for how long an unknown outcome is waited for. */
export interface Limits {
  readonly retryMs: number
  readonly timeoutMs: number | null
}

export interface Subject {
  readonly workflow: AnyWorkflow
  readonly durability: Durability
  /** The steps in their order. */
  readonly steps: ReadonlyArray<PlanNode>
  /** The steps and what takes them back. */
  readonly nodes: ReadonlyArray<PlanNode>
  readonly paths: ReadonlyArray<string>
  readonly operations: ReadonlyMap<string, PlanOperation>
  readonly longestTimeoutMs: number
}

const shortNode = (node: PlanNode, limits: Limits): PlanNode => ({
  ...node,
  compensate: node.compensate === null ? null : shortNode(node.compensate, limits),
  retry: {
    ...node.retry,
    delayMs: Math.min(node.retry.delayMs, limits.retryMs),
    maxDelayMs: Math.min(node.retry.maxDelayMs, limits.retryMs),
  },
  operations: node.operations.map((operation) => ({
    ...operation,
    timeoutMs: limits.timeoutMs === null ? operation.timeoutMs : Math.min(operation.timeoutMs, limits.timeoutMs),
  })),
})

/** *Errors.* A workflow that does not compile can't be explored. */
export const subjectOf = (
  workflow: AnyWorkflow,
  limits: Limits,
  given: Durability | undefined,
): Effect.Effect<Subject, CompileError> =>
  Effect.map(workflow.plan as Either.Either<Plan, CompileError>, (plan) => {
    const short: Plan = { ...plan, nodes: plan.nodes.map((node) => shortNode(node, limits)) }
    const nodes = short.nodes.flatMap((node) => (node.compensate === null ? [node] : [node, node.compensate]))
    const operations = nodes.flatMap((node) => node.operations)
    const durability = given ?? workflow.definition.durability ?? "barrier"
    return {
      workflow: { ...workflow, definition: { ...workflow.definition, durability }, plan: Either.right(short) },
      durability,
      steps: short.nodes,
      nodes,
      paths: nodes.map(({ path }) => path),
      operations: new Map(operations.map((operation) => [operation.name, operation])),
      longestTimeoutMs: Math.max(0, ...operations.map(({ timeoutMs }) => timeoutMs)),
    }
  })

/** What a step does outside, for the report: the policy of its operation, or what it has instead. */
export const policyOf = (subject: Subject, step: string): string => {
  if (step === "") return "worker"
  const node = subject.nodes.find(({ name }) => name === step)
  if (node?.operations[0] !== undefined) return node.operations[0].onUnknown.policy
  return node?.effects.some(({ kind }) => kind === "transaction") === true ? "transaction" : "no operation"
}
