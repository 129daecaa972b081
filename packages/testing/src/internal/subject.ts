/**
 * The workflow under exploration, and those that it starts: their operations, and copies of them whose delays are short enough
 * to be waited for, and whose steering functions are watched.
 */
import { CompileError, type AnyWorkflow, type Plan, type PlanNode, type PlanStep } from "@cairn/core"
import type { MemberOperation, PlanOperation, WorkerOptions } from "@cairn/core"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { bodiesOf as planBodiesOf, everyNode, isStep, templateOf } from "./paths.js"
import { watchedDefinition } from "./steering.js"

/** What of a run is waited for: whatever a worker can be told. */
export type Durability = NonNullable<WorkerOptions<[]>["durability"]>

/** Longest delays of the copy, in milliseconds. `timeoutMs` is for how long an unknown outcome is waited for. */
export interface Limits {
  readonly retryMs: number
  readonly timeoutMs: number | null
}

/** One workflow: that which is explored, or one that it starts. */
export interface Part {
  readonly workflow: AnyWorkflow
  readonly plan: Plan
  /** Every node of the plan, whatever it stands in, and what takes steps back. */
  readonly nodes: ReadonlyArray<PlanNode>
  readonly byPath: ReadonlyMap<string, PlanNode>
  /** What each of them was made of, by the same paths. */
  readonly defined: ReadonlyMap<string, Node>
  /** Steps alone, one after the other. */
  readonly isFlat: boolean
}

export interface Subject extends Part {
  readonly durability: Durability
  /** Several operations may be under way at once. */
  readonly sideBySide: boolean
  /** By name: the workflow itself, and those that it starts. */
  readonly parts: ReadonlyMap<string, Part>
  readonly members: ReadonlyArray<MemberOperation>
  readonly operations: ReadonlyMap<string, PlanOperation>
  readonly longestTimeoutMs: number
}

const shortStep = (node: PlanStep, limits: Limits): PlanStep => ({
  ...node,
  compensate: node.compensate === null ? null : shortStep(node.compensate, limits),
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

const shortBodies = (
  bodies: Readonly<Record<string, ReadonlyArray<PlanNode>>>,
  limits: Limits,
): Readonly<Record<string, ReadonlyArray<PlanNode>>> =>
  Object.fromEntries(Object.entries(bodies).map(([name, nodes]) => [name, nodes.map((node) => short(node, limits))]))

const short = (node: PlanNode, limits: Limits): PlanNode => {
  switch (node.kind) {
    case "step":
    case "perform":
      return shortStep(node, limits)
    case "branch":
    case "match":
      return { ...node, cases: shortBodies(node.cases, limits) }
    case "parallel":
      return { ...node, arms: shortBodies(node.arms, limits) }
    case "loop":
    case "forEach":
      return { ...node, body: node.body.map((inner) => short(inner, limits)) }
    default:
      return node
  }
}

type Definition = AnyWorkflow["definition"]
type Node = Definition["nodes"][number]

const bodiesOf = (node: Node): ReadonlyArray<ReadonlyArray<Node>> => {
  switch (node.kind) {
    case "branch":
    case "match":
      return Object.values(node.cases)
    case "parallel":
      return Object.values(node.arms)
    case "loop":
    case "forEach":
      return [node.body]
    default:
      return []
  }
}

const everyDefined = (nodes: ReadonlyArray<Node>): ReadonlyArray<Node> =>
  nodes.flatMap((node) => [node, ...bodiesOf(node).flatMap(everyDefined)])

const membersOf = ({ nodes }: Definition): ReadonlyArray<MemberOperation> =>
  everyDefined(nodes).flatMap((node) => {
    const operations =
      node.kind === "perform"
        ? [node.operation, ...(node.compensate === null ? [] : [node.compensate.operation])]
        : node.kind === "step"
          ? node.effects.filter((effect) => effect.kind === "external")
          : []
    return operations.flatMap((operation) => operation.members)
  })

/** The nodes of a definition beside those of its plan, by the paths of these. */
const definedOf = (
  nodes: ReadonlyArray<Node>,
  plans: ReadonlyArray<PlanNode>,
): ReadonlyArray<readonly [string, Node]> =>
  nodes.flatMap((node, index) => {
    const plan = plans[index]!
    const inner = planBodiesOf(plan)
    return [[plan.path, node] as const, ...bodiesOf(node).flatMap((body, of) => definedOf(body, inner[of]!))]
  })

/** The workflow and all that it starts, each once, and after those that it starts. */
const familyOf = (workflow: AnyWorkflow, known: Map<string, AnyWorkflow> = new Map()): Map<string, AnyWorkflow> => {
  for (const node of everyDefined(workflow.definition.nodes)) {
    if (node.kind === "child" && !known.has(node.workflow.name)) familyOf(node.workflow as AnyWorkflow, known)
  }
  return known.set(workflow.name, workflow)
}

const partOf = (
  workflow: AnyWorkflow,
  limits: Limits,
  durability: Durability,
  made: ReadonlyMap<string, Part>,
): Either.Either<Part, CompileError> =>
  Either.map(workflow.plan as Either.Either<Plan, CompileError>, (whole) => {
    const plan: Plan = { ...whole, nodes: whole.nodes.map((node) => short(node, limits)) }
    const nodes = everyNode(plan.nodes).flatMap((node) =>
      isStep(node) && node.compensate !== null ? [node, node.compensate] : [node],
    )
    const definition = {
      ...watchedDefinition(workflow.definition, plan, (name) => made.get(name)?.workflow),
      durability,
    }
    return {
      workflow: { ...workflow, definition, plan: Either.right(plan) },
      plan,
      nodes,
      byPath: new Map(nodes.map((node) => [node.path, node])),
      defined: new Map(definedOf(definition.nodes, plan.nodes)),
      isFlat: plan.nodes.every(isStep),
    }
  })

/** *Errors.* A workflow that does not compile can't be explored. */
export const subjectOf = (
  workflow: AnyWorkflow,
  limits: Limits,
  given: Durability | undefined,
): Effect.Effect<Subject, CompileError> =>
  Effect.gen(function* () {
    const durability = given ?? workflow.definition.durability ?? "barrier"
    const family = [...familyOf(workflow).values()]
    const parts = new Map<string, Part>()
    for (const each of family) parts.set(each.name, yield* partOf(each, limits, durability, parts))
    const operations = [...parts.values()].flatMap(({ nodes }) =>
      nodes.filter(isStep).flatMap((node) => node.operations),
    )
    return {
      ...parts.get(workflow.name)!,
      sideBySide: [...parts.values()].some(({ nodes }) =>
        nodes.some((node) => node.kind === "parallel" || (node.kind === "forEach" && node.concurrency > 1)),
      ),
      ...{ durability, parts, members: family.flatMap(({ definition }) => membersOf(definition)) },
      operations: new Map(operations.map((operation) => [operation.name, operation])),
      longestTimeoutMs: Math.max(0, ...operations.map(({ timeoutMs }) => timeoutMs)),
    }
  })

/** The node of a path, in whichever workflow it stands; a fault point knows names alone, which are looked for, too. */
export const nodeAt = ({ parts }: Subject, place: string): PlanNode | undefined => {
  const template = templateOf(place)
  for (const { byPath } of parts.values()) {
    const node = byPath.get(template)
    if (node !== undefined) return node
  }
  for (const { nodes } of parts.values()) {
    const node = nodes.find(({ name }) => name === place)
    if (node !== undefined) return node
  }
  return undefined
}

/** What stands in a row of the report beside policies. */
export const otherRows = ["transaction", "no operation", "steering", "wait", "child", "worker"] as const

/** What a step does outside, for the report: the policy of its operation, or what it has instead. */
export const policyOf = (subject: Subject, step: string): string => {
  if (step === "") return "worker"
  const node = nodeAt(subject, step)
  if (node === undefined) return "no operation"
  if (isStep(node)) {
    if (node.operations[0] !== undefined) return node.operations[0].onUnknown.policy
    return node.effects.some(({ kind }) => kind === "transaction") ? "transaction" : "no operation"
  }
  if (node.kind === "child") return "child"
  return node.kind === "sleep" || node.kind === "signal" || node.kind === "review" ? "wait" : "steering"
}
